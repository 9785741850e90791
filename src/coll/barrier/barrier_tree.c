/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks report to the leader of their cache, leaders to that of their NUMA node and so on; then the
 * word goes down the same way (coll/tree.h).
 *
 * Wins with many ranks on several packages: a flag crosses between two of them once in each
 * direction, where the flat form takes every flag everywhere.
 * Cost, over h levels with c_i children: the sum of c_i + 1 flag transfers, each at that level's
 * distance. On a flat team all report to rank 0.
 */
#include "coll/build.h"
#include "coll/tree.h"

static void build(struct oci_builder *b)
{
	const struct oci_plan_key *key = oci_builder_key(b);
	struct oci_tree t = oci_tree_by_hierarchy(key, false);
	uint32_t child = key->v;

	while ((child = oci_tree_ascending(&t, key->v, child)) != key->v)
		oci_build_wait_ack(b, child, 1, 1, 0);
	if (key->v != oci_tree_top(&t)) {
		oci_build_signal(b, 1, 0);
		oci_build_wait_post(b, oci_tree_parent(&t, key->v), 1, 1, 0);
	}
	if (!oci_tree_is_leaf(&t, key->v))
		oci_build_post(b, OCI_POST_FLAG, 1, 0);
}

static void cost(struct oci_costing *c)
{
	uint32_t children, levels = oci_cost_tree(c->shape, &children);

	/* Up: a leader looks at a row of children, then the next level's does; down: a flag each.
	 */
	oci_cost_flags(c, levels);
	oci_cost_flag_row(c, (double)children - levels + 1);
	oci_cost_flags(c, levels);
	oci_cost_ops(c, 2.0 * children + 3.0 * levels);
}

const struct oci_algorithm oci_barrier_tree = {
	.name = "tree",
	.idea = "up and down a tree of shared caches, NUMA nodes and packages",
	.build = build,
	.cost = cost,
	.by_hierarchy = true,
};
