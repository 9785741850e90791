/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gather-bcast: a Gather to rank 0 and a linear Bcast from it: all write their block to rank 0,
 * then all read the others' blocks from there (paper 000, V-C, on its smaller machines).
 *
 * gather-hierarchical: the second stage by hierarchy, in segments (bcast/bcast_hierarchical.c), as
 * the paper has it on its 48 cores. A rank then reads its own block back with the others.
 *
 * Wins where readers share a cache with rank 0; with many ranks its page tables and its memory are
 * what all wait for, as the paper says itself.
 * Cost: T_bcast(address) + alpha + n beta + l gamma(p - 1) ceil(n / s) + T_gather(ack)
 *       + T_bcast(flag) + [1, 2] alpha + (p - 1) (n beta + l gamma(p - 1) ceil(n / s))
 *       + T_gather(ack); the own block is copied beside, while rank 0 waits for the last. By
 * hierarchy the cost of a Bcast hierarchical of p n instead of the second line.
 */
#include "coll/bcast/hierarchical.h"

/* All blocks are with rank 0: its POST of step 2. */
static void build_first(struct oci_builder *b)
{
	oci_build_post(b, OCI_POST_ADDRESS, 1, 0);
	oci_build_copy(b, oci_block(OCI_BUF_SEND, 0), oci_block(OCI_BUF_RECV, 0));
	oci_build_wait_others_ack(b, 1);
	oci_build_post(b, OCI_POST_FLAG, 2, 0);
}

static void build_give(struct oci_builder *b)
{
	oci_build_wait_post(b, 0, 1, 1, 0);
	oci_build_push(b, oci_block(OCI_BUF_SEND, 0), 0,
		       oci_block(OCI_BUF_RECV, oci_builder_key(b)->v));
	oci_build_signal(b, 1, 0);
}

static void build(struct oci_builder *b)
{
	const struct oci_plan_key *key = oci_builder_key(b);
	uint32_t v = key->v, behind = key->size - 1 - v;
	struct oci_range mine = oci_block(OCI_BUF_RECV, v);

	if (!v) {
		build_first(b);
		oci_build_wait_others_ack(b, 2);
		return;
	}
	build_give(b);
	oci_build_copy(b, oci_block(OCI_BUF_SEND, 0), mine);
	oci_build_wait_post(b, 0, 1, 2, 0);
	oci_build_pull(b, oci_blocks(OCI_BUF_RECV, 0, v), 0, oci_blocks(OCI_BUF_RECV, 0, v));
	if (behind)
		oci_build_pull(b, oci_blocks(OCI_BUF_RECV, v + 1, behind), 0,
			       oci_blocks(OCI_BUF_RECV, v + 1, behind));
	oci_build_signal(b, 2, 0);
}

static void build_hierarchical(struct oci_builder *b)
{
	const struct oci_plan_key *key = oci_builder_key(b);
	struct oci_tree t = oci_tree_by_hierarchy(key, false);
	struct oci_range all = oci_blocks(OCI_BUF_RECV, 0, key->size);

	oci_build_segment(b, key->parameter);
	if (key->v) {
		build_give(b);
		oci_build_down(b, &t, all, all, 2);
		oci_build_signal(b, 2, 0);
	} else {
		build_first(b);
	}
	oci_build_wait_children(b, &t, 2);
}

/* Rank 0's blocks are one piece of segments, each a step of its own. */
static bool fits_hierarchical(const struct oci_shape *shape, uint32_t parameter)
{
	size_t all;

	return !__builtin_mul_overflow(shape->bytes, (size_t)shape->size, &all) &&
	       all / parameter < OCI_STEPS - 4;
}

static void cost_gather(struct oci_costing *c)
{
	uint32_t others = c->shape->size - 1;

	oci_cost_flags(c, 1);
	oci_cost_copies(c, OCI_MODEL_PUSH, 1, c->shape->bytes, others);
	oci_cost_flag_row(c, others);
}

static void cost_hierarchical(struct oci_costing *c)
{
	cost_gather(c);
	oci_cost_down(c, c->shape->size * c->shape->bytes);
	oci_cost_ops(c, 5);
}

static void cost(struct oci_costing *c)
{
	size_t n = c->shape->bytes;
	uint32_t others = c->shape->size - 1;

	cost_gather(c);
	oci_cost_flags(c, 1);
	oci_cost_copies(c, OCI_MODEL_PULL, 1, (size_t)others * n, others);
	/* Most ranks read what is before and what is behind their block. */
	if (others > 1)
		oci_cost_copies(c, OCI_MODEL_PULL, 1, 1, 1);
	oci_cost_flag_row(c, others);
	oci_cost_ops(c, 9);
}

const struct oci_algorithm oci_allgather_gather_bcast = {
	.name = "gather-bcast",
	.idea = "all write their block to rank 0, then all read the others' from it",
	.build = build,
	.cost = cost,
	.single_copy = true,
};

const struct oci_algorithm oci_allgather_gather_hierarchical = {
	.name = "gather-hierarchical",
	.idea = "all write their block to rank 0; from there as a Bcast by hierarchy, N bytes a time",
	.build = build_hierarchical,
	.cost = cost_hierarchical,
	.tries = oci_tries_segment,
	.parameter_default = OCI_SEGMENT_DEFAULT,
	.parameter_min = OCI_SEGMENT_MIN,
	.parameter_max = OCI_SEGMENT_MAX,
	.fits = fits_hierarchical,
	.single_copy = true,
	.by_hierarchy = true,
};
