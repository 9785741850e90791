/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A call of no bytes is over at once, on every member: the MPI_ functions themselves return early
 * on a count of 0, each rank by its own count, while another rank may describe the same nothing as
 * one element of an empty type. If the latter entered the engine it would wait for the former. Of
 * the v-variants this holds where every rank knows all sizes (Allgatherv, Reduce_scatter); of the
 * others a rank may have nothing while others have something, and no MPI_ function returns early.
 */
#include "common/operation.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/*
 * More than a process can have is SIZE_MAX, here and where a side is opened, which then fails with
 * -ENOMEM: on all members whose own part is that large, and the others hear of it.
 */
static size_t times(size_t a, size_t b)
{
	size_t product;

	return __builtin_mul_overflow(a, b, &product) ? SIZE_MAX : product;
}

static size_t add(size_t a, size_t b)
{
	size_t sum;

	return __builtin_add_overflow(a, b, &sum) ? SIZE_MAX : sum;
}

static size_t type_bytes(MPI_Datatype type, size_t count)
{
	struct oci_port_type shape;

	oci_port_type_get(type, &shape);
	return times(count, shape.size);
}

static bool is_root(const struct oci_mpi_operation *o)
{
	return o->mpi.root >= 0 && (uint32_t)o->mpi.root == o->rank;
}

bool oci_mpi_sends(const struct oci_mpi_call *call, uint32_t rank)
{
	bool root = (uint32_t)call->root == rank;

	return oci_sends(call->collective, root) &&
	       (call->sbuf != MPI_IN_PLACE || !oci_may_send_in_place(call->collective, true));
}

bool oci_mpi_receives(const struct oci_mpi_call *call, uint32_t rank)
{
	bool root = (uint32_t)call->root == rank;

	return oci_receives(call->collective, root) &&
	       (call->rbuf != MPI_IN_PLACE || !oci_receives(call->collective, false));
}

uint32_t oci_mpi_send_blocks(const struct oci_mpi_call *call, uint32_t size)
{
	return call->graph ? call->graph->out.blocks : size;
}

uint32_t oci_mpi_recv_blocks(const struct oci_mpi_call *call, uint32_t size)
{
	return call->graph ? call->graph->in.blocks : size;
}

static size_t send_count(const struct oci_mpi_call *c, uint32_t of)
{
	return (size_t)oci_mpi_number(c->scounts, c->long_scounts, of);
}

static size_t recv_count(const struct oci_mpi_call *c, uint32_t of)
{
	return (size_t)oci_mpi_number(c->rcounts, c->long_rcounts, of);
}

static size_t all_recv_counts(const struct oci_mpi_call *c, uint32_t size)
{
	size_t total = 0;

	for (uint32_t i = 0; i < size; i++)
		total = add(total, recv_count(c, i));
	return total;
}

/* Elements of a reduction's result on a rank, and of what each rank gives to it. */
static size_t reduced_count(const struct oci_mpi_call *c, uint32_t rank)
{
	if (oci_has_counts(c->collective))
		return recv_count(c, rank);
	return (size_t)(oci_sends_each(c->collective) ? c->rcount : c->scount);
}

static size_t operand_count(const struct oci_mpi_operation *o)
{
	const struct oci_mpi_call *c = &o->mpi;

	if (oci_has_counts(c->collective))
		return all_recv_counts(c, o->size);
	return times(reduced_count(c, o->rank), oci_sends_each(c->collective) ? o->size : 1);
}

