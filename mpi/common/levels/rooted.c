/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Gather and Scatter, with counts of each rank or one. Between nodes the root talks to the leaders,
 * whichever rank it is: so no byte makes a hop on its node, and each crosses the network once. Its
 * own node's blocks are moved by the team.
 *
 * A node's blocks travel together, one message for all of them, or go straight between the root and
 * their rank, where that gains nothing. Both sides know which: the root has the sizes of all
 * blocks, and members of a node whose blocks may travel together learn those of their node. With
 * counts of each rank only a Gatherv's may.
 */
#include "common/levels/levels.h"

size_t oci_levels_together(const struct plan *p)
{
	return oc_levels_together(p->call->collective, p->l->most, p->alike ? p->bytes : 0);
}

/* Of a node with several: the sum of its blocks is small enough. */
static bool travel_together(const struct plan *p, uint32_t n, size_t bytes)
{
	const struct node *node = &p->l->node_of[n];
	size_t together = oci_levels_together(p);

	return node->ranks > 1 && together && bytes <= node->ranks * together;
}

static bool gathers(const struct plan *p)
{
	return oci_receives_each(p->call->collective);
}

/* This rank's own. */
static struct oci_mpi_side own_block(const struct plan *p)
{
	return gathers(p) ? p->call->send : p->call->recv;
}

/* A node's members learn each other's sizes; where none travel together, nobody needs them. */
static bool asks_sizes(const struct plan *p)
{
	return !p->alike && oci_levels_together(p);
}

/* Bytes of the blocks of this rank's node, in their order, as places; where nobody needs them, all
 * as this rank's. */
static void ask_sizes(struct plan *p)
{
	const struct oci_mpi_side own = own_block(p);
	uint32_t ranks = oci_levels_node(p)->ranks;
	MPI_Aint *places = p->lane->places;
	struct oci_port_type shape;

	oci_port_type_get(own.type, &shape);
	p->own_bytes = (MPI_Aint)((size_t)own.count * shape.size);
	for (uint32_t i = 0; i < ranks; i++)
		places[i] = p->own_bytes;
	if (asks_sizes(p))
		oci_levels_on_node(p, PART(ALLGATHER, allgather, .sbuf = &p->own_bytes, .scount = 1,
					   .stype = MPI_AINT, .rbuf = places, .rcount = 1,
					   .rtype = MPI_AINT));
}

/* All blocks of each node have one size and lie together, on all members alike. */
static bool are_alike(const struct plan *p)
{
	return p->alike && p->l->in_order;
}

/* Where the blocks of this node begin; those in the scratch are of no other. */
static void *first_of(const struct plan *p, const struct oci_mpi_side *b)
{
	bool all = p->l->mine == p->root_node;

	if (all && !oci_levels_is_root(p))
		return NULL;
	return all ? oci_levels_at(b->buffer,
				   (MPI_Count)p->l->order[oci_levels_node(p)->start] * b->count,
				   b->type) :
		     b->buffer;
}

/*
 * The root's messages with the other nodes: one for those that travel together, else one for each
 * block.
 */
static void begin_with_nodes(struct plan *p, const struct oci_mpi_side *b)
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
			int error;

			if (!oci_levels_sum(p, b, k, k + step))
				continue;
			error = oci_levels_run_open(p, b, k, k + step, &run);
			oci_levels_note(p, error);
			if (error != MPI_SUCCESS)
				run = (struct run){ .type = MPI_BYTE };
			oci_levels_transfer(p, !gathers(p), run.buffer, run.count, run.type,
					    l->order[k]);
			/* A pending message holds its type. */
			oci_levels_run_close(&run);
		}
	}
}

/* The block of a root that is alone on its node. */
static void move_own_block(struct plan *p, const struct oci_mpi_side *all)
{
	const struct oci_mpi_side own = own_block(p);
	uint32_t root = p->comm->rank;
	void *block = oci_levels_at(all->buffer, oci_levels_displ(all, root), all->type);

	if (p->lane->node || own.buffer == MPI_IN_PLACE)
		return;
	/* The receive first, whichever of the two that is. */
	for (int sends = 0; sends < 2; sends++)
		if (gathers(p) == (sends != 0))
			oci_levels_transfer(p, sends, own.buffer, own.count, own.type, root);
		else
			oci_levels_transfer(p, sends, block, oci_levels_count(all, root), all->type,
					    root);
}

