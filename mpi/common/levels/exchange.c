/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What all ranks get of all: Allgather, Alltoall, Reduce_scatter. Each node's leader has its node's
 * blocks, the leaders exchange them, and each has what came for its node moved there. Where blocks
 * do not lie in the order of the nodes, a copy that does is between.
 */
#include "common/levels/levels.h"

static MPI_Count sum_of(const struct blocks *b, const struct plan *p, const struct node *node)
{
	MPI_Count sum = 0;

	if (!b->counts)
		return (MPI_Count)node->ranks * b->count;
	for (uint32_t k = node->start; k < node->start + node->ranks; k++)
		sum += oci_levels_count(b, p->l->order[k]);
	return sum;
}

/* Arrays of counts and places in units of `size` bytes, one behind the other: of this node's ranks;
 * of all nodes. */
static void arrays_of_ranks(struct plan *p, const struct blocks *b, size_t size)
{
	struct oci_mpi_levels *l = p->l;
	const struct node *node = oci_levels_node(p);
	MPI_Count end = 0;

	for (uint32_t i = 0; i < node->ranks; i++) {
		MPI_Count count = oci_levels_count(b, l->order[node->start + i]) * (MPI_Count)size;

		l->counts[i] = (oci_port_count)count;
		l->displs[i] = (oci_port_count)end;
		end += count;
	}
}

static void arrays_of_nodes(struct plan *p, const struct blocks *b, size_t size)
{
	struct oci_mpi_levels *l = p->l;
	MPI_Count end = 0;

	for (uint32_t n = 0; n < l->nodes; n++) {
		MPI_Count count = sum_of(b, p, &l->node_of[n]) * (MPI_Count)size;

		l->counts[n] = (oci_port_count)count;
		l->displs[n] = (oci_port_count)end;
		end += count;
	}
}

/* ---- Allgather --------------------------------------------------------------------------------
 */

/* This rank's block, also where it lies among the others already. */
static struct blocks own_block(const struct plan *p, const struct blocks *all)
{
	const struct oci_mpi_call *c = p->call;

	if (c->sbuf != MPI_IN_PLACE)
		return (struct blocks){ .buffer = (void *)(uintptr_t)c->sbuf,
					.count = c->scount,
					.type = c->stype };
	return (struct blocks){
		.buffer =
			oci_levels_at(all->buffer, oci_levels_displ(all, p->comm->rank), all->type),
		.count = oci_levels_count(all, p->comm->rank),
		.type = all->type,
	};
}

/* Each block from the copy to its place. */
static int place_blocks(const struct plan *p, const struct blocks *all, const char *copy)
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
static char *bytes_of_leader(const struct plan *p, const struct blocks *all, bool *copied)
{
	struct oci_port_type shape;
	struct run run;

	oci_port_type_get(all->type, &shape);
	*copied = !shape.dense || !oci_levels_lie_together(p, all, 0, p->comm->size);
	if (*copied)
		return p->l->of_leaders.bytes;
	oci_levels_run_open(p, all, 0, p->comm->size, &run);
	return (char *)((uintptr_t)run.buffer + (uintptr_t)shape.true_lb);
}

/* This node's blocks to its leader, among the others. */
static void allgather_give(struct plan *p, const struct blocks *all, char *bytes, bool copied)
{
	const struct blocks own = own_block(p, all);
	bool there = p->call->sbuf == MPI_IN_PLACE && p->leader && !copied;
	struct oci_mpi_levels *l = p->l;
	struct oci_port_type shape;

	oci_port_type_get(all->type, &shape);
	arrays_of_nodes(p, all, shape.size);
	if (p->leader)
		bytes += l->displs[l->mine];
	if (!l->node) {
		if (!there)
			p->status = oci_port_pack(bytes, own.buffer, (size_t)own.count, own.type);
		return;
	}
	arrays_of_ranks(p, all, shape.size);
	if (p->alike)
		oci_levels_on_node(
			p, PART(GATHER, gather, .sbuf = there ? MPI_IN_PLACE : own.buffer,
				.scount = own.count, .stype = own.type, .rbuf = bytes,
				.rcount = (MPI_Count)p->bytes, .rtype = MPI_BYTE, .root = 0));
	else
		oci_levels_on_node(p,
				   PART(GATHERV, gatherv, .sbuf = there ? MPI_IN_PLACE : own.buffer,
					.scount = own.count, .stype = own.type, .rbuf = bytes,
					.rcounts = l->counts, .rdispls = l->displs,
					.rtype = MPI_BYTE, .root = 0));
}

