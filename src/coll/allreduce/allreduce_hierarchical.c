/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ranks of a cache are added up by their leader, those of a NUMA node by theirs and so on,
 * segment by segment, and the result comes down the same way (the tree of paper 000, IV).
 *
 * Wins for medium and large messages where links between packages are slow: each carries the
 * message once in each direction. The parameter is the segment, in bytes.
 * Cost: that of Reduce hierarchical, and for the last segment on its way down alpha + g beta + l
 * gamma(c) ceil(g / s) + T_flag, and (h - 1) (alpha + g beta + l ceil(g / s) + T_flag); + T_gather
 * (ack). Sums are left in the receive buffers. An operation that does not commute: as in Reduce
 * hierarchical. A flat team is one group.
 */
#include "coll/allreduce/allreduce.h"
#include "coll/build.h"
#include "coll/cost.h"
#include "coll/tree.h"

static void build(struct oci_builder *b)
{
	const struct oci_plan_key *key = oci_builder_key(b);
	struct oci_tree t = oci_tree_by_hierarchy(key, !key->commutative);

	oci_build_segment(b, key->parameter);
	oci_allreduce_build_by(b, &t, !key->commutative);
}

static void cost(struct oci_costing *c)
{
	uint32_t children, levels = oci_cost_tree(c->shape, &children);

	oci_cost_sum(c, c->parameter, children);
	oci_cost_result(c, c->parameter, children, levels);
}

const struct oci_algorithm oci_allreduce_hierarchical = {
	.name = "hierarchical",
	.idea = "inside each shared cache and NUMA node, then between them, in segments of N bytes",
	.build = build,
	.cost = cost,
	.tries = oci_tries_segment,
	.parameter_default = OCI_SEGMENT_DEFAULT,
	.parameter_min = OCI_SEGMENT_MIN,
	.parameter_max = OCI_SEGMENT_MAX,
	.single_copy = true,
	.by_hierarchy = true,
};
