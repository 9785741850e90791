/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every rank raises its flag and looks at everyone's.
 *
 * Wins with few ranks: one line transfer a peer, all in flight at once.
 * Cost: (p - 1) flag transfers a rank.
 */
#include "coll/build.h"

static void build(struct oci_builder *b)
{
	oci_build_post(b, OCI_POST_FLAG, 1, 0);
	oci_build_wait_others_post(b, 1);
}

static void cost(struct oci_costing *c)
{
	oci_cost_flag_row(c, c->shape->size - 1.0);
	oci_cost_ops(c, 2);
}

const struct oci_algorithm oci_barrier_flat = {
	.name = "flat",
	.idea = "every rank looks at every flag",
	.build = build,
	.cost = cost,
};
