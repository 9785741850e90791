/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Meet in the middle: each rank reads its block from the front, the root, once its own block is
 * copied, writes to the ranks from the back.
 *
 * Wins where the root would idle: with MPI_IN_PLACE, and with few ranks.
 */
#include "coll/build.h"
#include "coll/cost.h"
#include "coll/scatter/scatter.h"

static void build(struct oci_builder *b)
{
	const struct oci_plan_key *key = oci_builder_key(b);

	oci_build_post(b, OCI_POST_ADDRESS, 1, 0);
	if (key->v == 0) {
		oci_build_copy(b, oci_block_rel(OCI_BUF_SEND, 0), oci_block(OCI_BUF_RECV, 0));
		oci_build_help(b, OCI_SHARE_PULL, oci_block(OCI_BUF_SEND, 0), true,
			       oci_next(key, 1), key->size - 1, oci_block(OCI_BUF_RECV, 0));
		oci_build_wait_others_ack(b, 1);
		return;
	}
	oci_build_wait_post(b, 0, 1, 1, 0);
	oci_build_share(b, OCI_SHARE_PULL, oci_block(OCI_BUF_RECV, 0), 0,
			oci_block_rel(OCI_BUF_SEND, key->v));
	oci_build_signal(b, 1, 0);
}

static void cost(struct oci_costing *c)
{
	size_t n = c->shape->bytes;

	oci_cost_flags(c, 1);
	oci_cost_shared(c, OCI_MODEL_PULL, c->shape->size - 1, n);
	oci_cost_flags(c, 1);
	oci_cost_flag_row(c, c->shape->size - 1.0);
	/* The root copies its own block before it helps: its part of the work comes later. */
	oci_cost_memcpy(c, 1.0 / c->shape->size, n, n);
	oci_cost_ops(c, 6);
}

const struct oci_algorithm oci_scatter_cooperative = {
	.name = "cooperative",
	.idea = "ranks read from the front, the root writes from the back, until they meet",
	.build = build,
	.cost = cost,
	.single_copy = true,
};
