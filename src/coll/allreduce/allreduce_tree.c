/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Up a tree as in Reduce, sums being left in the receive buffers; then the result comes down the
 * same tree, piece by piece.
 *
 * tree: of radix N + 1. Wins for medium messages, which sliced cuts into parts too small for a
 * system call. Cost, with d = ceil(log_(N+1) p) and m = ceil(n / g) pieces of g = OCI_REDUCE_BYTES:
 * T_gather(address) + m N d (alpha + g beta + l ceil(g / s) + g reduced + T_flag), as in Reduce,
 * and for the last piece on its way down alpha + g beta + l gamma(N d) ceil(g / s) + T_flag, as N d
 * ranks read from rank 0, and (d - 1) (alpha + g beta + l ceil(g / s) + T_flag); + T_gather(ack).
 * Not in the papers, which leave reductions out.
 *
 * hierarchical: the tree of paper 000, IV. Wins for medium and large messages where links between
 * packages are slow: each carries the message once in each direction. The parameter is the segment,
 * in bytes. Cost: that of Reduce hierarchical, and for the last segment on its way down alpha
 * + g beta + l gamma(c) ceil(g / s) + T_flag, and (h - 1) (alpha + g beta + l ceil(g / s) +
 * T_flag);
 * + T_gather(ack). A flat team is one group.
 *
 * An operation that does not commute: as in Reduce.
 */
#include "coll/build.h"
#include "coll/tree.h"

static void build_up(struct oci_builder *b, const struct oci_tree *t)
{
	struct oci_range acc = oci_segmented(oci_block(OCI_BUF_ACC, 0));

	oci_build_loop(b, oci_block(OCI_BUF_SEND, 0));
	oci_build_sum(b, t, OCI_BUF_RECV, acc);
	oci_build_copy(b, acc, oci_segmented(oci_block(OCI_BUF_RECV, 0)));
	oci_build_post(b, OCI_POST_ADDRESS, 1, 1);
	oci_build_next(b);
}

/* By its POST a rank says that its sum is there: at the top it is the result. The others say by
 * ACK that they have the result. */
static void build_down(struct oci_builder *b, const struct oci_tree *t)
{
	struct oci_range recv = oci_block(OCI_BUF_RECV, 0);
	uint32_t parent = oci_tree_parent(t, oci_builder_key(b)->v);

	oci_build_loop(b, recv);
	oci_build_wait_post(b, parent, 1, 1, 1);
	if (parent != oci_tree_top(t))
		oci_build_wait_ack(b, parent, 1, 1, 1);
	oci_build_pull(b, oci_segmented(recv), parent, oci_segmented(recv));
	oci_build_signal(b, 1, 1);
	oci_build_next(b);
}

static void build(struct oci_builder *b)
{
	struct oci_tree tree = oci_sum_tree(b), *t = &tree;
	uint32_t v = oci_builder_key(b)->v, child = v;

	if (oci_builder_key(b)->size == 1) {
		oci_build_copy(b, oci_block(OCI_BUF_SEND, 0), oci_block(OCI_BUF_RECV, 0));
		return;
	}
	if (oci_tree_is_leaf(t, v))
		oci_build_post(b, OCI_POST_ADDRESS, 1, 0);
	else
		build_up(b, t);
	if (v != oci_tree_top(t))
		build_down(b, t);
	if (oci_tree_is_leaf(t, v))
		return;
	/* The last acknowledgement has the number of the last segment, which no plan knows. */
	oci_build_loop(b, oci_block(OCI_BUF_RECV, 0));
	while ((child = oci_tree_ascending(t, v, child)) != v)
		oci_build_wait_ack(b, child, 1, 1, 1);
	oci_build_next(b);
}

static void cost_tree(struct oci_costing *c)
{
	uint32_t children = oci_cost_fanin(c);

	oci_cost_sum(c, OCI_REDUCE_BYTES, children);
	oci_cost_result(c, OCI_REDUCE_BYTES, children,
			oci_cost_rounds(c->shape->size, c->parameter + 1));
}

static void cost_hierarchical(struct oci_costing *c)
{
	uint32_t children, levels = oci_cost_tree(c->shape, &children);

	oci_cost_sum(c, c->parameter, children);
	oci_cost_result(c, c->parameter, children, levels);
}

const struct oci_algorithm oci_allreduce_tree = {
	.name = "tree",
	.idea = "up a k-nomial tree, each rank adding what its children have, and down again",
	.build = build,
	.cost = cost_tree,
	.tries = oci_tries_radix,
	.parameter_default = 1,
	.parameter_min = 1,
	.single_copy = true,
};

const struct oci_algorithm oci_allreduce_hierarchical = {
	.name = "hierarchical",
	.idea = "inside each shared cache and NUMA node, then between them, in segments of N bytes",
	.build = build,
	.cost = cost_hierarchical,
	.tries = oci_tries_segment,
	.parameter_default = OCI_SEGMENT_DEFAULT,
	.parameter_min = OCI_SEGMENT_MIN,
	.parameter_max = OCI_SEGMENT_MAX,
	.single_copy = true,
	.by_hierarchy = true,
};