void oci_levels_allgather(struct plan *p)
{
	const struct blocks all = oci_levels_received(p->call);
	uint32_t size = p->comm->size;
	struct oci_mpi_levels *l = p->l;
	struct oci_port_type shape;
	char *bytes = NULL;
	bool copied = false;
	struct run run;

	oci_port_type_get(all.type, &shape);
	if (p->leader) {
		bytes = bytes_of_leader(p, &all, &copied);
		run = (struct run){ .buffer = bytes, .type = MPI_BYTE };
		run.count = (MPI_Count)oci_levels_sum(p, &all, 0, size);
	} else {
		p->status = oci_levels_run_open(p, &all, 0, size, &run);
	}
	allgather_give(p, &all, bytes, copied);
	arrays_of_nodes(p, &all, shape.size);
	oci_levels_between(p, PART(ALLGATHERV, allgatherv, .sbuf = MPI_IN_PLACE, .stype = MPI_BYTE,
				   .rbuf = bytes, .rcounts = l->counts, .rdispls = l->displs,
				   .rtype = MPI_BYTE));
	oci_levels_on_node(p, PART(BCAST, bcast, .buffer = run.buffer, .count = run.count,
				   .type = run.type, .root = 0));
	if (copied && p->status == MPI_SUCCESS)
		p->status = place_blocks(p, &all, bytes);
	oci_levels_run_close(&run);
}

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
	struct oci_mpi_levels *l = p->l;

	for (uint32_t n = 0; n < l->nodes; n++) {
		size_t row = (size_t)oci_levels_node(p)->ranks * p->bytes;

		l->counts[n] = (oci_port_count)(l->node_of[n].ranks * row);
		l->displs[n] = (oci_port_count)(l->node_of[n].start * row);
	}
}

static int packed(const struct run *run, char *bytes, bool unpack)
{
	return unpack ? oci_port_unpack(run->buffer, bytes, (size_t)run->count, run->type) :
			oci_port_pack(bytes, run->buffer, (size_t)run->count, run->type);
}

void oci_levels_alltoall(struct plan *p)
{
	const struct oci_mpi_call *c = p->call;
	struct oci_mpi_levels *l = p->l;
	uint32_t size = p->comm->size;
	const struct blocks to = oci_levels_received(c),
			    from = c->sbuf == MPI_IN_PLACE ? to : oci_levels_sent(c);
	size_t row = size * p->bytes;
	char *rows = l->of_leaders.bytes, *parcels = rows + l->most * row;
	struct run give = { 0 }, get = { 0 };

	p->status = oci_levels_run_open(p, &from, 0, size, &give);
	if (p->status == MPI_SUCCESS)
		p->status = oci_levels_run_open(p, &to, 0, size, &get);
	oci_levels_on_node(p, PART(GATHER, gather, .sbuf = give.buffer, .scount = give.count,
				   .stype = give.type, .rbuf = rows, .rcount = (MPI_Count)row,
				   .rtype = MPI_BYTE, .root = 0));
	if (!l->node && p->status == MPI_SUCCESS)
		p->status = packed(&give, rows, false);
	if (p->leader && p->status == MPI_SUCCESS) {
		rows_to_nodes(p, rows, parcels);
		arrays_of_parcels(p);
	}
	oci_levels_between(p, PART(ALLTOALLV, alltoallv, .sbuf = parcels, .scounts = l->counts,
				   .sdispls = l->displs, .stype = MPI_BYTE, .rbuf = rows,
				   .rcounts = l->counts, .rdispls = l->displs, .rtype = MPI_BYTE));
	if (p->leader && p->status == MPI_SUCCESS)
		nodes_to_rows(p, rows, parcels);
	oci_levels_on_node(p, PART(SCATTER, scatter, .sbuf = parcels, .scount = (MPI_Count)row,
				   .stype = MPI_BYTE, .rbuf = get.buffer, .rcount = get.count,
				   .rtype = get.type, .root = 0));
	if (!l->node && p->status == MPI_SUCCESS)
		p->status = packed(&get, parcels, true);
	oci_levels_run_close(&give);
	oci_levels_run_close(&get);
}