/* `bytes` of the engine's call, and the bytes of the call as far as all members know them. */
static void measure(struct oci_mpi_operation *o, size_t *bytes, size_t *known)
{
	const struct oci_mpi_call *c = &o->mpi;
	enum oc_collective collective = c->collective;

	*known = SIZE_MAX;
	if (!oci_row_sends(collective) ||
	    (oci_counts_sent(collective) && oci_counts_received(collective))) {
		*bytes = 0;
		if (c->grid && oci_function_is_uniform(c->function))
			*known = add(type_bytes(c->stype, (size_t)c->scount),
				     type_bytes(c->rtype, (size_t)c->rcount));
		return;
	}
	if (oci_is_reduction(collective)) {
		*bytes = type_bytes(c->stype, reduced_count(c, o->rank));
		*known = oci_has_counts(collective) ?
				 type_bytes(c->stype, all_recv_counts(c, o->size)) :
				 *bytes;
		return;
	}
	if (oci_size_is_sent(collective, is_root(o)))
		*bytes = type_bytes(c->stype, oci_counts_sent(collective) ? send_count(c, o->rank) :
									    (size_t)c->scount);
	else
		*bytes = type_bytes(c->rtype, oci_counts_received(collective) ?
						      recv_count(c, o->rank) :
						      (size_t)c->rcount);
	if (!oci_is_v(collective))
		*known = *bytes;
	else if (!oci_is_rooted(collective))
		*known = type_bytes(c->rtype, all_recv_counts(c, o->size));
}

static int open_send(struct oci_mpi_operation *o)
{
	const struct oci_mpi_call *c = &o->mpi;
	size_t count = (size_t)c->scount;

	if (oci_counts_sent(c->collective))
		return oci_mpi_data_open_blocks(
			&o->send,
			&(struct oci_mpi_blocks){ c->send, c->graph ? &c->graph->out : NULL,
						  !oci_function_sends_each(c->function) },
			o->size, o->few[0]);
	if (o->reduces)
		count = operand_count(o);
	else if (oci_sends_each(c->collective))
		count = times(count, o->size);
	return oci_mpi_data_open(&o->send, c->sbuf, count, c->stype, o->reduces);
}

/* With MPI_IN_PLACE a reduction's input lies where its result goes, and may be longer. */
static size_t result_count(const struct oci_mpi_operation *o)
{
	const struct oci_mpi_call *c = &o->mpi;

	if (c->sbuf == MPI_IN_PLACE)
		return operand_count(o);
	/* Rank 0 of an Exscan may have no buffer. */
	return oci_is_exclusive(c->collective) && !o->rank ? 0 : reduced_count(c, o->rank);
}

static int open_recv(struct oci_mpi_operation *o)
{
	const struct oci_mpi_call *c = &o->mpi;
	size_t count = (size_t)c->rcount;

	if (o->reduces)
		return oci_mpi_data_open(&o->recv, c->rbuf, result_count(o), c->stype, true);
	if (oci_counts_received(c->collective))
		return oci_mpi_data_open_blocks(
			&o->recv,
			&(struct oci_mpi_blocks){ c->recv, c->graph ? &c->graph->in : NULL, false },
			o->size, o->few[1]);
	if (oci_receives_each(c->collective))
		count = times(count, o->size);
	return oci_mpi_data_open(&o->recv, c->rbuf, count, c->rtype, false);
}

/* Where each rank's part of a Reduce_scatter lies in the dense input. */
static int open_parts(struct oci_mpi_operation *o)
{
	size_t offset = 0;

	o->parts = o->size > OCI_MPI_FEW ? malloc(o->size * sizeof(o->parts[0])) : o->few[0];
	if (!o->parts)
		return -ENOMEM;
	for (uint32_t i = 0; i < o->size; i++) {
		o->parts[i].offset = offset;
		o->parts[i].bytes = type_bytes(o->mpi.stype, recv_count(&o->mpi, i));
		offset = add(offset, o->parts[i].bytes);
	}
	return 0;
}

static int open_sides(struct oci_mpi_operation *o)
{
	int error = 0;

	if (oci_mpi_sends(&o->mpi, o->rank))
		error = open_send(o);
	else if (o->mpi.sbuf == MPI_IN_PLACE)
		o->send.bytes = OC_IN_PLACE;
	if (!error && oci_mpi_receives(&o->mpi, o->rank))
		error = open_recv(o);
	else if (!error && o->mpi.rbuf == MPI_IN_PLACE)
		o->recv.bytes = OC_IN_PLACE;
	if (!error && oci_has_parts(o->mpi.collective))
		error = open_parts(o);
	return error;
}

