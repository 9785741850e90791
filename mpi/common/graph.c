/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which of several blocks between two ranks meets which (MPI 4.0, section 8.6): in a Cartesian
 * grid, what is sent in one direction is received from the other one; in a graph, the first edge
 * meets the first, and so on. MPI 4.0 has this for MPI 3.1 too, as an erratum.
 */
#include "common/graph.h"

#include "common/port.h"

#include <errno.h>
#include <stdlib.h>

struct lists {
	int topology;
	int in, out;
	int *sources, *targets, *weights;
};

static void count(struct lists *l, MPI_Comm comm)
{
	int rank = 0, dims = 0, weighted;

	if (l->topology == MPI_CART) {
		OCI_PORT_MPI(Cartdim_get)(comm, &dims);
		l->in = l->out = 2 * dims;
	} else if (l->topology == MPI_GRAPH) {
		OCI_PORT_MPI(Comm_rank)(comm, &rank);
		OCI_PORT_MPI(Graph_neighbors_count)(comm, rank, &l->in);
		l->out = l->in;
	} else {
		OCI_PORT_MPI(Dist_graph_neighbors_count)(comm, &l->in, &l->out, &weighted);
	}
}

static void fill(struct lists *l, MPI_Comm comm)
{
	int rank = 0;

	if (l->topology == MPI_DIST_GRAPH) {
		/* Weights are of no use; compilers take MPI_UNWEIGHTED for an array that is short.
		 */
		OCI_PORT_MPI(Dist_graph_neighbors)
		(comm, l->in, l->sources, l->weights, l->out, l->targets, l->weights + l->in);
		return;
	}
	if (l->topology == MPI_GRAPH) {
		OCI_PORT_MPI(Comm_rank)(comm, &rank);
		OCI_PORT_MPI(Graph_neighbors)(comm, rank, l->in, l->sources);
	}
	for (int d = 0; l->topology == MPI_CART && d < l->in / 2; d++)
		OCI_PORT_MPI(Cart_shift)
	(comm, d, 1, &l->sources[2 * d], &l->sources[2 * d + 1]);
	for (int i = 0; i < l->out; i++)
		l->targets[i] = l->sources[i];
}

/* By rank, and of one rank in the order of `place`, which is then its number among these. */
static int compare(const void *a, const void *b)
{
	const struct oci_mpi_edge *l = a, *r = b;

	if (l->rank != r->rank)
		return l->rank < r->rank ? -1 : 1;
	return l->place < r->place ? -1 : l->place > r->place;
}

/* `turned`: block i meets what was sent in the other direction. */
static void sort(struct oci_mpi_edges *edges, const int *ranks, int blocks, bool turned)
{
	struct oci_mpi_edge *e = edges->edge;

	edges->blocks = (uint32_t)blocks;
	edges->count = 0;
	for (uint32_t i = 0; i < edges->blocks; i++)
		if (ranks[i] >= 0) /* not MPI_PROC_NULL */
			e[edges->count++] = (struct oci_mpi_edge){ .rank = (uint32_t)ranks[i],
								   .place = turned ? i ^ 1 : i,
								   .block = i };
	qsort(e, edges->count, sizeof(*e), compare);
	for (uint32_t n = 0; n < edges->count; n++)
		e[n].place = n && e[n - 1].rank == e[n].rank ? e[n - 1].place + 1 : 0;
}

bool oci_mpi_is_grid(MPI_Comm comm)
{
	int topology = MPI_UNDEFINED;

	OCI_PORT_MPI(Topo_test)(comm, &topology);
	return topology == MPI_CART;
}

int oci_mpi_graph_create(struct oci_mpi_graph **graph, MPI_Comm comm)
{
	struct lists l = { .topology = MPI_UNDEFINED };
	struct oci_mpi_graph *made;

	*graph = NULL;
	OCI_PORT_MPI(Topo_test)(comm, &l.topology);
	if (l.topology == MPI_UNDEFINED)
		return 0;
	count(&l, comm);
	made = malloc(sizeof(*made) + (size_t)(l.in + l.out) * sizeof(made->edge[0]));
	l.sources = malloc((2 * (size_t)(l.in + l.out) + 1) * sizeof(int));
	if (!made || !l.sources) {
		free(made);
		free(l.sources);
		return -ENOMEM;
	}
	l.targets = l.sources + l.in;
	l.weights = l.targets + l.out;
	fill(&l, comm);
	made->out.edge = made->edge;
	made->in.edge = made->edge + l.out;
	sort(&made->out, l.targets, l.out, false);
	sort(&made->in, l.sources, l.in, l.topology == MPI_CART);
	free(l.sources);
	*graph = made;
	return 0;
}
