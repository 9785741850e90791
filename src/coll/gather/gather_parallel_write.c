/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All ranks write their block to the root at once (paper 002, IV-B1): throttled-write with k =
 * p - 1, but without a parameter that depends on p.
 *
 * Wins for small blocks, where waiting for another writer costs more than its contention.
 * Cost: T_bcast(address) + alpha + n beta + l gamma(p - 1) ceil(n / s) + T_gather(ack). The root's
 * own copy happens meanwhile.
 */
#include "coll/build.h"
#include "coll/cost.h"
#include "coll/gather/gather.h"

static void build(struct oci_builder *b)
{
	const struct oci_plan_key *key = oci_builder_key(b);

	if (key->v == 0) {
		oci_build_post(b, OCI_POST_ADDRESS, 1, 0);
		oci_build_copy(b, oci_block(OCI_BUF_SEND, 0), oci_block_rel(OCI_BUF_RECV, 0));
		oci_build_wait_others_ack(b, 1);
		return;
	}
	oci_build_wait_post(b, 0, 1, 1, 0);
	oci_build_push(b, oci_block(OCI_BUF_SEND, 0), 0, oci_block_rel(OCI_BUF_RECV, key->v));
	oci_build_signal(b, 1, 0);
}

static void cost(struct oci_costing *c)
{
	double others = c->shape->size - 1.0;

	oci_cost_flags(c, 1);
	oci_cost_pushes_blocks(c, 1, c->shape->bytes, others);
	oci_cost_flag_row(c, others);
	oci_cost_ops(c, 6);
}

const struct oci_algorithm oci_gather_parallel_write = {
	.name = "parallel-write",
	.idea = "all ranks write to the root at once",
	.build = build,
	.cost = cost,
	.single_copy = true,
};
