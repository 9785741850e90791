/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ranks of a cache are added up by their leader, those of a NUMA node by theirs and so on,
 * segment by segment: the tree of Bcast hierarchical (paper 000, IV) the other way round.
 *
 * Wins for medium and large messages where links between packages are slow: each carries the
 * message once. The parameter is the segment, in bytes.
 * Cost, with h levels, c children of the root in all of them and m segments of g bytes:
 * T_gather(address) + m c (alpha + g beta + l ceil(g / s) + g reduced + T_flag) + h T_flag, what
 * the root does: nobody has more children. A leader has n bytes of memory for its sum. An operation
 * that does not commute goes over this tree where groups are runs of consecutive ranks, led by
 * their lowest, else over a binomial one (coll/tree.h). A flat team is one group.
 */
#include "coll/build.h"
#include "coll/cost.h"
#include "coll/reduce/reduce.h"
#include "coll/tree.h"

static void build(struct oci_builder *b)
{
	const struct oci_plan_key *key = oci_builder_key(b);
	struct oci_tree t = oci_tree_by_hierarchy(key, !key->commutative);

	oci_build_segment(b, key->parameter);
	oci_reduce_build_by(b, &t, !key->commutative);
}

static void cost(struct oci_costing *c)
{
	uint32_t children, levels = oci_cost_tree(c->shape, &children);

	oci_cost_sum(c, c->parameter, children);
	oci_cost_flags(c, levels);
}

const struct oci_algorithm oci_reduce_hierarchical = {
	.name = "hierarchical",
	.idea = "inside each shared cache and NUMA node, then between them, in segments of N bytes",
	.build = build,
	.fits = oci_fits_work_one,
	.cost = cost,
	.tries = oci_tries_segment,
	.parameter_default = OCI_SEGMENT_DEFAULT,
	.parameter_min = OCI_SEGMENT_MIN,
	.parameter_max = OCI_SEGMENT_MAX,
	.single_copy = true,
	.by_hierarchy = true,
};
