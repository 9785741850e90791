/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The short way of blocking calls to the engine: without blocks, and all layouts dense. A small
 * message is over in a hundred nanoseconds, of which describing a call in general would be a tenth.
 * The engine's call is the same either way.
 *
 * Inlined where the collective is a constant, so that only its own case is left.
 */
#ifndef OC_OMPI_FASTPATH_H
#define OC_OMPI_FASTPATH_H

#include "component.h"

static inline void *oci_ompi_first_byte(const void *user, const oci_ompi_type *type)
{
	/* Through an integer: MPI_BOTTOM is NULL, from which no pointer may be reckoned. */
	return user == MPI_IN_PLACE ? OC_IN_PLACE :
				      (void *)((uintptr_t)user + (uintptr_t)type->super.true_lb);
}

/* MPI_IN_PLACE makes the type meaningless. */
static inline bool oci_ompi_dense_side(const void *user, const oci_ompi_type *type)
{
	return user == MPI_IN_PLACE || oci_ompi_dense(type);
}

static inline bool oci_ompi_quick_reduction(const struct oci_mpi_call *c, bool receives, int count,
					    struct oc_call *engine,
					    struct oci_mpi_reduction *reduction)
{
	struct oci_port_type shape;

	if (!oci_ompi_dense(c->stype) || c->stype->super.size > OC_OP_MAX_BYTES)
		return false;
	oci_port_type_get(c->stype, &shape);
	oci_mpi_reduction_open(reduction, c->op, c->stype, &shape);
	engine->op = &reduction->op;
	engine->bytes = (size_t)count * shape.size;
	engine->send = oci_ompi_first_byte(c->sbuf, c->stype);
	engine->recv = receives ? oci_ompi_first_byte(c->rbuf, c->stype) : NULL;
	return true;
}

/* Both sides of a call whose blocks are alike; only what means something on this rank is read. */
static inline bool oci_ompi_quick_blocks(const struct oci_mpi_call *c, bool sends, bool receives,
					 struct oc_call *engine)
{
	if (sends && !oci_ompi_dense_side(c->sbuf, c->stype))
		return false;
	if (receives && !oci_ompi_dense_side(c->rbuf, c->rtype))
		return false;
	if (sends)
		engine->send = oci_ompi_first_byte(c->sbuf, c->stype);
	if (receives)
		engine->recv = oci_ompi_first_byte(c->rbuf, c->rtype);
	return true;
}

/* Fills in the engine's call, of a collective without counts; false: it needs the general way. */
static inline __attribute__((always_inline)) bool oci_ompi_quick(
	const struct oci_mpi_call *c, oci_ompi_comm *comm, struct oc_call *engine,
	struct oci_mpi_reduction *reduction)
{
	bool root = ompi_comm_rank(comm) == c->root, receives = oci_receives(c->collective, root);

	*engine = (struct oc_call){ .collective = c->collective, .root = (uint32_t)c->root };
	if (!oci_row_sends(c->collective))
		return true;
	if (oci_is_reduction(c->collective)) {
		/* Rank 0 of an Exscan gets nothing and may have no buffer. */
		if (oci_is_exclusive(c->collective))
			receives = ompi_comm_rank(comm) > 0 || c->sbuf == MPI_IN_PLACE;
		return oci_ompi_quick_reduction(
			c, receives, oci_sends_each(c->collective) ? c->rcount : c->scount, engine,
			reduction);
	}
	if (oci_size_is_sent(c->collective, root))
		engine->bytes = (size_t)c->scount * c->stype->super.size;
	else
		engine->bytes = (size_t)c->rcount * c->rtype->super.size;
	return oci_ompi_quick_blocks(c, oci_sends(c->collective, root), receives, engine);
}

#endif
