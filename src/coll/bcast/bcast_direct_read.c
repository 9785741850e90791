/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every rank reads the whole message from the root (paper 002, V-B1).
 *
 * Wins with few ranks, or where many readers of one process do not slow each other down.
 * Cost: T_bcast(address) + alpha + n beta + l gamma(p - 1) ceil(n / s) + T_gather(ack).
 */
#include "coll/build.h"

static void build(struct oci_builder *b)
{
	if (oci_builder_key(b)->v == 0) {
		oci_build_post(b, OCI_POST_ADDRESS, 1, 0);
		oci_build_wait_others_ack(b, 1);
		return;
	}
	oci_build_wait_post(b, 0, 1, 1, 0);
	oci_build_pull(b, oci_block(OCI_BUF_RECV, 0), 0, oci_block(OCI_BUF_SEND, 0));
	oci_build_signal(b, 1, 0);
}

static void cost(struct oci_costing *c)
{
	double readers = c->shape->size - 1.0;

	oci_cost_flags(c, 1);
	oci_cost_copies(c, OCI_MODEL_PULL, 1, c->shape->bytes, readers);
	oci_cost_flag_row(c, readers);
	oci_cost_ops(c, 5);
}

const struct oci_algorithm oci_bcast_direct_read = {
	.name = "direct-read",
	.idea = "all ranks read from the root at once",
	.build = build,
	.cost = cost,
	.single_copy = true,
};
