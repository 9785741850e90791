/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a call that returns before it is over needs: types and operations that the program may free
 * at once, and copies of its counts and displacements. All of it or nothing.
 */
#include "common/operation.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A side that means nothing here may point anywhere. Its types become MPI_BYTE. */
static void forget_the_rest(struct oci_mpi_call *c, uint32_t rank)
{
	if (!oci_mpi_sends(c, rank)) {
		if (!oci_is_reduction(c->collective))
			c->stype = MPI_BYTE;
		c->scounts = c->sdispls = NULL;
		c->stypes = NULL;
	}
	if (!oci_mpi_receives(c, rank)) {
		c->rtype = MPI_BYTE;
		c->rcounts = c->rdispls = NULL;
		c->rtypes = NULL;
	}
	if (c->stypes || (c->graph && !c->graph->out.blocks))
		c->stype = MPI_BYTE;
	if (c->rtypes || (c->graph && !c->graph->in.blocks) || oci_is_reduction(c->collective))
		c->rtype = MPI_BYTE;
}

/* Any array's element has its place behind `bytes` of another one. */
static size_t whole(size_t bytes)
{
	return (bytes + sizeof(MPI_Count) - 1) / sizeof(MPI_Count) * sizeof(MPI_Count);
}

/* The types of blocks without elements may be anything; they become MPI_BYTE. */
static const MPI_Datatype *copy_types(char **next, const MPI_Datatype *from, const void *counts,
				      bool is_long, uint32_t blocks)
{
	MPI_Datatype *to = (MPI_Datatype *)(void *)*next;

	if (!from)
		return NULL;
	for (uint32_t i = 0; i < blocks; i++)
		to[i] = oci_mpi_number(counts, is_long, i) > 0 ? from[i] : MPI_BYTE;
	*next += whole(blocks * sizeof(*to));
	return to;
}

static const void *copy_numbers(char **next, const void *from, bool is_long, uint32_t blocks)
{
	size_t bytes = blocks * (is_long ? sizeof(MPI_Count) : sizeof(int));
	void *to = *next;

	if (!from)
		return NULL;
	memcpy(to, from, bytes);
	*next += whole(bytes);
	return to;
}

/* False: no memory. */
static bool copy_arrays(struct oci_mpi_call *c, uint32_t size, void **memory)
{
	uint32_t sent = oci_mpi_send_blocks(c, size), received = oci_mpi_recv_blocks(c, size);
	char *next;

	*memory = NULL;
	if (!c->scounts && !c->rcounts)
		return true;
	*memory =
		malloc(((size_t)sent + received) * (sizeof(MPI_Datatype) + 2 * sizeof(MPI_Count)) +
		       6 * sizeof(MPI_Count));
	if (!*memory)
		return false;
	next = *memory;
	c->stypes = copy_types(&next, c->stypes, c->scounts, c->long_scounts, sent);
	c->rtypes = copy_types(&next, c->rtypes, c->rcounts, c->long_rcounts, received);
	c->sdispls = copy_numbers(&next, c->sdispls, c->long_sdispls, sent);
	c->rdispls = copy_numbers(&next, c->rdispls, c->long_rdispls, received);
	c->scounts = copy_numbers(&next, c->scounts, c->long_scounts, sent);
	c->rcounts = copy_numbers(&next, c->rcounts, c->long_rcounts, received);
	return true;
}

/* One after the other, all types that the call has; NULL: no more. The arrays are the copies. */
static MPI_Datatype *type_at(const struct oci_mpi_call *c, uint32_t size, size_t i)
{
	if (i < 2)
		return (MPI_Datatype *)(i ? &c->rtype : &c->stype);
	i -= 2;
	if (c->stypes && i < oci_mpi_send_blocks(c, size))
		return (MPI_Datatype *)&c->stypes[i];
	if (c->stypes)
		i -= oci_mpi_send_blocks(c, size);
	return c->rtypes && i < oci_mpi_recv_blocks(c, size) ? (MPI_Datatype *)&c->rtypes[i] : NULL;
}

/* The operation, and the first `count` types. */
static void release_handles(const struct oci_mpi_call *c, uint32_t size, size_t count)
{
	MPI_Datatype *type;

	for (size_t i = 0; i < count && (type = type_at(c, size, i)); i++)
		oci_port_type_release(*type);
	if (oci_is_reduction(c->collective))
		oci_port_op_release(c->op);
}

/* False: nothing is retained. */
static bool retain_handles(struct oci_mpi_call *c, uint32_t size)
{
	MPI_Datatype *type;
	size_t count = 0;

	if (oci_is_reduction(c->collective) && oci_port_op_retain(&c->op) != MPI_SUCCESS)
		return false;
	while ((type = type_at(c, size, count)) && oci_port_type_retain(type) == MPI_SUCCESS)
		count++;
	if (type)
		release_handles(c, size, count);
	return !type;
}

int oci_mpi_retain(struct oci_mpi_operation *o)
{
	struct oci_mpi_call c = o->mpi;

	forget_the_rest(&c, o->rank);
	if (!copy_arrays(&c, o->size, &o->copies))
		return -ENOMEM;
	if (!retain_handles(&c, o->size)) {
		free(o->copies);
		return -ENOMEM;
	}
	o->mpi = c;
	o->retained = true;
	return 0;
}

void oci_mpi_release(struct oci_mpi_operation *o)
{
	if (!o->retained)
		return;
	release_handles(&o->mpi, o->size, SIZE_MAX);
	free(o->copies);
	o->retained = false;
}
