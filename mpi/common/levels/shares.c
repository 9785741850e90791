/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls of many bytes in shares, where all nodes have as many members. Each rank has a share of its
 * own, which goes between its peers, the ranks of its place on the other nodes: so no leader sends,
 * receives and adds up for all others, and each byte crosses the network as often as between
 * leaders. On the nodes a message is cut into shares; of blocks of all ranks those of a rank and
 * its peers are its share, of which each node's part is exchanged by a call of its own, as it lies.
 */
#include "common/levels/levels.h"

static bool on_root_node(const struct plan *p)
{
	return p->l->mine == p->root_node;
}

/* ---- a message --------------------------------------------------------------------------------
 */

/* Each but the last ones of a multiple of `unit` elements. */
static void cut_shares(struct plan *p, size_t all, size_t unit)
{
	size_t ranks = p->l->most, units = (all + unit - 1) / unit, end = 0;

	for (size_t i = 0; i < ranks; i++) {
		size_t start = end;

		end += (units / ranks + (i < units % ranks)) * unit;
		if (end > all)
			end = all;
		p->lane->displs[i] = (oci_port_count)start;
		p->lane->counts[i] = (oci_port_count)(end - start);
	}
}

static MPI_Count own_count(const struct plan *p)
{
	return p->lane->counts[oci_levels_local(p)];
}

/* The peers' part, but of no elements: the MPI's functions look for them before they call what we
 * call. */
static void between(struct plan *p, MPI_Count elements, const struct oci_mpi_call *part)
{
	if (elements)
		oci_levels_between(p, part);
}

static void *own_place(const struct plan *p, void *buffer, MPI_Datatype type)
{
	return oci_levels_at(buffer, p->lane->displs[oci_levels_local(p)], type);
}

/* ---- Bcast ------------------------------------------------------------------------------------
 *
 * The root scatters it on its node, and has that node get all of it once the others are on their
 * way. Ranks may have other types, so shares are of bytes, which lie in the buffer or in a copy.
 */

enum { LINE = 64 };

static void bcast_give(struct plan *p)
{
	bool root = oci_levels_is_root(p);

	oci_levels_bcast_bytes(p);
	cut_shares(p, p->bytes, LINE);
	if (on_root_node(p))
		oci_levels_on_node(
			p, PART(SCATTERV, scatterv, .sbuf = root ? p->message : NULL,
				.scounts = p->lane->counts, .sdispls = p->lane->displs,
				.stype = MPI_BYTE,
				.rbuf = root ? MPI_IN_PLACE : own_place(p, p->message, MPI_BYTE),
				.rcount = own_count(p), .rtype = MPI_BYTE,
				.root = oci_levels_root_here(p)));
}

static void bcast_between(struct plan *p)
{
	between(p, own_count(p),
		PART(BCAST, bcast, .buffer = own_place(p, p->message, MPI_BYTE),
		     .count = own_count(p), .type = MPI_BYTE, .root = (int)p->root_node));
}

/* The root's own buffer may not be written to, as an Allgatherv would. */
static void bcast_get(struct plan *p)
{
	if (on_root_node(p))
		oci_levels_on_node(p, PART(BCAST, bcast, .buffer = p->message,
					   .count = (MPI_Count)p->bytes, .type = MPI_BYTE,
					   .root = oci_levels_root_here(p)));
	else
		oci_levels_on_node(p, PART(ALLGATHERV, allgatherv, .sbuf = MPI_IN_PLACE,
					   .stype = MPI_BYTE, .rbuf = p->message,
					   .rcounts = p->lane->counts, .rdispls = p->lane->displs,
					   .rtype = MPI_BYTE));
}

static const struct step bcast[] = {
	{ .run = bcast_give }, { .run = bcast_between },
	{ .run = bcast_get },  { .run = oci_levels_bcast_close },
	{ .run = NULL },
};

/* ---- Reduce, Allreduce ------------------------------------------------------------------------
 *
 * p->message: this rank's share; of an Allreduce in its place in the result, where that is not the
 * operand, too.
 */

static void reduce_give(struct plan *p)
{
	const struct oci_mpi_call *c = p->call;
	bool beside = c->collective == OC_REDUCE || c->sbuf == MPI_IN_PLACE;

	cut_shares(p, (size_t)c->scount, 1);
	p->message = beside ? p->lane->of_all.bytes : own_place(p, c->rbuf, c->stype);
	oci_levels_on_node(p, PART(REDUCE_SCATTER, reduce_scatter, .sbuf = oci_levels_operand(p),
				   .rbuf = p->message, .rcounts = p->lane->counts,
				   .stype = c->stype, .op = c->op));
}

