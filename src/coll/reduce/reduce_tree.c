/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Up a tree: a rank pulls what its children have combined, piece by piece, adds its own and leaves
 * the sum where its parent pulls it.
 *
 * tree: of radix N + 1. Wins for medium messages, which sliced cuts into parts too small for a
 * system call. No rank's memory is read by two at once. Depth is what counts as N copies follow
 * each other in a level: N = 1, a binomial tree. Cost, with d = ceil(log_(N+1) p) and m = ceil(n /
 * g) pieces of g = OCI_REDUCE_BYTES: T_gather(address) + m N d (alpha + g beta + l ceil(g / s) + g
 * reduced + T_flag), what the root does: it has N d children, and the others keep up. An inner rank
 * has n bytes of memory for its sum. Not in the papers, which leave reductions out.
 *
 * hierarchical: the ranks of a cache are added up by their leader, those of a NUMA node by theirs
 * and so on: the tree of Bcast hierarchical (paper 000, IV) the other way round. Wins for medium
 * and large messages where links between packages are slow: each carries the message once. The
 * parameter is the segment, in bytes. Cost, with h levels, c children of the root in all of them
 * and m segments of g bytes: T_gather(address) + m c (alpha + g beta + l ceil(g / s) + g reduced +
 * T_flag)
 * + h T_flag. A flat team is one group.
 *
 * An operation that does not commute is combined in order of the ranks at rank 0, from where the
 * root pulls the result: alpha + g beta + l ceil(g / s) more. By hierarchy it goes over that tree
 * where groups are runs of consecutive ranks, led by their lowest, else over a binomial one.
 */
#include "coll/build.h"
#include "coll/tree.h"

/* Steps of ACK: what I read of my children is read; the root has the result. */
enum { READ = 1, RESULT = 2 };

static void build_sums(struct oci_builder *b, const struct oci_tree *t, bool result)
{
	struct oci_range acc = oci_segmented(oci_block(result ? OCI_BUF_ACC : OCI_BUF_WORK, 0));

	oci_build_work(b, 1);
	oci_build_loop(b, oci_block(OCI_BUF_SEND, 0));
	oci_build_sum(b, t, OCI_BUF_WORK, acc);
	if (result)
		oci_build_copy(b, acc, oci_segmented(oci_block(OCI_BUF_RECV, 0)));
	else
		oci_build_post(b, OCI_POST_ADDRESS, 1, 1);
	oci_build_next(b);
	oci_build_signal(b, READ, 0);
}

/* The root of the call is not that of the tree. */
static void build_fetch(struct oci_builder *b, uint32_t top)
{
	struct oci_range to = oci_block(OCI_BUF_RECV, 0);

	oci_build_work(b, 1);
	oci_build_loop(b, to);
	oci_build_wait_post(b, top, 1, 1, 1);
	oci_build_pull(b, oci_segmented(to), top, oci_segmented(oci_block(OCI_BUF_WORK, 0)));
	oci_build_next(b);
	oci_build_signal(b, RESULT, 0);
}

static void build(struct oci_builder *b)
{
	struct oci_tree tree = oci_sum_tree(b), *t = &tree;
	uint32_t v = oci_builder_key(b)->v, top = oci_tree_top(t);

	if (oci_builder_key(b)->size == 1) {
		oci_build_copy(b, oci_block(OCI_BUF_SEND, 0), oci_block(OCI_BUF_RECV, 0));
		return;
	}
	if (oci_tree_is_leaf(t, v))
		oci_build_post(b, OCI_POST_ADDRESS, 1, 0);
	else
		build_sums(b, t, v == top && v == 0);
	if (v == 0 && v != top)
		build_fetch(b, top);
	if (v != top)
		oci_build_wait_ack(b, oci_tree_parent(t, v), 1, READ, 0);
	else if (v != 0)
		oci_build_wait_ack(b, 0, 1, RESULT, 0);
}

static void cost_tree(struct oci_costing *c)
{
	oci_cost_sum(c, OCI_REDUCE_BYTES, oci_cost_fanin(c));
	oci_cost_flags(c, 1);
}

static void cost_hierarchical(struct oci_costing *c)
{
	uint32_t children, levels = oci_cost_tree(c->shape, &children);

	oci_cost_sum(c, c->parameter, children);
	oci_cost_flags(c, levels);
}

const struct oci_algorithm oci_reduce_tree = {
	.name = "tree",
	.idea = "up a k-nomial tree; each rank pulls and adds what its children have",
	.build = build,
	.fits = oci_fits_work_one,
	.cost = cost_tree,
	.tries = oci_tries_radix,
	.parameter_default = 1,
	.parameter_min = 1,
	.single_copy = true,
};

const struct oci_algorithm oci_reduce_hierarchical = {
	.name = "hierarchical",
	.idea = "inside each shared cache and NUMA node, then between them, in segments of N bytes",
	.build = build,
	.fits = oci_fits_work_one,
	.cost = cost_hierarchical,
	.tries = oci_tries_segment,
	.parameter_default = OCI_SEGMENT_DEFAULT,
	.parameter_min = OCI_SEGMENT_MIN,
	.parameter_max = OCI_SEGMENT_MAX,
	.single_copy = true,
	.by_hierarchy = true,
};
