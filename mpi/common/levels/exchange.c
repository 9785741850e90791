/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What all ranks get of all: Allgather, Alltoall, Reduce_scatter. Each node's leader has its node's
 * blocks, the leaders exchange them, and each has what came for its node moved there. Where blocks
 * do not lie in the order of the nodes, a copy that does is between.
 */
#include "common/levels/levels.h"

static MPI_Count sum_of(const struct oci_mpi_side *b, const struct plan *p, const struct node *node)
{
	MPI_Count sum = 0;

	if (!b->counts)
		return (MPI_Count)node->ranks * b->count;
	for (uint32_t k = node->start; k < node->start + node->ranks; k++)
		sum += oci_levels_count(b, p->l->order[k]);
	return sum;
}

/* Counts and places of all nodes in units of `size` bytes, one behind the other. */
static void arrays_of_nodes(struct plan *p, const struct oci_mpi_side *b, size_t size)
{
	const struct oci_mpi_levels *l = p->l;
	struct oci_mpi_lane *lane = p->lane;
	MPI_Count end = 0;

	for (uint32_t n = 0; n < l->nodes; n++) {
		MPI_Count count = sum_of(b, p, &l->node_of[n]) * (MPI_Count)size;

		lane->counts[n] = (oci_port_count)count;
		lane->displs[n] = (oci_port_count)end;
		end += count;
	}
}

/* ---- Allgather --------------------------------------------------------------------------------
 */

struct oci_mpi_side oci_levels_own(const struct plan *p, const struct oci_mpi_side *all)
{
	if (p->call->sbuf != MPI_IN_PLACE)
		return p->call->send;
	return (struct oci_mpi_side){
		.buffer =
			oci_levels_at(all->buffer, oci_levels_displ(all, p->comm->rank), all->type),
		.count = oci_levels_count(all, p->comm->rank),
		.type = all->type,
	};
}

/* Each block from the copy to its place. */
static int place_blocks(const struct plan *p, const struct oci_mpi_side *all, const char *copy)
{
	struct oci_port_type shape;
	int error = MPI_SUCCESS;

	oci_port_type_get(all->type, &shape);
	for (uint32_t k = 0; k < p->comm->size && error == MPI_SUCCESS; k++) {
		uint32_t rank = p->l->order[k];
		size_t count = (size_t)oci_levels_count(all, rank);

		if (count)
			error = oci_port_unpack(
				oci_levels_at(all->buffer, oci_levels_displ(all, rank), all->type),
				copy, count, all->type);
		copy += count * shape.size;
	}
	return error;
}

/*
 * A leader has the blocks as bytes: where they are, if they lie together in the order of the nodes,
 * else in a copy. Between leaders all is of one type, as both MPIs take other algorithms, or cut
 * blocks otherwise, on ranks with other types.
 */
static void *bytes_of_leader(struct plan *p, const struct oci_mpi_side *all)
{
	struct oci_port_type shape;
	struct run run;

	oci_port_type_get(all->type, &shape);
	p->copied = !shape.dense || !oci_levels_lie_together(p, all, 0, p->comm->size);
	if (p->copied)
		return p->lane->of_leaders.bytes;
	oci_levels_run_open(p, all, 0, p->comm->size, &run);
	return (void *)((uintptr_t)run.buffer + (uintptr_t)shape.true_lb);
}

/* This node's blocks to its leader, among the others. */
static void give_block(struct plan *p, const struct oci_mpi_side *all)
{
	const struct oci_mpi_side own = oci_levels_own(p, all);
	bool there = p->call->sbuf == MPI_IN_PLACE && p->leader && !p->copied;
	struct oci_mpi_lane *lane = p->lane;
	struct oci_port_type shape;
	char *bytes = p->message;

	oci_port_type_get(all->type, &shape);
	arrays_of_nodes(p, all, shape.size);
	if (p->leader)
		bytes += lane->displs[p->l->mine];
	if (!lane->node) {
		if (!there)
			oci_levels_note(
				p, oci_port_pack(bytes, own.buffer, (size_t)own.count, own.type));
		return;
	}
	oci_levels_node_arrays(p, all, oci_levels_node(p), shape.size);
	oci_levels_on_node(p, PART_V(p->alike, GATHER, gather,
				     .sbuf = there ? MPI_IN_PLACE : own.buffer, .scount = own.count,
				     .stype = own.type, .rbuf = bytes,
				     .rcount = (MPI_Count)p->bytes, .rcounts = lane->counts,
				     .rdispls = lane->displs, .rtype = MPI_BYTE, .root = 0));
}

/* p->message: a leader's bytes. p->get: what the node gets of them. */
static void allgather_give(struct plan *p)
{
	const struct oci_mpi_side all = p->call->recv;

	if (p->leader) {
		p->message = bytes_of_leader(p, &all);
		p->get = (struct run){ .buffer = p->message, .type = MPI_BYTE };
		p->get.count = (MPI_Count)oci_levels_sum(p, &all, 0, p->comm->size);
	} else {
		oci_levels_note(p, oci_levels_run_open(p, &all, 0, p->comm->size, &p->get));
	}
	give_block(p, &all);
}

