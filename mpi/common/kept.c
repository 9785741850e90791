/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a call that returns before it is over needs: types and operations that the program may free
 * at once, and copies of its counts and displacements. All of it or nothing.
 */
#include "common/operation.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const int *copy_ints(int **next, const int *from, uint32_t size)
{
	int *to = *next;

	if (!from)
		return NULL;
	memcpy(to, from, size * sizeof(*to));
	*next += size;
	return to;
}

/* The types of blocks without elements may be anything; they become MPI_BYTE. */
static const MPI_Datatype *copy_types(MPI_Datatype **next, const MPI_Datatype *from,
				      const int *counts, uint32_t size)
{
	MPI_Datatype *to = *next;

	if (!from)
		return NULL;
	for (uint32_t i = 0; i < size; i++)
		to[i] = counts[i] > 0 ? from[i] : MPI_BYTE;
	*next += size;
	return to;
}

/* A side that means nothing here may point anywhere. Its types become MPI_BYTE. */
static void forget_the_rest(struct oci_mpi_call *mpi, uint32_t rank)
{
	if (!oci_mpi_sends(mpi, rank)) {
		if (!oci_mpi_reduces(mpi->collective))
			mpi->stype = MPI_BYTE;
		mpi->scounts = mpi->sdispls = NULL;
		mpi->stypes = NULL;
	}
	if (!oci_mpi_receives(mpi, rank)) {
		mpi->rtype = MPI_BYTE;
		mpi->rcounts = mpi->rdispls = NULL;
		mpi->rtypes = NULL;
	}
	if (mpi->stypes)
		mpi->stype = MPI_BYTE;
	if (mpi->rtypes || oci_mpi_reduces(mpi->collective))
		mpi->rtype = MPI_BYTE;
}

static void release_types(const MPI_Datatype *types, uint32_t count)
{
	for (uint32_t i = 0; types && i < count; i++)
		oci_port_type_release(types[i]);
}

/* False: nothing is kept. */
static bool keep_types(MPI_Datatype *types, uint32_t count)
{
	for (uint32_t i = 0; types && i < count; i++) {
		if (oci_port_type_retain(&types[i]) == MPI_SUCCESS)
			continue;
		release_types(types, i);
		return false;
	}
	return true;
}

bool oci_mpi_keep_handles(struct oci_mpi_call *mpi, uint32_t sblocks, uint32_t rblocks)
{
	/* The arrays are the copies. */
	MPI_Datatype *stypes = (MPI_Datatype *)(uintptr_t)mpi->stypes;
	MPI_Datatype *rtypes = (MPI_Datatype *)(uintptr_t)mpi->rtypes;

	if (oci_mpi_reduces(mpi->collective) && oci_port_op_retain(&mpi->op) != MPI_SUCCESS)
		return false;
	if (!keep_types(&mpi->stype, 1))
		goto release_op;
	if (!keep_types(&mpi->rtype, 1))
		goto release_stype;
	if (!keep_types(stypes, sblocks))
		goto release_rtype;
	if (keep_types(rtypes, rblocks))
		return true;
	release_types(stypes, sblocks);
release_rtype:
	release_types(&mpi->rtype, 1);
release_stype:
	release_types(&mpi->stype, 1);
release_op:
	if (oci_mpi_reduces(mpi->collective))
		oci_port_op_release(mpi->op);
	return false;
}

void oci_mpi_release_handles(const struct oci_mpi_call *mpi, uint32_t sblocks, uint32_t rblocks)
{
	release_types(&mpi->stype, 1);
	release_types(&mpi->rtype, 1);
	release_types(mpi->stypes, sblocks);
	release_types(mpi->rtypes, rblocks);
	if (oci_mpi_reduces(mpi->collective))
		oci_port_op_release(mpi->op);
}

int oci_mpi_keep(struct oci_mpi_operation *o)
{
	struct oci_mpi_call mpi = o->mpi;
	MPI_Datatype *types;
	int *ints;

	if (o->kept)
		return 0;
	forget_the_rest(&mpi, o->rank);
	if (mpi.scounts || mpi.rcounts) {
		o->kept_memory = malloc(o->size * (2 * sizeof(*types) + 4 * sizeof(*ints)));
		if (!o->kept_memory)
			return -ENOMEM;
		types = o->kept_memory;
		ints = (int *)(types + (size_t)2 * o->size);
		mpi.stypes = copy_types(&types, mpi.stypes, mpi.scounts, o->size);
		mpi.rtypes = copy_types(&types, mpi.rtypes, mpi.rcounts, o->size);
		mpi.scounts = copy_ints(&ints, mpi.scounts, o->size);
		mpi.sdispls = copy_ints(&ints, mpi.sdispls, o->size);
		mpi.rcounts = copy_ints(&ints, mpi.rcounts, o->size);
		mpi.rdispls = copy_ints(&ints, mpi.rdispls, o->size);
	}
	if (!oci_mpi_keep_handles(&mpi, o->size, o->size)) {
		free(o->kept_memory);
		o->kept_memory = NULL;
		return -ENOMEM;
	}
	o->mpi = mpi;
	o->kept = true;
	return 0;
}

void oci_mpi_unkeep(struct oci_mpi_operation *o)
{
	if (!o->kept)
		return;
	oci_mpi_release_handles(&o->mpi, o->size, o->size);
	free(o->kept_memory);
	o->kept_memory = NULL;
	o->kept = false;
}
