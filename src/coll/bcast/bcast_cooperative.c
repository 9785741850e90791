/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Meet in the middle: each rank reads from the front while the root writes to it from the back.
 *
 * Wins with two ranks (2.0 to 2.8 times the reader alone, DESIGN section 4) and wherever the root
 * would idle.
 * Cost with two ranks: T_bcast(address) + alpha + (n beta + l gamma(2) ceil(n / s)) / 2.
 */
#include "coll/build.h"

static void build(struct oci_builder *b)
{
	const struct oci_plan_key *key = oci_builder_key(b);

	oci_build_post(b, OCI_POST_ADDRESS, 1, 0);
	if (key->v == 0) {
		oci_build_help(b, OCI_SHARE_PULL, oci_block(OCI_BUF_SEND, 0), false,
			       oci_next(key, 1), key->size - 1, oci_block(OCI_BUF_RECV, 0));
		oci_build_wait_others_ack(b, 1);
		return;
	}
	oci_build_wait_post(b, 0, 1, 1, 0);
	oci_build_share(b, OCI_SHARE_PULL, oci_block(OCI_BUF_RECV, 0), 0,
			oci_block(OCI_BUF_SEND, 0));
	oci_build_signal(b, 1, 0);
}

static void cost(struct oci_costing *c)
{
	oci_cost_flags(c, 1);
	oci_cost_shared(c, OCI_MODEL_PULL, c->shape->size - 1, c->shape->bytes);
	oci_cost_flags(c, 1);
	oci_cost_flag_row(c, c->shape->size - 1.0);
	oci_cost_ops(c, 6);
}

const struct oci_algorithm oci_bcast_cooperative = {
	.name = "cooperative",
	.idea = "readers from the front and the root from the back, until they meet",
	.build = build,
	.cost = cost,
	.single_copy = true,
};