static bool nodes_are_alike(const struct oci_mpi_lane *lane, uint32_t nodes)
{
	for (uint32_t n = 1; n < nodes; n++)
		if (lane->counts[n] != lane->counts[0])
			return false;
	return true;
}

/* MPICH's MPI_Allgatherv goes in pieces of 32 KiB that wait for each other: of 2 MiB of two leaders
 * it takes twice as long as its MPI_Allgather. */
static void allgather_between(struct plan *p)
{
	const struct oci_mpi_side all = p->call->recv;
	struct oci_mpi_lane *lane = p->lane;
	struct oci_port_type shape;
	bool alike;

	oci_port_type_get(all.type, &shape);
	arrays_of_nodes(p, &all, shape.size);
	alike = nodes_are_alike(lane, p->l->nodes);
	oci_levels_between(p, PART_V(alike, ALLGATHER, allgather, .sbuf = MPI_IN_PLACE,
				     .stype = MPI_BYTE, .rbuf = p->message,
				     .rcount = lane->counts[0], .rcounts = lane->counts,
				     .rdispls = lane->displs, .rtype = MPI_BYTE));
}

static void allgather_get(struct plan *p)
{
	oci_levels_on_node(p, PART(BCAST, bcast, .buffer = p->get.buffer, .count = p->get.count,
				   .type = p->get.type, .root = 0));
}

static void allgather_close(struct plan *p)
{
	const struct oci_mpi_side all = p->call->recv;

	if (p->copied && p->status == MPI_SUCCESS)
		p->status = place_blocks(p, &all, p->message);
	oci_levels_run_close(&p->get);
}

const struct step oci_levels_allgather[] = {
	{ .run = allgather_give }, { .run = allgather_between },
	{ .run = allgather_get },  { .run = allgather_close },
	{ .run = NULL },
};

/* ---- Alltoall ---------------------------------------------------------------------------------
 *
 * Of small blocks. A leader has a row for each of its node's ranks, with a block for each rank in
 * the order of the nodes. To a node go the blocks of all rows for it, row by row; from each node
 * comes the same, and is turned into rows of what each rank gets.
 */

static void rows_to_nodes(const struct plan *p, const char *rows, char *parcels)
{
	const struct oci_mpi_levels *l = p->l;
	uint32_t ranks = oci_levels_node(p)->ranks;

	for (uint32_t n = 0; n < l->nodes; n++)
		for (uint32_t i = 0; i < ranks; i++) {
			const struct node *node = &l->node_of[n];
			size_t bytes = node->ranks * p->bytes;

			memcpy(parcels, rows + ((size_t)i * p->comm->size + node->start) * p->bytes,
			       bytes);
			parcels += bytes;
		}
}

static void nodes_to_rows(const struct plan *p, const char *parcels, char *rows)
{
	uint32_t ranks = oci_levels_node(p)->ranks;

	for (uint32_t k = 0; k < p->comm->size; k++)
		for (uint32_t i = 0; i < ranks; i++) {
			memcpy(rows + ((size_t)i * p->comm->size + k) * p->bytes, parcels,
			       p->bytes);
			parcels += p->bytes;
		}
}

static void arrays_of_parcels(struct plan *p)
{
	const struct oci_mpi_levels *l = p->l;

	for (uint32_t n = 0; n < l->nodes; n++) {
		size_t row = (size_t)oci_levels_node(p)->ranks * p->bytes;

		p->lane->counts[n] = (oci_port_count)(l->node_of[n].ranks * row);
		p->lane->displs[n] = (oci_port_count)(l->node_of[n].start * row);
	}
}

static int packed(const struct run *run, char *bytes, bool unpack)
{
	return unpack ? oci_port_unpack(run->buffer, bytes, (size_t)run->count, run->type) :
			oci_port_pack(bytes, run->buffer, (size_t)run->count, run->type);
}

static size_t row_bytes(const struct plan *p)
{
	return p->comm->size * p->bytes;
}

static char *rows_of(const struct plan *p)
{
	return p->lane->of_leaders.bytes;
}

static char *parcels_of(const struct plan *p)
{
	return rows_of(p) + p->l->most * row_bytes(p);
}

static void alltoall_give(struct plan *p)
{
	const struct oci_mpi_call *c = p->call;
	const struct oci_mpi_side *to = &c->recv, *from = c->sbuf == MPI_IN_PLACE ? to : &c->send;
	uint32_t size = p->comm->size;

	oci_levels_note(p, oci_levels_run_open(p, from, 0, size, &p->give));
	oci_levels_note(p, oci_levels_run_open(p, to, 0, size, &p->get));
	oci_levels_on_node(p,
			   PART(GATHER, gather, .sbuf = p->give.buffer, .scount = p->give.count,
				.stype = p->give.type, .rbuf = rows_of(p),
				.rcount = (MPI_Count)row_bytes(p), .rtype = MPI_BYTE, .root = 0));
	if (!p->lane->node && p->status == MPI_SUCCESS)
		p->status = packed(&p->give, rows_of(p), false);
}

