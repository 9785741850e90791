/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Gather and Scatter, with counts of each rank or one. Between nodes the root talks to the leaders,
 * whichever rank it is: so no byte makes a hop on its node, and each crosses the network once. Its
 * own node's blocks are moved by the team.
 *
 * A node's small blocks travel together, one message for all of them. Larger ones go straight
 * between the root and their rank, as there two levels gain nothing. The root knows the sizes of
 * all blocks, and a node's members those of their own node, so both sides know which.
 */
#include "common/levels/levels.h"

/* Of a node with several: the sum of its blocks is small enough. */
static bool travel_together(const struct plan *p, uint32_t n, size_t bytes)
{
	const struct node *node = &p->l->node_of[n];

	return node->ranks > 1 && p->together && bytes <= node->ranks * p->together;
}

/* Bytes of the blocks of this rank's node, in their order, as places; their sum. */
static size_t sizes_here(struct plan *p, const struct blocks *own)
{
	struct oci_mpi_levels *l = p->l;
	const struct node *node = oci_levels_node(p);
	struct oci_port_type shape;
	MPI_Aint bytes;
	size_t sum = 0;

	oci_port_type_get(own->type, &shape);
	bytes = (MPI_Aint)((size_t)own->count * shape.size);
	for (uint32_t i = 0; i < node->ranks; i++)
		l->places[i] = bytes;
	/* Where none travel together, nobody needs the others'. */
	if (!p->alike && p->together)
		oci_levels_on_node(p, PART(ALLGATHER, allgather, .sbuf = &bytes, .scount = 1,
					   .stype = MPI_AINT, .rbuf = l->places, .rcount = 1,
					   .rtype = MPI_AINT));
	for (uint32_t i = 0; i < node->ranks; i++)
		sum += (size_t)l->places[i];
	return sum;
}

/* The arrays of a v-variant on this node: of the root's blocks, or of bytes in the scratch. */
static void arrays_of(struct plan *p, const struct blocks *b)
{
	struct oci_mpi_levels *l = p->l;
	const struct node *node = oci_levels_node(p);
	size_t end = 0;

	for (uint32_t i = 0; i < node->ranks; i++) {
		if (b) {
			l->counts[i] =
				(oci_port_count)oci_levels_count(b, l->order[node->start + i]);
			l->displs[i] =
				(oci_port_count)oci_levels_displ(b, l->order[node->start + i]);
		} else {
			l->counts[i] = (oci_port_count)l->places[i];
			l->displs[i] = (oci_port_count)end;
			end += (size_t)l->places[i];
		}
	}
}

/* All blocks of each node have one size and lie together, on all members alike. */
static bool are_alike(const struct plan *p)
{
	return p->alike && p->l->in_order;
}

/* Where the blocks of this node begin; those in the scratch are of no other. */
static void *first_of(const struct plan *p, const struct blocks *b)
{
	bool all = p->l->mine == p->root_node;

	if (all && !oci_levels_is_root(p))
		return NULL;
	return all ? oci_levels_at(b->buffer, (MPI_Count)oci_levels_node(p)->first * b->count,
				   b->type) :
		     b->buffer;
}

/*
 * The root's messages with the other nodes, begun: one for those that travel together, else one for
 * each block.
 */
static void begin_with_nodes(struct plan *p, const struct blocks *b, bool sends, size_t *begun)
{
	struct oci_mpi_levels *l = p->l;

	for (uint32_t n = 0; n < l->nodes; n++) {
		const struct node *node = &l->node_of[n];
		bool all = travel_together(
			p, n, oci_levels_sum(p, b, node->start, node->start + node->ranks));
		uint32_t step = all ? node->ranks : 1;

		for (uint32_t k = node->start; n != p->root_node && k < node->start + node->ranks;
		     k += step) {
			struct run run;

			if (!oci_levels_sum(p, b, k, k + step))
				continue;
			if (p->status == MPI_SUCCESS)
				p->status = oci_levels_run_open(p, b, k, k + step, &run);
			if (p->status != MPI_SUCCESS)
				return;
			if (sends)
				oci_levels_send(p, run.buffer, run.count, run.type, l->order[k],
						begun);
			else
				oci_levels_receive(p, run.buffer, run.count, run.type, l->order[k],
						   begun);
			/* A pending message holds its type. */
			oci_levels_run_close(&run);
		}
	}
}

/* The block of a root that is alone on its node. */
static void own_block(struct plan *p, const struct blocks *all, const struct blocks *own,
		      bool gathers, size_t *begun)
{
	uint32_t root = p->comm->rank;
	void *block = oci_levels_at(all->buffer, oci_levels_displ(all, root), all->type);
	MPI_Count count = oci_levels_count(all, root);

	if (p->l->node || own->buffer == MPI_IN_PLACE)
		return;
	oci_levels_receive(p, gathers ? block : own->buffer, gathers ? count : own->count,
			   gathers ? all->type : own->type, root, begun);
	oci_levels_send(p, gathers ? own->buffer : block, gathers ? own->count : count,
			gathers ? own->type : all->type, root, begun);
}

/* ---- Gather -----------------------------------------------------------------------------------
 */

