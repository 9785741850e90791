/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What has one message or one vector: Barrier, Bcast, Reduce, Allreduce, Scan and Exscan. A large
 * Bcast goes in pieces, so that both levels work at once.
 */
#include "common/levels/levels.h"

/*
 * Bytes of a piece. A Bcast of 1 MiB took 311 to 343 us in such pieces and 660 to 674 whole (Open
 * MPI 4.1.4, 2 hosts of 2 ranks, Xeon, 2026-11-25; tests/hosts/measure.sh of this tree and of
 * 098fe24).
 */
#define PIECE ((size_t)128 << 10)

void oci_levels_barrier(struct plan *p)
{
	oci_levels_on_node(p, PART(BARRIER, barrier, ));
	oci_levels_between(p, PART(BARRIER, barrier, ));
	oci_levels_on_node(p, PART(BARRIER, barrier, ));
}

static void bcast_on_node(struct plan *p, void *buffer, MPI_Count count, MPI_Datatype type,
			  int root)
{
	oci_levels_on_node(p, PART(BCAST, bcast, .buffer = buffer, .count = count, .type = type,
				   .root = root));
}

/* ---- Bcast ------------------------------------------------------------------------------------
 */

/* A root that is no leader gives its leader the message with its whole node. */
static void bcast_give(struct plan *p, size_t first, size_t count)
{
	if (oci_levels_root_here(p))
		bcast_on_node(p, oci_levels_at(p->message, (MPI_Count)first, p->type),
			      (MPI_Count)count, p->type, oci_levels_root_here(p));
}

static void bcast_between(struct plan *p, size_t first, size_t count)
{
	oci_levels_between(p, PART(BCAST, bcast,
				   .buffer = oci_levels_at(p->message, (MPI_Count)first, p->type),
				   .count = (MPI_Count)count, .type = p->type,
				   .root = (int)p->root_node));
}

static void bcast_get(struct plan *p, size_t first, size_t count)
{
	if (!oci_levels_root_here(p))
		bcast_on_node(p, oci_levels_at(p->message, (MPI_Count)first, p->type),
			      (MPI_Count)count, p->type, 0);
}

size_t oci_levels_bcast_copy(size_t bytes)
{
	return bytes < 2 * PIECE ? 0 : bytes;
}

/* Ranks may have other types, so pieces are of bytes, which lie in the buffer or in a copy. */
void oci_levels_bcast(struct plan *p)
{
	static const struct stages stages = { bcast_give, bcast_between, bcast_get };
	const struct oci_mpi_call *c = p->call;
	struct oci_port_type shape;
	bool copied;

	p->message = c->buffer;
	p->type = c->type;
	if (p->bytes < 2 * PIECE) {
		oci_levels_run_stages(p, &stages, (size_t)c->count);
		return;
	}
	oci_port_type_get(c->type, &shape);
	copied = !shape.dense;
	p->message = copied ? p->l->of_all.bytes :
			      (void *)((uintptr_t)c->buffer + (uintptr_t)shape.true_lb);
	p->type = MPI_BYTE;
	oci_levels_cut(p, p->bytes, PIECE);
	if (copied && oci_levels_is_root(p))
		p->status = oci_port_pack(p->message, c->buffer, (size_t)c->count, c->type);
	oci_levels_run_stages(p, &stages, p->bytes);
	if (copied && !oci_levels_is_root(p) && p->status == MPI_SUCCESS)
		p->status = oci_port_unpack(c->buffer, p->message, (size_t)c->count, c->type);
}

/* ---- Reduce, Allreduce ------------------------------------------------------------------------
 *
 * p->message: where the leader has its node's operands reduced.
 */

static void *element(const struct plan *p, const void *buffer, size_t first)
{
	return oci_levels_at(buffer, (MPI_Count)first, p->call->stype);
}

/* In place means something on the leader alone; others have their operand in rbuf. */
static void reduce_give(struct plan *p, size_t first, size_t count)
{
	const struct oci_mpi_call *c = p->call;
	const void *own = c->sbuf == MPI_IN_PLACE ? c->rbuf : c->sbuf;
	bool in_place = c->sbuf == MPI_IN_PLACE && p->leader && p->message == c->rbuf;

	oci_levels_on_node(
		p, PART(REDUCE, reduce, .sbuf = in_place ? MPI_IN_PLACE : element(p, own, first),
			.rbuf = element(p, p->message, first), .scount = (MPI_Count)count,
			.stype = c->stype, .op = c->op, .root = 0));
}

static void reduce_between(struct plan *p, size_t first, size_t count)
{
	const struct oci_mpi_call *c = p->call;
	bool at_root = p->leader && p->l->mine == p->root_node, alone = !p->l->node;
	const void *own = alone ? c->sbuf : at_root ? MPI_IN_PLACE : p->message;

	oci_levels_between(p, PART(REDUCE, reduce,
				   .sbuf = own == MPI_IN_PLACE ? own : element(p, own, first),
				   .rbuf = at_root ? element(p, p->message, first) : NULL,
				   .scount = (MPI_Count)count, .stype = c->stype, .op = c->op,
				   .root = (int)p->root_node));
}

