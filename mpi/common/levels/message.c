/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What has one message or one vector, by leaders: Barrier, Bcast, Reduce, Allreduce, Scan and
 * Exscan. A large Bcast goes in pieces, so that both levels work at once.
 */
#include "common/levels/levels.h"

/*
 * Each piece of a Bcast is a message of its own between the leaders, so pieces are large. With 128
 * KiB, from 256 KiB on, one of 256 KiB or 1 MiB took 1.3 times MPICH's own time on two hosts
 * (nodes.csv at 334df8e), with 512 KiB 0.8 and 1.0 times (docs/results/nodes-bcast.csv).
 */

static void barrier_on_node(struct plan *p)
{
	oci_levels_on_node(p, PART(BARRIER, barrier, ));
}

static void barrier_between(struct plan *p)
{
	oci_levels_between(p, PART(BARRIER, barrier, ));
}

const struct step oci_levels_barrier[] = {
	{ .run = barrier_on_node },
	{ .run = barrier_between },
	{ .run = barrier_on_node },
	{ .run = NULL },
};

static void bcast_on_node(struct plan *p, void *buffer, MPI_Count count, MPI_Datatype type,
			  int root)
{
	oci_levels_on_node(p, PART(BCAST, bcast, .buffer = buffer, .count = count, .type = type,
				   .root = root));
}

/* ---- Bcast ------------------------------------------------------------------------------------
 *
 * Whole, or piece by piece: what its node gives, what goes between the leaders, and what its node
 * gets of it. While a piece is between the leaders, their nodes have the one before it in hand and
 * then the next one.
 */

/* Cut into pieces, or by the MPI. */
static bool is_cut(const struct plan *p)
{
	return p->bytes >= OC_LEVELS_IN_PIECES || p->l->nodes >= OCI_PORT_CUTS_FROM;
}

size_t oci_levels_bcast_copy(const struct plan *p)
{
	return is_cut(p) ? p->bytes : 0;
}

void oci_levels_bcast_bytes(struct plan *p)
{
	const struct oci_mpi_call *c = p->call;
	struct oci_port_type shape;

	oci_port_type_get(c->type, &shape);
	p->copied = !shape.dense;
	p->message = p->copied ? p->lane->of_all.bytes :
				 (void *)((uintptr_t)c->buffer + (uintptr_t)shape.true_lb);
	if (p->copied && oci_levels_is_root(p))
		oci_levels_note(p, oci_port_pack(p->message, c->buffer, (size_t)c->count, c->type));
}

static void bcast_open(struct plan *p)
{
	const struct oci_mpi_call *c = p->call;

	p->message = c->buffer;
	p->type = c->type;
	p->count = p->length = (size_t)c->count;
	if (!is_cut(p))
		return;
	oci_levels_bcast_bytes(p);
	p->type = MPI_BYTE;
	p->count = p->length = p->bytes;
	if (p->bytes >= OC_LEVELS_IN_PIECES)
		p->piece = p->length = OC_LEVELS_PIECE;
}

static void *elements_from(const struct plan *p, size_t first)
{
	return oci_levels_at(p->message, (MPI_Count)first, p->type);
}

/* A root that is no leader gives its leader the message with its whole node. */
static void bcast_give(struct plan *p)
{
	if (oci_levels_root_here(p))
		bcast_on_node(p, elements_from(p, p->first), (MPI_Count)p->length, p->type,
			      oci_levels_root_here(p));
}

static void bcast_between(struct plan *p)
{
	oci_levels_between(p, PART(BCAST, bcast, .buffer = elements_from(p, p->first),
				   .count = (MPI_Count)p->length, .type = p->type,
				   .root = (int)p->root_node));
}

static void get(struct plan *p, size_t first, size_t length)
{
	if (!oci_levels_root_here(p))
		bcast_on_node(p, elements_from(p, first), (MPI_Count)length, p->type, 0);
}

static void bcast_get_before(struct plan *p)
{
	size_t left = p->count - p->first - p->length;

	if (p->last)
		get(p, p->first - p->last, p->last);
	if (!left)
		return;
	p->first += p->length;
	p->last = p->length;
	if (left < p->length)
		p->length = left;
	oci_levels_again(p, 3);
}

static void bcast_get(struct plan *p)
{
	if (p->leader && p->piece)
		oci_levels_hear(p, p->waits);
	get(p, p->first, p->length);
}

void oci_levels_bcast_close(struct plan *p)
{
	const struct oci_mpi_call *c = p->call;

	if (p->copied && !oci_levels_is_root(p) && p->status == MPI_SUCCESS)
		p->status = oci_port_unpack(c->buffer, p->message, (size_t)c->count, c->type);
}

const struct step oci_levels_bcast[] = {
	{ .run = bcast_open },	  { .run = bcast_give, .beside = true },
	{ .run = bcast_between }, { .run = bcast_get_before, .beside = true },
	{ .run = bcast_get },	  { .run = oci_levels_bcast_close },
	{ .run = NULL },
};

/* ---- Reduce, Allreduce ------------------------------------------------------------------------
 *
 * p->message: where the leader has its node's operands reduced.
 */

/* In place means something on the leader alone; others have their operand in rbuf. */
static void give_operands(struct plan *p)
{
	const struct oci_mpi_call *c = p->call;
	bool in_place = c->sbuf == MPI_IN_PLACE && p->leader && p->message == c->rbuf;

	oci_levels_on_node(p, PART(REDUCE, reduce,
				   .sbuf = in_place ? MPI_IN_PLACE : oci_levels_operand(p),
				   .rbuf = p->message, .scount = c->scount, .stype = c->stype,
				   .op = c->op, .root = 0));
}