static void reduce_between(struct plan *p)
{
	const struct oci_mpi_call *c = p->call;
	bool root = on_root_node(p);

	between(p, own_count(p),
		PART(REDUCE, reduce, .sbuf = root ? MPI_IN_PLACE : p->message,
		     .rbuf = root ? p->message : NULL, .scount = own_count(p), .stype = c->stype,
		     .op = c->op, .root = (int)p->root_node));
}

static void reduce_get(struct plan *p)
{
	const struct oci_mpi_call *c = p->call;

	if (on_root_node(p))
		oci_levels_on_node(p, PART(GATHERV, gatherv, .sbuf = p->message,
					   .scount = own_count(p), .stype = c->stype,
					   .rbuf = oci_levels_is_root(p) ? c->rbuf : NULL,
					   .rcounts = p->lane->counts, .rdispls = p->lane->displs,
					   .rtype = c->stype, .root = oci_levels_root_here(p)));
}

static const struct step reduce[] = {
	{ .run = reduce_give },
	{ .run = reduce_between },
	{ .run = reduce_get },
	{ .run = NULL },
};

static void allreduce_between(struct plan *p)
{
	const struct oci_mpi_call *c = p->call;

	between(p, own_count(p),
		PART(ALLREDUCE, allreduce, .sbuf = MPI_IN_PLACE, .rbuf = p->message,
		     .scount = own_count(p), .stype = c->stype, .op = c->op));
}

static void allreduce_get(struct plan *p)
{
	const struct oci_mpi_call *c = p->call;
	bool in_place = c->sbuf == MPI_IN_PLACE;

	oci_levels_on_node(
		p, PART(ALLGATHERV, allgatherv, .sbuf = in_place ? p->message : MPI_IN_PLACE,
			.scount = own_count(p), .stype = c->stype, .rbuf = c->rbuf,
			.rcounts = p->lane->counts, .rdispls = p->lane->displs, .rtype = c->stype));
}

static const struct step allreduce[] = {
	{ .run = reduce_give },
	{ .run = allreduce_between },
	{ .run = allreduce_get },
	{ .run = NULL },
};

/* ---- blocks of all ranks ----------------------------------------------------------------------
 *
 * p->message: those of this rank and its peers, as they follow each other there. p->first: the node
 * whose ranks' blocks are exchanged; p->length: how much of p->message is before its block there.
 */

/* How much this rank has of the node at hand. */
static size_t own_of_node(const struct plan *p, const struct oci_mpi_side *b)
{
	return (size_t)oci_levels_count(b, p->l->peers[p->first]);
}

static void next_node(struct plan *p, size_t length)
{
	p->length += length;
	if (++p->first < p->l->nodes)
		oci_levels_again(p, 1);
}

/* The most that a rank and its peers have together, in elements. */
static size_t most_of_peers(const struct plan *p, const struct oci_mpi_side *b)
{
	const struct oci_mpi_levels *l = p->l;
	size_t most = 0;

	for (uint32_t i = 0; i < l->most; i++) {
		size_t sum = 0;

		for (uint32_t n = 0; n < l->nodes; n++)
			sum += (size_t)oci_levels_count(b, l->order[l->node_of[n].start + i]);
		most = sum > most ? sum : most;
	}
	return most;
}

/* ---- Allgather --------------------------------------------------------------------------------
 */

static void allgather_between(struct plan *p)
{
	const struct oci_mpi_side all = p->call->recv, own = oci_levels_own(p, &all);
	struct oci_port_type shape;
	MPI_Count bytes;

	oci_port_type_get(all.type, &shape);
	bytes = oci_levels_arrays(p, &all, p->l->peers, p->l->nodes, shape.size);
	p->message = p->lane->of_all.bytes;
	oci_levels_note(p, oci_port_pack((char *)p->message + p->lane->displs[p->l->mine],
					 own.buffer, (size_t)own.count, own.type));
	between(p, bytes,
		PART_V(p->alike, ALLGATHER, allgather, .sbuf = MPI_IN_PLACE, .stype = MPI_BYTE,
		       .rbuf = p->message, .rcount = (MPI_Count)p->bytes,
		       .rcounts = p->lane->counts, .rdispls = p->lane->displs, .rtype = MPI_BYTE));
}