/* ---- Reduce_scatter ---------------------------------------------------------------------------
 */

/* Predefined types, whose elements lie alike everywhere. */
static void to_order(const struct plan *p, const struct blocks *parts, const char *sum, char *to,
		     size_t extent)
{
	for (uint32_t k = 0; k < p->comm->size; k++) {
		uint32_t rank = p->l->order[k];
		size_t bytes = (size_t)oci_levels_count(parts, rank) * extent;

		memcpy(to, sum + (size_t)oci_levels_displ(parts, rank) * extent, bytes);
		to += bytes;
	}
}

/* Where each rank's part begins in the vector: displacements of the counts. */
static void displs_of_parts(struct plan *p, struct blocks *parts)
{
	MPI_Aint end = 0;

	if (!parts->counts)
		return;
	for (uint32_t r = 0; r < p->comm->size; r++) {
		p->l->places[r] = end;
		end += (MPI_Aint)oci_levels_count(parts, r);
	}
	parts->displs = p->l->places;
	parts->long_displs = true;
}

void oci_levels_reduce_scatter(struct plan *p)
{
	const struct oci_mpi_call *c = p->call;
	struct oci_mpi_levels *l = p->l;
	struct blocks parts = {
		.counts = c->rcounts,
		.long_counts = c->long_counts,
		.count = c->rcount,
	};
	const void *own = c->sbuf == MPI_IN_PLACE ? c->rbuf : c->sbuf;
	struct oci_port_type shape;
	char *sum = l->of_leaders.bytes, *other, *mine;
	MPI_Count all = 0;

	displs_of_parts(p, &parts);
	for (uint32_t n = 0; n < l->nodes; n++)
		all += sum_of(&parts, p, &l->node_of[n]);
	oci_port_type_get(c->stype, &shape);
	other = (char *)oci_levels_at(sum, all, c->stype);
	oci_levels_on_node(p, PART(REDUCE, reduce, .sbuf = own, .rbuf = sum, .scount = all,
				   .stype = c->stype, .op = c->op, .root = 0));
	mine = other;
	if (p->leader && !l->in_order && p->status == MPI_SUCCESS) {
		to_order(p, &parts, l->node ? sum : own, other, (size_t)shape.extent);
		mine = sum;
		sum = other;
	} else if (!l->node) {
		sum = (void *)(uintptr_t)own;
	}
	arrays_of_nodes(p, &parts, 1);
	oci_levels_between(p, PART(REDUCE_SCATTER, reduce_scatter,
				   .sbuf = sum == c->rbuf ? MPI_IN_PLACE : sum,
				   .rbuf = l->node ? mine : c->rbuf, .rcounts = l->counts,
				   .stype = c->stype, .op = c->op));
	arrays_of_ranks(p, &parts, 1);
	oci_levels_on_node(p, PART(SCATTERV, scatterv, .sbuf = mine, .scounts = l->counts,
				   .sdispls = l->displs, .stype = c->stype, .rbuf = c->rbuf,
				   .rcount = oci_levels_count(&parts, p->comm->rank),
				   .rtype = c->stype, .root = 0));
}
