/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks write their block to the root, at most k at a time (paper 002, IV-B3). k = p - 1 is the
 * parallel write.
 *
 * Wins for large blocks where the lock of the root's page tables is contended.
 * Cost: T_bcast(address) + ceil(p / k) (alpha + n beta + l gamma(k) ceil(n / s)); the last k ranks
 * acknowledge to the root.
 */
#include "coll/build.h"
#include "coll/cost.h"
#include "coll/gather/gather.h"

static void build(struct oci_builder *b)
{
	const struct oci_plan_key *key = oci_builder_key(b);
	uint32_t p = key->size, k = key->parameter;

	if (k > p - 1)
		k = p - 1;
	if (key->v == 0) {
		oci_build_post(b, OCI_POST_ADDRESS, 1, 0);
		oci_build_copy(b, oci_block(OCI_BUF_SEND, 0), oci_block_rel(OCI_BUF_RECV, 0));
		/* The chain brings the acknowledgements of all others into those of the last k. */
		oci_build_wait_ack(b, p - k, k, 1, 0);
		return;
	}
	oci_build_wait_post(b, 0, 1, 1, 0);
	if (key->v > k)
		oci_build_wait_ack(b, key->v - k, 1, 1, 0);
	oci_build_push(b, oci_block(OCI_BUF_SEND, 0), 0, oci_block_rel(OCI_BUF_RECV, key->v));
	oci_build_signal(b, 1, 0);
}

static void cost(struct oci_costing *c)
{
	uint32_t others = c->shape->size > 1 ? c->shape->size - 1 : 1;
	uint32_t k = c->parameter < others ? c->parameter : others;
	uint32_t turns = others / k, rest = others % k;

	oci_cost_flags(c, turns + (rest > 0));
	oci_cost_pushes_blocks(c, turns, c->shape->bytes, k);
	oci_cost_pushes_blocks(c, rest > 0, c->shape->bytes, rest);
	oci_cost_flag_row(c, k);
	oci_cost_ops(c, 3 + 3.0 * (turns + (rest > 0)));
}

const struct oci_algorithm oci_gather_throttled_write = {
	.name = "throttled-write",
	.idea = "ranks write to the root, at most k at a time",
	.build = build,
	.cost = cost,
	.tries = oci_tries_fanout,
	.parameter_default = 4,
	.parameter_min = 1,
	.single_copy = true,
};
