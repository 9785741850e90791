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

/* To that rank or from it; begun. */
static void transfer(struct plan *p, bool sends, void *buffer, MPI_Count count, MPI_Datatype type,
		     uint32_t rank, size_t *begun)
{
	if (sends)
		oci_levels_send(p, buffer, count, type, rank, begun);
	else
		oci_levels_receive(p, buffer, count, type, rank, begun);
}

/*
 * The root's messages with the other nodes, begun: one for those that travel together, else one for
 * each block.
 */
static void begin_with_nodes(struct plan *p, const struct blocks *b, bool gathers, size_t *begun)
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
			transfer(p, !gathers, run.buffer, run.count, run.type, l->order[k], begun);
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

	if (p->l->node || own->buffer == MPI_IN_PLACE)
		return;
	/* The receive first, whichever of the two that is. */
	for (int sends = 0; sends < 2; sends++)
		if (gathers == (sends != 0))
			transfer(p, sends, own->buffer, own->count, own->type, root, begun);
		else
			transfer(p, sends, block, oci_levels_count(all, root), all->type, root,
				 begun);
}

/* Of this node: between the members' own blocks and all of them, at the root or the leader. */
static void on_node(struct plan *p, bool gathers, const struct blocks *all)
{
	const struct oci_mpi_call *c = p->call;
	const struct oci_mpi_levels *l = p->l;
	int root = oci_levels_root_here(p);

	if (gathers && are_alike(p))
		oci_levels_on_node(p, PART(GATHER, gather, .sbuf = c->sbuf, .scount = c->scount,
					   .stype = c->stype, .rbuf = first_of(p, all),
					   .rcount = all->count, .rtype = all->type, .root = root));
	else if (gathers)
		oci_levels_on_node(p, PART(GATHERV, gatherv, .sbuf = c->sbuf, .scount = c->scount,
					   .stype = c->stype, .rbuf = all->buffer,
					   .rcounts = l->counts, .rdispls = l->displs,
					   .rtype = all->type, .root = root));
	else if (are_alike(p))
		oci_levels_on_node(p,
				   PART(SCATTER, scatter, .sbuf = first_of(p, all),
					.scount = all->count, .stype = all->type, .rbuf = c->rbuf,
					.rcount = c->rcount, .rtype = c->rtype, .root = root));
	else
		oci_levels_on_node(p, PART(SCATTERV, scatterv, .sbuf = all->buffer,
					   .scounts = l->counts, .sdispls = l->displs,
					   .stype = all->type, .rbuf = c->rbuf, .rcount = c->rcount,
					   .rtype = c->rtype, .root = root));
}

/* On the root's node. */
static void with_root(struct plan *p, bool gathers, const struct blocks *own)
{
	const struct blocks all = gathers ? oci_levels_received(p->call) : oci_levels_sent(p->call);
	size_t begun = 0;

	if (oci_levels_is_root(p)) {
		begin_with_nodes(p, &all, gathers, &begun);
		own_block(p, &all, own, gathers, &begun);
		arrays_of(p, &all);
	}
	on_node(p, gathers, &all);
	oci_levels_await(p, begun);
}

static void rooted(struct plan *p, bool gathers, const struct blocks *own)
{
	struct oci_mpi_levels *l = p->l;
	const struct blocks between = { .buffer = l->of_leaders.bytes,
					.count = (MPI_Count)p->bytes,
					.type = MPI_BYTE };
	uint32_t root = (uint32_t)p->call->root;
	size_t begun = 0, sum;
	bool together;

	if (l->mine == p->root_node) {
		with_root(p, gathers, own);
		return;
	}
	sum = sizes_here(p, own);
	/* All of the node know of a failure. */
	if (!sum || p->status != MPI_SUCCESS)
		return;
	together = travel_together(p, l->mine, sum);
	if (together)
		arrays_of(p, NULL);
	if (together && gathers)
		on_node(p, true, &between);
	if (together && p->leader)
		transfer(p, gathers, between.buffer, (MPI_Count)sum, MPI_BYTE, root, &begun);
	else if (!together && l->places[oci_levels_local(p)])
		transfer(p, gathers, own->buffer, own->count, own->type, root, &begun);
	oci_levels_await(p, begun);
	if (together && !gathers)
		on_node(p, false, &between);
}

void oci_levels_gather(struct plan *p)
{
	const struct oci_mpi_call *c = p->call;

	rooted(p, true,
	       &(struct blocks){ .buffer = (void *)(uintptr_t)c->sbuf,
				 .count = c->scount,
				 .type = c->stype });
}

void oci_levels_scatter(struct plan *p)
{
	const struct oci_mpi_call *c = p->call;

	rooted(p, false,
	       &(struct blocks){ .buffer = c->rbuf, .count = c->rcount, .type = c->rtype });
}
