/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who is whose neighbor in a communicator with a topology, as the engine needs it: it has one block
 * for each pair of ranks, while two ranks may be neighbors several times (a periodic dimension of
 * one or two processes, a graph with an edge twice). The blocks of such a pair lie behind each
 * other, in an order that both of its ends know.
 */
#ifndef OC_MPI_GRAPH_H
#define OC_MPI_GRAPH_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

struct oci_mpi_edge {
	uint32_t rank;
	uint32_t place; /* among the edges to this rank, as both ends count */
	uint32_t block; /* of the program's blocks on this side */
};

/* The edges on one side, by rank and place. */
struct oci_mpi_edges {
	uint32_t blocks; /* of the program's arguments; those of MPI_PROC_NULL have no edge */
	uint32_t count;
	struct oci_mpi_edge *edge;
};

struct oci_mpi_graph {
	struct oci_mpi_edges out, in;
	struct oci_mpi_edge edge[];
};

/*
 * A Cartesian grid, in which all members can be reached from each. So where blocks are alike and a
 * member neither gives nor gets anything, its neighbors do not, nor do theirs. One that only gives
 * may lie between such as only get. Asked without memory, as members must not differ in the answer.
 */
bool oci_mpi_is_grid(MPI_Comm comm);
/* 0, with the graph, which free() frees, or NULL: the communicator has no topology. -ENOMEM. */
int oci_mpi_graph_create(struct oci_mpi_graph **graph, MPI_Comm comm);

/* Has the rank of the n-th edge several? */
static inline bool oci_mpi_edge_is_joined(const struct oci_mpi_edges *edges, uint32_t n)
{
	const struct oci_mpi_edge *e = &edges->edge[n];

	return e->place || (n + 1 < edges->count && e[1].rank == e->rank);
}

#endif
