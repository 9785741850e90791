/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A tree of radix N + 1: a rank pulls what its children have combined, piece by piece, adds its own
 * and leaves the sum where its parent pulls it.
 *
 * Wins for medium messages, which sliced cuts into parts too small for a system call. No rank's
 * memory is read by two at once. Depth is what counts as N copies follow each other in a level: N =
 * 1, a binomial tree.
 * Cost, with d = ceil(log_(N+1) p) and m = ceil(n / g) pieces of g = OCI_REDUCE_BYTES:
 * T_gather(address) + m N d (alpha + g beta + l ceil(g / s) + g reduced + T_flag), what the root
 * does: it has N d children, and the others keep up. An inner rank has n bytes of memory for its
 * sum. Not in the papers, which leave reductions out.
 *
 * An operation that does not commute is combined in order of the ranks at rank 0, from where the
 * root pulls the result: alpha + g beta + l ceil(g / s) more.
 */
#include "coll/build.h"
#include "coll/cost.h"
#include "coll/reduce/reduce.h"
#include "coll/sum.h"

/* Steps of ACK: what I read of my children is read; the root has the result. */
enum { READ = 1, RESULT = 2 };

static void build_sums(struct oci_builder *b, const struct oci_tree *t, bool in_order, bool result)
{
	struct oci_range acc = oci_segmented(oci_block(result ? OCI_BUF_ACC : OCI_BUF_WORK, 0));

	oci_build_work(b, 1);
	oci_build_loop(b, oci_block(OCI_BUF_SEND, 0));
	oci_build_sum(b, t, in_order, OCI_BUF_WORK, acc);
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

void oci_reduce_build_by(struct oci_builder *b, const struct oci_tree *t, bool in_order)
{
	uint32_t v = oci_builder_key(b)->v, top = oci_tree_top(t);

	if (oci_builder_key(b)->size == 1) {
		oci_build_copy(b, oci_block(OCI_BUF_SEND, 0), oci_block(OCI_BUF_RECV, 0));
		return;
	}
	if (oci_tree_is_leaf(t, v))
		oci_build_post(b, OCI_POST_ADDRESS, 1, 0);
	else
		build_sums(b, t, in_order, v == top && v == 0);
	if (v == 0 && v != top)
		build_fetch(b, top);
	if (v != top)
		oci_build_wait_ack(b, oci_tree_parent(t, v), 1, READ, 0);
	else if (v != 0)
		oci_build_wait_ack(b, 0, 1, RESULT, 0);
}

static void build(struct oci_builder *b)
{
	const struct oci_plan_key *key = oci_builder_key(b);
	struct oci_tree t = oci_tree_by_radix(key, key->parameter, !key->commutative);

	oci_build_segment(b, OCI_REDUCE_BYTES);
	oci_reduce_build_by(b, &t, !key->commutative);
}

static void cost(struct oci_costing *c)
{
	oci_cost_sum(c, OCI_REDUCE_BYTES, oci_cost_fanin(c));
	oci_cost_flags(c, 1);
}

const struct oci_algorithm oci_reduce_tree = {
	.name = "tree",
	.idea = "up a k-nomial tree; each rank pulls and adds what its children have",
	.build = build,
	.fits = oci_fits_work_one,
	.cost = cost,
	.tries = oci_tries_radix,
	.parameter_default = 1,
	.parameter_min = 1,
	.single_copy = true,
};