static void alltoall_between(struct plan *p)
{
	const struct oci_mpi_lane *lane = p->lane;

	if (p->leader) {
		rows_to_nodes(p, rows_of(p), parcels_of(p));
		arrays_of_parcels(p);
	}
	oci_levels_between(p, PART(ALLTOALLV, alltoallv, .sbuf = parcels_of(p),
				   .scounts = lane->counts, .sdispls = lane->displs,
				   .stype = MPI_BYTE, .rbuf = rows_of(p), .rcounts = lane->counts,
				   .rdispls = lane->displs, .rtype = MPI_BYTE));
}

static void alltoall_get(struct plan *p)
{
	if (p->leader && p->status == MPI_SUCCESS)
		nodes_to_rows(p, rows_of(p), parcels_of(p));
	oci_levels_on_node(p, PART(SCATTER, scatter, .sbuf = parcels_of(p),
				   .scount = (MPI_Count)row_bytes(p), .stype = MPI_BYTE,
				   .rbuf = p->get.buffer, .rcount = p->get.count,
				   .rtype = p->get.type, .root = 0));
	if (!p->lane->node && p->status == MPI_SUCCESS)
		p->status = packed(&p->get, parcels_of(p), true);
}

static void alltoall_close(struct plan *p)
{
	oci_levels_run_close(&p->give);
	oci_levels_run_close(&p->get);
}

const struct step oci_levels_alltoall[] = {
	{ .run = alltoall_give }, { .run = alltoall_between },
	{ .run = alltoall_get },  { .run = alltoall_close },
	{ .run = NULL },
};

/* ---- Reduce_scatter ---------------------------------------------------------------------------
 */

static void to_order(const struct plan *p, const char *sum, char *to, size_t extent)
{
	for (uint32_t k = 0; k < p->comm->size; k++) {
		uint32_t rank = p->l->order[k];
		size_t bytes = (size_t)oci_levels_count(&p->parts, rank) * extent;

		memcpy(to, sum + (size_t)oci_levels_displ(&p->parts, rank) * extent, bytes);
		to += bytes;
	}
}

/* Each begins behind the one before: displacements of the counts. */
void oci_levels_cut_parts(struct plan *p)
{
	MPI_Aint end = 0;

	p->parts = p->call->recv;
	if (!p->parts.counts)
		return;
	for (uint32_t r = 0; r < p->comm->size; r++) {
		p->lane->places[r] = end;
		end += (MPI_Aint)oci_levels_count(&p->parts, r);
	}
	p->parts.displs = p->lane->places;
	p->parts.long_displs = true;
}

static void reduce_scatter_give(struct plan *p)
{
	const struct oci_mpi_call *c = p->call;
	MPI_Count all = 0;

	oci_levels_cut_parts(p);
	for (uint32_t n = 0; n < p->l->nodes; n++)
		all += sum_of(&p->parts, p, &p->l->node_of[n]);
	p->count = (size_t)all;
	if (p->lane->node)
		oci_levels_on_node(p, PART(REDUCE, reduce, .sbuf = oci_levels_operand(p),
					   .rbuf = p->lane->of_leaders.bytes, .scount = all,
					   .stype = c->stype, .op = c->op, .root = 0));
	else
		oci_levels_note(p, oci_levels_copy(p->lane->of_leaders.bytes, oci_levels_operand(p),
						   (size_t)all, c->stype));
}

/* p->message: what has come for this node, behind its sum or in its place. */
static void reduce_scatter_between(struct plan *p)
{
	const struct oci_mpi_call *c = p->call;
	struct oci_mpi_lane *lane = p->lane;
	const char *sum = lane->of_leaders.bytes;
	char *other = oci_levels_at(lane->of_leaders.bytes, (MPI_Count)p->count, c->stype);
	struct oci_port_type shape;

	p->message = other;
	if (p->leader && !p->l->in_order) {
		oci_port_type_get(c->stype, &shape);
		to_order(p, sum, other, (size_t)shape.extent);
		sum = other;
		p->message = lane->of_leaders.bytes;
	}
	arrays_of_nodes(p, &p->parts, 1);
	oci_levels_between(p, PART(REDUCE_SCATTER, reduce_scatter, .sbuf = sum,
				   .rbuf = lane->node ? p->message : c->rbuf,
				   .rcounts = lane->counts, .stype = c->stype, .op = c->op));
}

static void reduce_scatter_get(struct plan *p)
{
	const struct oci_mpi_call *c = p->call;

	oci_levels_node_arrays(p, &p->parts, oci_levels_node(p), 1);
	oci_levels_on_node(p,
			   PART(SCATTERV, scatterv, .sbuf = p->message, .scounts = p->lane->counts,
				.sdispls = p->lane->displs, .stype = c->stype, .rbuf = c->rbuf,
				.rcount = oci_levels_count(&p->parts, p->comm->rank),
				.rtype = c->stype, .root = 0));
}

const struct step oci_levels_reduce_scatter[] = {
	{ .run = reduce_scatter_give },
	{ .run = reduce_scatter_between },
	{ .run = reduce_scatter_get },
	{ .run = NULL },
};
