/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Meet in the middle: each rank copies its block from the front, the root, once its own block is
 * copied, those of the ranks from the back.
 *
 * Wins where the root would idle: with MPI_IN_PLACE, and with few ranks.
 */
#include "coll/rooted/rooted.h"

static void build(struct oci_builder *b)
{
	const struct oci_plan_key *key = oci_builder_key(b);
	bool scatter = oci_is_scatter(key->collective);
	enum oci_share share = scatter ? OCI_SHARE_PULL : OCI_SHARE_PUSH;
	struct oci_range mine = oci_rooted_mine(key);

	oci_build_post(b, OCI_POST_ADDRESS, 1, 0);
	if (key->v == 0) {
		oci_rooted_copy(b);
		oci_build_help(b, share, oci_block(scatter ? OCI_BUF_SEND : OCI_BUF_RECV, 0), true,
			       oci_next(key, 1), key->size - 1, mine);
		oci_build_wait_others_ack(b, 1);
		return;
	}
	oci_build_wait_post(b, 0, 1, 1, 0);
	oci_build_share(b, share, mine, 0, oci_rooted_there(key, key->v));
	oci_build_signal(b, 1, 0);
}

static void cost(struct oci_costing *c)
{
	size_t n = c->shape->bytes;

	oci_cost_flags(c, 1);
	oci_cost_shared(c, oci_rooted_direction(c), c->shape->size - 1, n);
	oci_cost_flags(c, 1);
	oci_cost_flag_row(c, c->shape->size - 1.0);
	/* The root copies its own block before it helps: its part of the work comes later. */
	oci_cost_touch(c, OCI_TOUCH_OWN, OCI_BY_ONE, 1.0 / c->shape->size, n);
	oci_cost_ops(c, 6);
}

const struct oci_algorithm oci_scatter_cooperative = {
	.name = "cooperative",
	.idea = "ranks read from the front, the root writes from the back, until they meet",
	.build = build,
	.cost = cost,
	.single_copy = true,
};

const struct oci_algorithm oci_gather_cooperative = {
	.name = "cooperative",
	.idea = "ranks write from the front, the root reads from the back, until they meet",
	.build = build,
	.cost = cost,
	.single_copy = true,
};