static void reduce_give(struct plan *p)
{
	p->message = oci_levels_is_root(p) ? p->call->rbuf : p->lane->of_leaders.bytes;
	give_operands(p);
}

static void reduce_between(struct plan *p)
{
	const struct oci_mpi_call *c = p->call;
	bool at_root = p->leader && p->l->mine == p->root_node, alone = !p->lane->node;

	oci_levels_between(p, PART(REDUCE, reduce,
				   .sbuf = alone   ? c->sbuf :
					   at_root ? MPI_IN_PLACE :
						     p->message,
				   .rbuf = at_root ? p->message : NULL, .scount = c->scount,
				   .stype = c->stype, .op = c->op, .root = (int)p->root_node));
}

/* From the leader to a root that is none: a Scatter of one block that is not empty. */
static void reduce_get(struct plan *p)
{
	const struct oci_mpi_call *c = p->call;
	struct oci_mpi_lane *lane = p->lane;
	uint32_t ranks = oci_levels_node(p)->ranks;
	bool root = oci_levels_is_root(p);

	if (!oci_levels_root_here(p))
		return;
	memset(lane->counts, 0, ranks * sizeof(lane->counts[0]));
	memset(lane->displs, 0, ranks * sizeof(lane->displs[0]));
	lane->counts[oci_levels_root_here(p)] = (oci_port_count)c->scount;
	oci_levels_on_node(p, PART(SCATTERV, scatterv, .sbuf = p->message, .scounts = lane->counts,
				   .sdispls = lane->displs, .stype = c->stype,
				   .rbuf = root ? c->rbuf : NULL, .rcount = root ? c->scount : 0,
				   .rtype = c->stype, .root = 0));
}

const struct step oci_levels_reduce[] = {
	{ .run = reduce_give },
	{ .run = reduce_between },
	{ .run = reduce_get },
	{ .run = NULL },
};

/* Between leaders it is in place on all or none, as MPI has it. */
static void allreduce_give(struct plan *p)
{
	const struct oci_mpi_call *c = p->call;

	p->message = c->rbuf;
	if (p->lane->node)
		give_operands(p);
	else if (c->sbuf != MPI_IN_PLACE)
		oci_levels_note(p, oci_levels_copy(c->rbuf, c->sbuf, (size_t)c->scount, c->stype));
}

static void allreduce_between(struct plan *p)
{
	const struct oci_mpi_call *c = p->call;

	oci_levels_between(p, PART(ALLREDUCE, allreduce, .sbuf = MPI_IN_PLACE, .rbuf = c->rbuf,
				   .scount = c->scount, .stype = c->stype, .op = c->op));
}

static void allreduce_get(struct plan *p)
{
	bcast_on_node(p, p->call->rbuf, p->call->scount, p->call->stype, 0);
}

const struct step oci_levels_allreduce[] = {
	{ .run = allreduce_give },
	{ .run = allreduce_between },
	{ .run = allreduce_get },
	{ .run = NULL },
};

/* ---- Scan, Exscan -----------------------------------------------------------------------------
 *
 * A rank's result is that of its node with the sum of the nodes before it in front. Nodes come in
 * the order of their ranks. p->message: the sum of this node, behind that of the nodes before.
 */

static void *sum_before(const struct plan *p)
{
	return p->lane->of_all.bytes;
}

static void scan_give(struct plan *p)
{
	const struct oci_mpi_call *c = p->call;

	p->message = oci_levels_at(sum_before(p), c->scount, c->stype);
	oci_levels_on_node(p,
			   PART(REDUCE, reduce, .sbuf = oci_levels_operand(p), .rbuf = p->message,
				.scount = c->scount, .stype = c->stype, .op = c->op, .root = 0));
}

static void scan_between(struct plan *p)
{
	const struct oci_mpi_call *c = p->call;

	oci_levels_between(p, PART(EXSCAN, exscan,
				   .sbuf = p->lane->node ? p->message : oci_levels_operand(p),
				   .rbuf = sum_before(p), .scount = c->scount, .stype = c->stype,
				   .op = c->op));
}

/* The rank alone on its node has its operand as the node's sum, and as the node's Scan. */
static void scan_alone(struct plan *p)
{
	const struct oci_mpi_call *c = p->call;

	if (!oci_is_exclusive(c->collective) && c->sbuf != MPI_IN_PLACE && p->status == MPI_SUCCESS)
		p->status = oci_levels_copy(c->rbuf, c->sbuf, (size_t)c->scount, c->stype);
}

static void scan_on_node(struct plan *p)
{
	if (p->lane->node)
		oci_levels_on_node(p, p->call);
	else
		scan_alone(p);
}

/* Nothing is before the first node. */
static void scan_get(struct plan *p)
{
	if (p->l->mine)
		bcast_on_node(p, sum_before(p), p->call->scount, p->call->stype, 0);
}

static void scan_close(struct plan *p)
{
	const struct oci_mpi_call *c = p->call;
	size_t count = (size_t)c->scount;

	if (!p->l->mine || p->status != MPI_SUCCESS)
		return;
	if (!oci_is_exclusive(c->collective) || oci_levels_local(p)) {
		p->status = oci_port_op_apply(c->op, sum_before(p), c->rbuf, count, c->stype);
		return;
	}
	p->status = oci_levels_copy(c->rbuf, sum_before(p), count, c->stype);
}

const struct step oci_levels_scan[] = {
	{ .run = scan_give }, { .run = scan_between }, { .run = scan_on_node },
	{ .run = scan_get },  { .run = scan_close },   { .run = NULL },
};
