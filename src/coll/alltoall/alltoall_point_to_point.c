/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The pairwise exchange as messages between two ranks would do it, one of the baselines of paper
 * 002, Figure 9: in step i each rank tells its target that a block is ready to send, this answers
 * that it is clear to send and where, the block is written in one copy, and a last flag says that
 * it is there.
 *
 * Wins never: pairwise moves the same bytes without the three flags of each pair. It is here to be
 * compared with, as what a single copy gives without a collective's knowledge.
 * In place there is nothing to write to before it was read: as pairwise.
 * Cost: T_memcpy + (p - 1) (alpha + n beta + l ceil(n / s) + 3 T_flag).
 */
#include "coll/alltoall/alltoall.h"
#include "coll/build.h"
#include "coll/cost.h"

static void build(struct oci_builder *b)
{
	const struct oci_plan_key *key = oci_builder_key(b);

	if (key->in_place) {
		oci_build_alltoall_in_place(b);
		return;
	}
	oci_build_copy(b, oci_block(OCI_BUF_SEND, key->v), oci_block(OCI_BUF_RECV, key->v));
	for (uint32_t i = 1; i < key->size; i++) {
		uint32_t target = oci_pairwise_target(key, i), source = oci_pairwise_source(key, i);
		uint16_t ready = (uint16_t)(2 * i - 1), there = (uint16_t)(2 * i);

		oci_build_signal(b, ready, 0);
		oci_build_wait_ack(b, source, 1, ready, 0);
		oci_build_post(b, i == 1 ? OCI_POST_ADDRESS : OCI_POST_FLAG, (uint16_t)i, 0);
		oci_build_wait_post(b, target, 1, (uint16_t)i, 0);
		oci_build_push(b, oci_block(OCI_BUF_SEND, target), target,
			       oci_block(OCI_BUF_RECV, key->v));
		oci_build_signal(b, there, 0);
		oci_build_wait_ack(b, source, 1, there, 0);
	}
}

static void cost(struct oci_costing *c)
{
	size_t n = c->shape->bytes;
	double others = c->shape->size - 1.0;

	oci_cost_memcpy(c, 1, n, n);
	oci_cost_flags(c, 3 * others);
	oci_cost_pushes_all(c, others, n);
	oci_cost_ops(c, 2 + 7 * others);
}

const struct oci_algorithm oci_alltoall_point_to_point = {
	.name = "point-to-point",
	.idea = "pairwise with a handshake for each message; to compare with",
	.build = build,
	.cost = cost,
	.single_copy = true,
};
