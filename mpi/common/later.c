/* SPDX-License-Identifier: BSD-3-Clause */
#include "common/later.h"

#include <stdlib.h>
#include <string.h>

/* A side that means nothing on this rank may point anywhere. */
static void forget_the_rest(struct oci_mpi_later *l, uint32_t rank)
{
	if (!oci_mpi_sends(&l->mpi, rank)) {
		if (!oci_mpi_reduces(l->mpi.collective))
			l->mpi.stype = MPI_BYTE;
		l->scounts = l->sdispls = NULL;
		l->mpi.stypes = NULL;
	}
	if (!oci_mpi_receives(&l->mpi, rank)) {
		l->mpi.rtype = MPI_BYTE;
		l->mpi.rtypes = NULL;
		/* Of a Reduce_scatter in place they count all the same. */
		if (!oci_mpi_reduces(l->mpi.collective))
			l->rcounts = l->rdispls = NULL;
	}
	if (l->mpi.stypes)
		l->mpi.stype = MPI_BYTE;
	if (l->mpi.rtypes || oci_mpi_reduces(l->mpi.collective))
		l->mpi.rtype = MPI_BYTE;
}

static bool is_empty(const void *counts, uint8_t count_bytes, uint32_t block)
{
	const int *small = counts;
	const MPI_Count *large = counts;

	return (count_bytes == sizeof(*large) ? large[block] : small[block]) <= 0;
}

/* Any array's element has its place behind `bytes` of another one. */
static size_t whole(size_t bytes)
{
	return (bytes + sizeof(MPI_Count) - 1) / sizeof(MPI_Count) * sizeof(MPI_Count);
}

static size_t arrays_bytes(const struct oci_mpi_later *l)
{
	size_t blocks = (size_t)l->sblocks + l->rblocks;
	size_t element = sizeof(MPI_Datatype) + l->displ_bytes + l->count_bytes;

	return blocks * element + 6 * sizeof(MPI_Count);
}

/* The types of blocks without elements may be anything; they become MPI_BYTE. */
static const MPI_Datatype *copy_types(char **next, const MPI_Datatype *from, const void *counts,
				      uint8_t count_bytes, uint32_t blocks)
{
	MPI_Datatype *to = (MPI_Datatype *)(void *)*next;

	if (!from)
		return NULL;
	for (uint32_t i = 0; i < blocks; i++)
		to[i] = is_empty(counts, count_bytes, i) ? MPI_BYTE : from[i];
	*next += whole(blocks * sizeof(*to));
	return to;
}

static const void *copy_numbers(char **next, const void *from, size_t bytes)
{
	void *to = *next;

	if (!from)
		return NULL;
	memcpy(to, from, bytes);
	*next += whole(bytes);
	return to;
}

static void copy_arrays(struct oci_mpi_later *l, char *next)
{
	size_t to = l->sblocks, from = l->rblocks;
	uint8_t displ = l->displ_bytes, count = l->count_bytes;

	l->mpi.stypes = copy_types(&next, l->mpi.stypes, l->scounts, count, l->sblocks);
	l->mpi.rtypes = copy_types(&next, l->mpi.rtypes, l->rcounts, count, l->rblocks);
	l->sdispls = copy_numbers(&next, l->sdispls, to * displ);
	l->rdispls = copy_numbers(&next, l->rdispls, from * displ);
	l->scounts = copy_numbers(&next, l->scounts, to * count);
	l->rcounts = copy_numbers(&next, l->rcounts, from * count);
}

struct oci_mpi_later *oci_mpi_later_keep(const struct oci_mpi_later *call, uint32_t rank)
{
	struct oci_mpi_later *l = malloc(whole(sizeof(*l)) + arrays_bytes(call));

	if (!l)
		return NULL;
	*l = *call;
	forget_the_rest(l, rank);
	copy_arrays(l, (char *)l + whole(sizeof(*l)));
	if (oci_mpi_keep_handles(&l->mpi, l->sblocks, l->rblocks))
		return l;
	free(l);
	return NULL;
}

void oci_mpi_later_drop(struct oci_mpi_later *l)
{
	if (l)
		oci_mpi_release_handles(&l->mpi, l->sblocks, l->rblocks);
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