/* From the leader to a root that is none: a Scatter of one block that is not empty. */
static void reduce_get(struct plan *p, size_t first, size_t count)
{
	const struct oci_mpi_call *c = p->call;
	struct oci_mpi_levels *l = p->l;
	uint32_t ranks = oci_levels_node(p)->ranks;
	bool root = oci_levels_is_root(p);

	if (!oci_levels_root_here(p))
		return;
	memset(l->counts, 0, ranks * sizeof(l->counts[0]));
	memset(l->displs, 0, ranks * sizeof(l->displs[0]));
	l->counts[oci_levels_root_here(p)] = (oci_port_count)count;
	oci_levels_on_node(p, PART(SCATTERV, scatterv, .sbuf = element(p, p->message, first),
				   .scounts = l->counts, .sdispls = l->displs, .stype = c->stype,
				   .rbuf = root ? element(p, c->rbuf, first) : NULL,
				   .rcount = root ? (MPI_Count)count : 0, .rtype = c->stype,
				   .root = 0));
}

void oci_levels_reduce(struct plan *p)
{
	static const struct stages stages = { reduce_give, reduce_between, reduce_get };

	p->message = oci_levels_is_root(p) ? p->call->rbuf : p->l->of_leaders.bytes;
	oci_levels_run_stages(p, &stages, (size_t)p->call->scount);
}

static void allreduce_between(struct plan *p, size_t first, size_t count)
{
	const struct oci_mpi_call *c = p->call;
	const void *own = p->l->node ? MPI_IN_PLACE : c->sbuf;

	oci_levels_between(p, PART(ALLREDUCE, allreduce,
				   .sbuf = own == MPI_IN_PLACE ? own : element(p, own, first),
				   .rbuf = element(p, c->rbuf, first), .scount = (MPI_Count)count,
				   .stype = c->stype, .op = c->op));
}

static void allreduce_get(struct plan *p, size_t first, size_t count)
{
	bcast_on_node(p, element(p, p->call->rbuf, first), (MPI_Count)count, p->call->stype, 0);
}

void oci_levels_allreduce(struct plan *p)
{
	static const struct stages stages = { reduce_give, allreduce_between, allreduce_get };

	p->message = p->call->rbuf;
	oci_levels_run_stages(p, &stages, (size_t)p->call->scount);
}

/* ---- Scan, Exscan -----------------------------------------------------------------------------
 *
 * A rank's result is that of its node with the sum of the nodes before it in front. Nodes come in
 * the order of their ranks.
 */

/* The rank alone on its node has its operand as the node's sum, and as the node's Scan. */
static void scan_alone(struct plan *p, char *copy, bool exclusive)
{
	const struct oci_mpi_call *c = p->call;
	size_t count = (size_t)c->scount;

	if (exclusive || c->sbuf == MPI_IN_PLACE || p->status != MPI_SUCCESS)
		return;
	p->status = oci_port_pack(copy, c->sbuf, count, c->stype);
	if (p->status == MPI_SUCCESS)
		p->status = oci_port_unpack(c->rbuf, copy, count, c->stype);
}

void oci_levels_scan(struct plan *p)
{
	const struct oci_mpi_call *c = p->call;
	bool exclusive = oci_is_exclusive(c->collective), first = !oci_levels_local(p);
	size_t count = (size_t)c->scount;
	const void *own = c->sbuf == MPI_IN_PLACE ? c->rbuf : c->sbuf;
	/* The sum of the nodes before; of this node. */
	char *before = p->l->of_all.bytes, *sum = element(p, before, count);
	struct oci_mpi_call part = *c;

	oci_levels_on_node(p, PART(REDUCE, reduce, .sbuf = own, .rbuf = sum, .scount = c->scount,
				   .stype = c->stype, .op = c->op, .root = 0));
	part.long_counts = part.long_displs = OCI_PORT_LONG_COUNTS;
	oci_levels_between(p, PART(EXSCAN, exscan, .sbuf = p->l->node ? sum : own, .rbuf = before,
				   .scount = c->scount, .stype = c->stype, .op = c->op));
	if (p->l->node)
		oci_levels_on_node(p, &part);
	else
		scan_alone(p, sum, exclusive);
	/* Nothing is before the first node. */
	if (!p->l->mine)
		return;
	bcast_on_node(p, before, c->scount, c->stype, 0);
	if (p->status != MPI_SUCCESS)
		return;
	if (!exclusive || !first) {
		p->status = oci_port_op_apply(c->op, before, c->rbuf, count, c->stype);
		return;
	}
	p->status = oci_port_pack(sum, before, count, c->stype);
	if (p->status == MPI_SUCCESS)
		p->status = oci_port_unpack(c->rbuf, sum, count, c->stype);
}
