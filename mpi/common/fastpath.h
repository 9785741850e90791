/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The short way of a call to the engine, in all forms: its layouts are dense, so the engine's call
 * follows from the arguments, and nothing is to be packed, copied, kept or given back. A small
 * message is over in a hundred nanoseconds, of which opening a call in general would be a half. The
 * engine's call is the same either way.
 *
 * Inlined: where the collective is a constant, only its own case is left.
 */
#ifndef OC_MPI_FASTPATH_H
#define OC_MPI_FASTPATH_H

#include "common/operation.h"

/* oci_port_type_get(), or one that the compiler can look into. */
typedef void oci_mpi_look(MPI_Datatype type, struct oci_port_type *shape);

/* What comes of a side that means something on this rank for the engine. */
struct oci_mpi_short {
	void *first; /* byte, or OC_IN_PLACE */
	size_t mine; /* bytes of the message, of a block, or of this rank's own one */
	size_t any;  /* not 0: some of the counted blocks have bytes */
};

/* A place as a number: MPI_BOTTOM is NULL, from which no pointer may be reckoned. */
static inline void *oci_mpi_first_byte(const void *user, const struct oci_port_type *shape)
{
	return user == MPI_IN_PLACE ? OC_IN_PLACE :
				      (void *)((uintptr_t)user + (uintptr_t)shape->true_lb);
}

static inline __attribute__((always_inline)) bool oci_mpi_short_side(
	const struct oci_mpi_side *side, bool counted, uint32_t rank, uint32_t size,
	oci_mpi_look *look, struct oci_mpi_short *own, struct oc_block *few)
{
	struct oci_port_type shape = { .dense = true };

	/* MPI_IN_PLACE makes the type meaningless. */
	if (side->buffer != MPI_IN_PLACE)
		look(side->type, &shape);
	own->first = oci_mpi_first_byte(side->buffer, &shape);
	if (side->buffer == MPI_IN_PLACE || !shape.dense)
		return shape.dense;
	if (!counted)
		return !__builtin_mul_overflow((size_t)side->count, shape.size, &own->mine);
	for (uint32_t i = 0; i < size; i++) {
		MPI_Count count = oci_mpi_number(side->counts, side->long_counts, i);

		if (__builtin_mul_overflow((size_t)(count > 0 ? count : 0), shape.size,
					   &few[i].bytes))
			return false;
		few[i].offset = (size_t)oci_mpi_number(side->displs, side->long_displs, i) *
				(size_t)shape.extent;
		own->any |= few[i].bytes;
	}
	own->mine = few[rank].bytes;
	return true;
}

/* One that moves bytes. */
static inline __attribute__((always_inline)) bool oci_mpi_short_move(struct oci_mpi_operation *o,
								     const struct oci_mpi_call *c,
								     uint32_t rank, uint32_t size,
								     oci_mpi_look *look)
{
	bool root = (uint32_t)c->root == rank, sent = oci_counts_sent(c->collective),
	     received = oci_counts_received(c->collective);
	struct oci_mpi_short send = { 0 }, recv = { 0 };

	if (oci_sends(c->collective, root)) {
		if (!oci_mpi_short_side(&c->send, sent, rank, size, look, &send, o->few[0]))
			return false;
		o->call.send = send.first;
		o->call.send_blocks = sent && send.first != OC_IN_PLACE ? o->few[0] : NULL;
	}
	if (oci_receives(c->collective, root)) {
		if (!oci_mpi_short_side(&c->recv, received, rank, size, look, &recv, o->few[1]))
			return false;
		o->call.recv = recv.first;
		o->call.recv_blocks = received && recv.first != OC_IN_PLACE ? o->few[1] : NULL;
	}
	if (!sent || !received)
		o->call.bytes = oci_size_is_sent(c->collective, root) ? send.mine : recv.mine;
	/* Of no bytes as all members know: that is over. */
	if (!oci_is_v(c->collective))
		return o->call.bytes;
	return oci_is_rooted(c->collective) || sent || recv.any;
}

static inline __attribute__((always_inline)) bool oci_mpi_short_parts(struct oci_mpi_operation *o,
								      const struct oci_mpi_call *c,
								      uint32_t rank, uint32_t size,
								      size_t unit)
{
	size_t end = 0;

	for (uint32_t i = 0; i < size; i++) {
		o->few[0][i].offset = end;
		if (__builtin_mul_overflow((size_t)oci_mpi_number(c->rcounts, c->long_rcounts, i),
					   unit, &o->few[0][i].bytes) ||
		    __builtin_add_overflow(end, o->few[0][i].bytes, &end))
			return false;
	}
	o->call.recv_blocks = o->few[0];
	o->call.bytes = o->few[0][rank].bytes;
	return end;
}

static inline __attribute__((always_inline)) bool oci_mpi_short_reduction(
	struct oci_mpi_operation *o, const struct oci_mpi_call *c, uint32_t rank, uint32_t size,
	bool retain, oci_mpi_look *look)
{
	MPI_Count count = oci_sends_each(c->collective) ? c->rcount : c->scount;
	bool receives = oci_receives(c->collective, (uint32_t)c->root == rank);
	struct oci_port_type shape;

	/* A predefined operation has predefined types: they are there as long as the MPI is. */
	if (retain && !oci_port_op_id(c->op))
		return false;
	look(c->stype, &shape);
	if (!shape.dense || shape.size > OC_OP_MAX_BYTES)
		return false;
	if (oci_has_parts(c->collective)) {
		if (!oci_mpi_short_parts(o, c, rank, size, shape.size))
			return false;
	} else if (__builtin_mul_overflow((size_t)count, shape.size, &o->call.bytes) ||
		   !o->call.bytes) {
		return false;
	}
	oci_mpi_reduction_open(&o->reduction, c->op, c->stype, &shape);
	/* Rank 0 of an Exscan gets nothing and may have no buffer. */
	if (oci_is_exclusive(c->collective))
		receives = rank || c->sbuf == MPI_IN_PLACE;
	o->call.op = &o->reduction.op;
	o->call.send = oci_mpi_first_byte(c->sbuf, &shape);
	o->call.recv = receives ? oci_mpi_first_byte(c->rbuf, &shape) : NULL;
	return true;
}

/* oci_mpi_open() by the short way; false: this call does not go it, and there is nothing to close.
 */
static inline __attribute__((always_inline)) bool oci_mpi_open_short(struct oci_mpi_operation *o,
								     const struct oci_mpi_call *c,
								     uint32_t rank, uint32_t size,
								     bool retain,
								     oci_mpi_look *look)
{
	if (oci_is_neighbor(c->collective) || c->stypes || c->rtypes ||
	    (oci_has_counts(c->collective) && size > OCI_MPI_FEW))
		return false;
	o->call = (struct oc_call){ .collective = c->collective, .root = (uint32_t)c->root };
	o->status = 0;
	o->simple = true;
	if (!oci_row_sends(c->collective))
		return true;
	return oci_is_reduction(c->collective) ?
		       oci_mpi_short_reduction(o, c, rank, size, retain, look) :
		       oci_mpi_short_move(o, c, rank, size, look);
}

#endif