/* Of this node: between the members' own blocks and all of them, at the root or the leader. */
static void on_node(struct plan *p, const struct oci_mpi_side *all)
{
	const struct oci_mpi_call *c = p->call;
	const struct oci_mpi_lane *lane = p->lane;
	int root = oci_levels_root_here(p);
	bool alike = are_alike(p);
	void *buffer = alike ? first_of(p, all) : all->buffer;

	if (gathers(p))
		oci_levels_on_node(p, PART_V(alike, GATHER, gather, .sbuf = c->sbuf,
					     .scount = c->scount, .stype = c->stype, .rbuf = buffer,
					     .rcount = all->count, .rcounts = lane->counts,
					     .rdispls = lane->displs, .rtype = all->type,
					     .root = root));
	else
		oci_levels_on_node(p, PART_V(alike, SCATTER, scatter, .sbuf = buffer,
					     .scount = all->count, .scounts = lane->counts,
					     .sdispls = lane->displs, .stype = all->type,
					     .rbuf = c->rbuf, .rcount = c->rcount,
					     .rtype = c->rtype, .root = root));
}

/* ---- steps ------------------------------------------------------------------------------------
 */

static bool is_roots_node(const struct plan *p)
{
	return p->l->mine == p->root_node;
}

static struct oci_mpi_side all_blocks(const struct plan *p)
{
	return gathers(p) ? p->call->recv : p->call->send;
}

/* Of a node without the root, at its leader. */
static struct oci_mpi_side blocks_between(const struct plan *p)
{
	return (struct oci_mpi_side){ .buffer = p->lane->of_leaders.bytes,
				      .count = (MPI_Count)p->bytes,
				      .type = MPI_BYTE };
}

static void rooted_open(struct plan *p)
{
	const struct oci_mpi_side all = all_blocks(p);

	/* Where sizes are unknown more may be sent than the root waits for: such messages, and
	 * those of later calls that come in their place, are of no bytes. */
	p->tag = p->lane->tag + asks_sizes(p);
	if (!is_roots_node(p)) {
		ask_sizes(p);
	} else if (oci_levels_is_root(p)) {
		begin_with_nodes(p, &all);
		move_own_block(p, &all);
		oci_levels_node_arrays(p, &all, oci_levels_node(p), 0);
	}
}

/* The arrays are of bytes in the scratch. */
static void decide(struct plan *p)
{
	const struct oci_mpi_lane *lane = p->lane;

	for (uint32_t i = 0; i < oci_levels_node(p)->ranks; i++) {
		lane->counts[i] = (oci_port_count)lane->places[i];
		lane->displs[i] = (oci_port_count)p->sum;
		p->sum += (size_t)lane->places[i];
	}
	p->together_here = p->sum && travel_together(p, p->l->mine, p->sum);
}

/* While the root's messages are under way. */
static void rooted_give(struct plan *p)
{
	const struct oci_mpi_side all = all_blocks(p), between = blocks_between(p);

	if (is_roots_node(p)) {
		on_node(p, &all);
		return;
	}
	p->sized = !asks_sizes(p) || p->status == MPI_SUCCESS;
	if (p->sized)
		decide(p);
	if (p->together_here && gathers(p))
		on_node(p, &between);
}

static void rooted_between(struct plan *p)
{
	const struct oci_mpi_side own = own_block(p);
	uint32_t root = (uint32_t)p->call->root;

	if (is_roots_node(p))
		return;
	/* Without the sizes nobody knows whether the root waits for the leader alone: of no bytes,
	 * these are for either. */
	if (p->leader && (p->together_here || !p->sized))
		oci_levels_transfer(p, gathers(p), p->lane->of_leaders.bytes, (MPI_Count)p->sum,
				    MPI_BYTE, root);
	else if (!p->together_here && p->own_bytes)
		oci_levels_transfer(p, gathers(p), own.buffer, own.count, own.type, root);
}

static void rooted_get(struct plan *p)
{
	const struct oci_mpi_side between = blocks_between(p);

	if (p->together_here && !gathers(p))
		on_node(p, &between);
}

const struct step oci_levels_rooted[] = {
	{ .run = rooted_open },	   { .run = rooted_give, .beside = true },
	{ .run = rooted_between }, { .run = rooted_get },
	{ .run = NULL },
};
