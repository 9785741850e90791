/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_Alloc_mem gives memory that the other ranks can map (oc_alloc), so that copies from and to it
 * need no system call. Where there is none, or an info key asks for something else, it is the
 * MPI's.
 *
 * A block's address does not tell whose it is: under `onecopy run --shared-heap` the MPI's own come
 * from the same heap. So those that are ours are in a tree. Not a hot path.
 */
#include "pmpi.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

/* What oc_alloc() promises. */
enum { ALIGN = 64 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *blocks; /* tsearch(): addresses that MPI_Alloc_mem has given and that are ours */

static int by_address(const void *a, const void *b)
{
	return ((uintptr_t)a > (uintptr_t)b) - ((uintptr_t)a < (uintptr_t)b);
}

static bool note(void *memory)
{
	bool noted;

	pthread_mutex_lock(&lock);
	noted = tsearch(memory, &blocks, by_address);
	pthread_mutex_unlock(&lock);
	return noted;
}

/* Was it ours? Not any more. */
static bool forget(const void *memory)
{
	bool known;

	pthread_mutex_lock(&lock);
	known = tdelete(memory, &blocks, by_address);
	pthread_mutex_unlock(&lock);
	return known;
}

/* NULL: none that others can map. */
static void *allocate(MPI_Aint bytes)
{
	void *memory = oc_alloc((size_t)bytes);

	if (memory && oc_is_shared(memory) && note(memory))
		return memory;
	oc_free(memory);
	return NULL;
}

/* Does our memory have all that a valid info asks for? Keys that we do not know are the MPI's. */
static bool fits(MPI_Info info)
{
	char text[MPI_MAX_INFO_VAL + 1];
	int keys = 0, found = 0;
	long alignment;
	char *end;

	if (PMPI(Info_get_nkeys)(info, &keys) != MPI_SUCCESS)
		return false;
	if (!keys)
		return true;
	if (keys > 1 || PMPI(Info_get)(info, "mpi_minimum_memory_alignment", MPI_MAX_INFO_VAL, text,
				       &found) != MPI_SUCCESS)
		return false;
	if (!found)
		return false;
	alignment = strtol(text, &end, 10);
	return end != text && !*end && alignment > 0 && ALIGN % alignment == 0;
}

int oci_pmpi_Alloc_mem(MPI_Aint bytes, MPI_Info info, void *where)
{
	const struct oci_pmpi_job *job = &oci_pmpi_job;
	void *ours, *theirs;
	int error;

	/* Alone on the node there is nobody to map it. Wrong calls are the MPI's to name. */
	if (!job->active || job->node_ranks < 2 || bytes <= 0 || !where)
		return PMPI(Alloc_mem)(bytes, info, where);
	if (info == MPI_INFO_NULL) {
		ours = allocate(bytes);
		if (!ours)
			return PMPI(Alloc_mem)(bytes, info, where);
		memcpy(where, &ours, sizeof(ours)); /* of any type of pointer */
		return MPI_SUCCESS;
	}
	/* The MPI first: it knows whether that is an info. */
	error = PMPI(Alloc_mem)(bytes, info, &theirs);
	if (error)
		return error;
	ours = fits(info) ? allocate(bytes) : NULL;
	memcpy(where, ours ? &ours : &theirs, sizeof(ours));
	return ours ? PMPI(Free_mem)(theirs) : MPI_SUCCESS;
}

int oci_pmpi_Free_mem(void *memory)
{
	if (!memory || !forget(memory))
		return PMPI(Free_mem)(memory);
	/* After MPI_Finalize the MPI says what it says then, and need not know of the block. */
	if (!oci_pmpi_job.begun)
		return PMPI(Free_mem)(NULL);
	oc_free(memory);
	return MPI_SUCCESS;
}
