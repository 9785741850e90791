/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Each package, NUMA node and shared cache gets the message once, by its leader; the others read
 * from there, segment by segment, while the leader reads the next one (paper 000, IV and VI-B).
 *
 * Wins for medium and large messages on machines with many NUMA nodes: on the paper's 48 cores in
 * 8 nodes 2.2 to 2.4 times faster than direct reads, and pipelining up to 1.25 times more (its
 * Figure 4). The parameter is the segment: the paper found 16 KiB best up to 2 MiB, 512 KiB beyond.
 * Cost, with h levels, c_i children of a rank in level i and m = ceil(n / segment) segments of g
 * bytes: T_bcast(address) + (m + h - 1) max_i(alpha + g beta_i + l gamma(c_i) ceil(g / s) + T_flag)
 * + T_gather(ack) of the children, beta_i the rate at that distance.
 * On a flat team it is direct-read.
 */
#include "coll/build.h"
#include "coll/tree.h"

/* All of v's bytes; it hands each segment on when others read from it. */
static void build_read(struct oci_builder *b, const struct oci_tree *t, bool leaf)
{
	const struct oci_plan_key *key = oci_builder_key(b);
	struct oci_range to = oci_block(OCI_BUF_RECV, 0), from = oci_block(OCI_BUF_SEND, 0);
	uint32_t parent = oci_tree_parent(t, key->v);
	bool whole = parent == 0; /* the root has it all from the start */

	if (whole)
		oci_build_wait_post(b, parent, 1, 1, 0);
	if (whole && leaf) {
		oci_build_pull(b, to, parent, from);
		return;
	}
	oci_build_loop(b, to);
	if (!whole)
		oci_build_wait_post(b, parent, 1, 1, 1);
	oci_build_pull(b, oci_segmented(to), parent, oci_segmented(from));
	if (!leaf)
		oci_build_post(b, OCI_POST_ADDRESS, 1, 1);
	oci_build_next(b);
}

static void build(struct oci_builder *b)
{
	const struct oci_plan_key *key = oci_builder_key(b);
	struct oci_tree t = oci_tree_by_hierarchy(key, false);
	uint32_t child = key->v;

	oci_build_segment(b, key->parameter);
	if (key->v)
		build_read(b, &t, oci_tree_is_leaf(&t, key->v));
	else
		oci_build_post(b, OCI_POST_ADDRESS, 1, 0);
	if (key->v)
		oci_build_signal(b, 1, 0);
	while ((child = oci_tree_ascending(&t, key->v, child)) != key->v)
		oci_build_wait_ack(b, child, 1, 1, 0);
}

static void cost(struct oci_costing *c)
{
	size_t n = c->shape->bytes, segment = c->parameter < n ? c->parameter : n;
	uint32_t children, levels = oci_cost_tree(c->shape, &children);
	/* The first level's readers, all of the root's, read as a whole what is there from the
	 * start; each further level is a segment behind. */
	double segments = segment ? oci_cost_pieces(n, segment) : 1;

	if (levels == 1) {
		oci_cost_flags(c, 1);
		oci_cost_copies(c, OCI_MODEL_PULL, 1, n, children);
	} else {
		oci_cost_flags(c, segments + levels - 1);
		oci_cost_piecewise(c, segments + levels - 1, segment, children);
	}
	oci_cost_flag_row(c, children);
	oci_cost_ops(c, 3 + 3 * segments + levels);
}

const struct oci_algorithm oci_bcast_hierarchical = {
	.name = "hierarchical",
	.idea = "once to each NUMA node and shared cache, in segments of N bytes, then inside",
	.build = build,
	.cost = cost,
	.tries = oci_tries_segment,
	.parameter_default = OCI_SEGMENT_DEFAULT,
	.parameter_min = OCI_SEGMENT_MIN,
	.parameter_max = OCI_SEGMENT_MAX,
	.single_copy = true,
	.by_hierarchy = true,
};