static void allgather_get(struct plan *p)
{
	const struct oci_mpi_side all = p->call->recv;
	const char *own = (const char *)p->message + p->length;
	bool alike = p->alike && p->l->in_order;
	void *buffer = all.buffer;
	struct oci_port_type shape;
	size_t bytes;

	oci_port_type_get(all.type, &shape);
	bytes = own_of_node(p, &all) * shape.size;
	if (!oci_levels_node_arrays(p, &all, &p->l->node_of[p->first], 0)) {
		next_node(p, 0);
		return;
	}
	if (alike)
		buffer = oci_levels_at(buffer, p->lane->displs[0], all.type);
	oci_levels_on_node(p, PART_V(alike, ALLGATHER, allgather, .sbuf = own,
				     .scount = (MPI_Count)bytes, .stype = MPI_BYTE, .rbuf = buffer,
				     .rcount = all.count, .rcounts = p->lane->counts,
				     .rdispls = p->lane->displs, .rtype = all.type));
	next_node(p, bytes);
}

static const struct step allgather[] = {
	{ .run = allgather_between },
	{ .run = allgather_get },
	{ .run = NULL },
};

/* ---- Reduce_scatter ---------------------------------------------------------------------------
 *
 * The operands of a node's ranks are together where the ranks follow each other.
 */

static void reduce_scatter_give(struct plan *p)
{
	const struct oci_mpi_call *c = p->call;

	if (!p->first)
		oci_levels_cut_parts(p);
	p->message = p->lane->of_all.bytes;
	if (oci_levels_node_arrays(p, &p->parts, &p->l->node_of[p->first], 0))
		oci_levels_on_node(
			p, PART(REDUCE_SCATTER, reduce_scatter,
				.sbuf = oci_levels_at(oci_levels_operand(p), p->lane->displs[0],
						      c->stype),
				.rbuf = oci_levels_at(p->message, (MPI_Count)p->length, c->stype),
				.rcounts = p->lane->counts, .stype = c->stype, .op = c->op));
	next_node(p, own_of_node(p, &p->parts));
}

static void reduce_scatter_between(struct plan *p)
{
	const struct oci_mpi_call *c = p->call;
	MPI_Count elements = oci_levels_arrays(p, &p->parts, p->l->peers, p->l->nodes, 1);

	between(p, elements,
		PART(REDUCE_SCATTER, reduce_scatter, .sbuf = p->message, .rbuf = c->rbuf,
		     .rcounts = p->lane->counts, .stype = c->stype, .op = c->op));
}

static const struct step reduce_scatter[] = {
	{ .run = reduce_scatter_give },
	{ .run = reduce_scatter_between },
	{ .run = NULL },
};

/* ---- which, and what they need ----------------------------------------------------------------
 */

static const struct step *steps_of(enum oc_collective collective)
{
	switch (collective) {
	case OC_BCAST:
		return bcast;
	case OC_REDUCE:
		return reduce;
	case OC_ALLREDUCE:
		return allreduce;
	case OC_ALLGATHER:
	case OC_ALLGATHERV:
		return allgather;
	case OC_REDUCE_SCATTER:
	case OC_REDUCE_SCATTER_BLOCK:
		return reduce_scatter;
	default:
		return NULL;
	}
}

const struct step *oci_levels_shares(const struct plan *p)
{
	const struct step *steps = steps_of(p->call->collective);
	size_t bytes = p->bytes;

	if (!steps || !p->l->even || (steps == reduce_scatter && !p->l->in_order))
		return NULL;
	/* Of blocks those of a node's ranks. */
	if (steps == allgather || steps == reduce_scatter)
		bytes = p->alike ? bytes * p->l->most : bytes / p->l->nodes;
	return bytes >= oc_levels_shared(p->call->collective, p->l->most, !p->waits) ? steps : NULL;
}

size_t oci_levels_shares_need(const struct plan *p)
{
	struct oci_mpi_side all = p->call->recv;
	struct oci_port_type shape;

	switch (p->call->collective) {
	case OC_BCAST:
		return p->bytes;
	case OC_REDUCE:
	case OC_ALLREDUCE: /* of one element more than the mean */
		oci_port_type_get(p->call->stype, &shape);
		return (p->bytes / shape.size / p->l->most + 1) * (size_t)shape.extent;
	case OC_ALLGATHER:
		return p->bytes * p->l->nodes;
	case OC_ALLGATHERV:
		oci_port_type_get(all.type, &shape);
		return most_of_peers(p, &all) * shape.size;
	default:
		oci_port_type_get(p->call->stype, &shape);
		return most_of_peers(p, &all) * (size_t)shape.extent;
	}
}