enum oci_mpi_path oci_mpi_open(struct oci_mpi_operation *o, const struct oci_mpi_call *call,
			       uint32_t rank, uint32_t size, const struct oci_mpi_graph *graph,
			       bool grid, bool retain, const char **reason)
{
	struct oci_port_type shape;
	size_t known;

	memset(o, 0, offsetof(struct oci_mpi_operation, few));
	o->mpi = *call;
	o->mpi.graph = graph;
	o->mpi.grid = grid;
	o->rank = rank;
	o->size = size;
	o->reduces = oci_is_reduction(call->collective);
	o->call.collective = call->collective;
	o->call.root = (uint32_t)call->root;
	measure(o, &o->call.bytes, &known);
	if (!known && oci_row_sends(call->collective))
		return OCI_MPI_NOTHING;
	if (o->reduces) {
		oci_port_type_get(call->stype, &shape);
		if (shape.size > OC_OP_MAX_BYTES) {
			*reason = "reductions of elements beyond 4096 bytes are not served";
			return OCI_MPI_BACK;
		}
	}
	if (oci_is_neighbor(call->collective) && !graph)
		o->status = -ENOMEM;
	if (!o->status && retain)
		o->status = oci_mpi_retain(o);
	if (!o->status && o->reduces)
		o->status = oci_mpi_reduction_open(&o->reduction, o->mpi.op, o->mpi.stype, &shape);
	if (o->reduces)
		o->call.op = &o->reduction.op;
	if (!o->status)
		o->status = open_sides(o);
	o->call.send = o->send.bytes;
	o->call.recv = o->recv.bytes;
	o->call.send_layout = o->send.laid_out ? &o->send.layout : NULL;
	o->call.recv_layout = o->recv.laid_out ? &o->recv.layout : NULL;
	o->call.send_blocks = o->send.blocks;
	o->call.recv_blocks = o->parts ? o->parts : o->recv.blocks;
	/* Its peers choose by the whole. */
	if (o->status && oci_has_parts(call->collective) && !o->parts)
		o->call.bytes = known;
	return OCI_MPI_ENGINE;
}

/* What this rank gives lies where it gets the result. */
static int load_in_place(struct oci_mpi_operation *o)
{
	size_t count = (size_t)o->mpi.rcount;

	if (!oci_receives_each(o->mpi.collective) || oci_trades(o->mpi.collective))
		return oci_mpi_data_pack(&o->recv);
	if (oci_counts_received(o->mpi.collective))
		return oci_mpi_data_pack_block(&o->recv, o->rank);
	return oci_mpi_data_pack_elements(&o->recv, o->rank * count, count);
}

void oci_mpi_load(struct oci_mpi_operation *o)
{
	int error = MPI_SUCCESS;

	o->reduction.failed = 0;
	if (o->simple || o->status)
		return;
	if (o->send.bytes == OC_IN_PLACE)
		error = load_in_place(o);
	else if (!oci_has_one_buffer(o->mpi.collective) || is_root(o))
		error = oci_mpi_data_pack(&o->send);
	if (error != MPI_SUCCESS)
		o->status = -EIO;
}

int oci_mpi_store(struct oci_mpi_operation *o)
{
	size_t count = SIZE_MAX;
	int error;

	if (OCI_LIKELY(o->simple))
		return o->call.op ? o->reduction.failed : MPI_SUCCESS;
	if (oci_has_one_buffer(o->mpi.collective))
		return is_root(o) ? MPI_SUCCESS : oci_mpi_data_unpack(&o->send, count);
	if (oci_is_exclusive(o->mpi.collective) && !o->rank)
		count = 0;
	else if (o->reduces && oci_sends_each(o->mpi.collective))
		count = reduced_count(&o->mpi, o->rank);
	error = oci_mpi_data_unpack(&o->recv, count);
	return error == MPI_SUCCESS ? o->reduction.failed : error;
}

void oci_mpi_close(struct oci_mpi_operation *o)
{
	if (OCI_LIKELY(o->simple))
		return;
	oci_mpi_data_close(&o->send);
	oci_mpi_data_close(&o->recv);
	oci_mpi_reduction_close(&o->reduction);
	if (o->parts != o->few[0])
		free(o->parts);
	o->parts = NULL;
	oci_mpi_release(o);
}