static void gather_on_node(struct plan *p, const struct blocks *to)
{
	const struct oci_mpi_call *c = p->call;
	struct oci_mpi_levels *l = p->l;

	if (are_alike(p))
		oci_levels_on_node(p, PART(GATHER, gather, .sbuf = c->sbuf, .scount = c->scount,
					   .stype = c->stype, .rbuf = first_of(p, to),
					   .rcount = to->count, .rtype = to->type,
					   .root = oci_levels_root_here(p)));
	else
		oci_levels_on_node(p, PART(GATHERV, gatherv, .sbuf = c->sbuf, .scount = c->scount,
					   .stype = c->stype, .rbuf = to->buffer,
					   .rcounts = l->counts, .rdispls = l->displs,
					   .rtype = to->type, .root = oci_levels_root_here(p)));
}

static void gather_to_root(struct plan *p)
{
	const struct blocks all = oci_levels_received(p->call), own = {
		.buffer = (void *)(uintptr_t)p->call->sbuf,
		.count = p->call->scount,
		.type = p->call->stype,
	};
	size_t begun = 0;

	if (oci_levels_is_root(p)) {
		begin_with_nodes(p, &all, false, &begun);
		own_block(p, &all, &own, true, &begun);
		arrays_of(p, &all);
	}
	gather_on_node(p, &all);
	oci_levels_await(p, begun);
}

void oci_levels_gather(struct plan *p)
{
	const struct oci_mpi_call *c = p->call;
	const struct blocks own = { .count = c->scount, .type = c->stype };
	const struct blocks between = { .buffer = p->l->of_leaders.bytes,
					.count = (MPI_Count)p->bytes,
					.type = MPI_BYTE };
	struct oci_mpi_levels *l = p->l;
	size_t begun = 0, sum;

	if (l->mine == p->root_node) {
		gather_to_root(p);
		return;
	}
	sum = sizes_here(p, &own);
	/* All of the node know of a failure. */
	if (!sum || p->status != MPI_SUCCESS)
		return;
	if (!travel_together(p, l->mine, sum)) {
		if (l->places[oci_levels_local(p)])
			oci_levels_send(p, c->sbuf, c->scount, c->stype, (uint32_t)c->root, &begun);
	} else {
		arrays_of(p, NULL);
		gather_on_node(p, &between);
		if (p->leader)
			oci_levels_send(p, l->of_leaders.bytes, (MPI_Count)sum, MPI_BYTE,
					(uint32_t)c->root, &begun);
	}
	oci_levels_await(p, begun);
}

/* ---- Scatter ----------------------------------------------------------------------------------
 */

static void scatter_on_node(struct plan *p, const struct blocks *from)
{
	const struct oci_mpi_call *c = p->call;
	struct oci_mpi_levels *l = p->l;

	if (are_alike(p))
		oci_levels_on_node(p, PART(SCATTER, scatter, .sbuf = first_of(p, from),
					   .scount = from->count, .stype = from->type,
					   .rbuf = c->rbuf, .rcount = c->rcount, .rtype = c->rtype,
					   .root = oci_levels_root_here(p)));
	else
		oci_levels_on_node(p,
				   PART(SCATTERV, scatterv, .sbuf = from->buffer,
					.scounts = l->counts, .sdispls = l->displs,
					.stype = from->type, .rbuf = c->rbuf, .rcount = c->rcount,
					.rtype = c->rtype, .root = oci_levels_root_here(p)));
}

static void scatter_from_root(struct plan *p)
{
	const struct blocks all = oci_levels_sent(p->call), own = {
		.buffer = p->call->rbuf,
		.count = p->call->rcount,
		.type = p->call->rtype,
	};
	size_t begun = 0;

	if (oci_levels_is_root(p)) {
		begin_with_nodes(p, &all, true, &begun);
		own_block(p, &all, &own, false, &begun);
		arrays_of(p, &all);
	}
	scatter_on_node(p, &all);
	oci_levels_await(p, begun);
}

void oci_levels_scatter(struct plan *p)
{
	const struct oci_mpi_call *c = p->call;
	const struct blocks own = { .count = c->rcount, .type = c->rtype };
	const struct blocks between = { .buffer = p->l->of_leaders.bytes,
					.count = (MPI_Count)p->bytes,
					.type = MPI_BYTE };
	struct oci_mpi_levels *l = p->l;
	size_t begun = 0, sum;

	if (l->mine == p->root_node) {
		scatter_from_root(p);
		return;
	}
	sum = sizes_here(p, &own);
	/* All of the node know of a failure. */
	if (!sum || p->status != MPI_SUCCESS)
		return;
	if (!travel_together(p, l->mine, sum)) {
		if (l->places[oci_levels_local(p)])
			oci_levels_receive(p, c->rbuf, c->rcount, c->rtype, (uint32_t)c->root,
					   &begun);
		oci_levels_await(p, begun);
		return;
	}
	if (p->leader)
		oci_levels_receive(p, l->of_leaders.bytes, (MPI_Count)sum, MPI_BYTE,
				   (uint32_t)c->root, &begun);
	oci_levels_await(p, begun);
	arrays_of(p, NULL);
	scatter_on_node(p, &between);
}
