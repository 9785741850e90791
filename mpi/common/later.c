/* SPDX-License-Identifier: BSD-3-Clause */
#include "common/later.h"

#include <stdlib.h>

struct oci_mpi_later *oci_mpi_later_keep(const struct oci_mpi_later *call, uint32_t rank)
{
	struct oci_mpi_later *l = malloc(sizeof(*l));

	if (!l)
		return NULL;
	*l = *call;
	if (!oci_mpi_call_keep(&l->mpi, rank, l->sblocks, l->rblocks, &l->memory))
		return l;
	free(l);
	return NULL;
}

void oci_mpi_later_drop(struct oci_mpi_later *l)
{
	if (l)
		oci_mpi_call_release(&l->mpi, l->sblocks, l->rblocks, l->memory);
	free(l);
}

void oci_mpi_neighbors(MPI_Comm comm, uint32_t *to, uint32_t *from)
{
	int topology = MPI_UNDEFINED, in = 0, out = 0, weighted, rank;

	PMPI_Topo_test(comm, &topology);
	switch (topology) {
	case MPI_CART: /* two in each dimension, also where the grid ends */
		PMPI_Cartdim_get(comm, &in);
		in *= 2;
		out = in;
		break;
	case MPI_GRAPH:
		PMPI_Comm_rank(comm, &rank);
		PMPI_Graph_neighbors_count(comm, rank, &in);
		out = in;
		break;
	case MPI_DIST_GRAPH:
		PMPI_Dist_graph_neighbors_count(comm, &in, &out, &weighted);
		break;
	default:
		break;
	}
	*to = (uint32_t)out;
	*from = (uint32_t)in;
}
