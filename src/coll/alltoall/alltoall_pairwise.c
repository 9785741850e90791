/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pairwise: in step i each rank reads its block from one peer: rank XOR i when p is a power of two,
 * else rank - i (paper 002, IV-C1). Wins for large blocks: no two ranks read from one process in
 * the same step. A rank copies its own block last, when the others have from it what they need: 4
 * MiB between 2 near ranks are 1.11 times as fast as with the own block first. (Not so in an
 * Allgather, where it is the block that others read.) Cost: T_allgather(address) + T_memcpy + (p -
 * 1) (alpha + n beta + l ceil(n / s)).
 *
 * point-to-point: the same as messages between two ranks would do it, one of the baselines of paper
 * 002, Figure 9: in step i each rank tells its target that a block is ready to send, this answers
 * that it is clear to send and where, the block is written in one copy, and a last flag says that
 * it is there: what a single copy gives without a collective's knowledge. Wins by mapped memory
 * where ranks share cores (rows.c). It writes where pairwise reads, so their difference is not that
 * of the handshake alone where the two directions are not alike
 * (docs/results/reads-and-writes.csv).
 *
 * Cost: T_memcpy + (p - 1) (alpha + n beta + l ceil(n / s) + 3 T_flag).
 *
 * In place, the blocks of each two ranks change places (TRADE), half of the bytes moved by either;
 * with whom a rank trades in step i is then the same for both also where p is no power of two.
 * There is nothing to write to before it was read, so both do the same.
 */
#include "coll/build.h"

static void build_in_place(struct oci_builder *b)
{
	const struct oci_plan_key *key = oci_builder_key(b);

	oci_build_segment(b, OCI_TRADE_BYTES);
	oci_build_post(b, OCI_POST_ADDRESS, 1, 0);
	for (uint32_t i = 0; i < key->size; i++) {
		uint32_t partner = oci_pairwise_partner(key, i);

		if (partner == key->v)
			continue;
		oci_build_wait_post(b, partner, 1, 1, 0);
		oci_build_trade(b, oci_block(OCI_BUF_RECV, partner), partner,
				oci_block(OCI_BUF_RECV, key->v));
	}
	oci_build_signal(b, 1, 0);
	oci_build_wait_others_ack(b, 1);
}

static void build_pairwise(struct oci_builder *b)
{
	const struct oci_plan_key *key = oci_builder_key(b);

	if (key->in_place) {
		build_in_place(b);
		return;
	}
	oci_build_post(b, OCI_POST_ADDRESS, 1, 0);
	for (uint32_t i = 1; i < key->size; i++) {
		uint32_t source = oci_pairwise_source(key, i);

		oci_build_wait_post(b, source, 1, 1, 0);
		oci_build_pull(b, oci_block(OCI_BUF_RECV, source), source,
			       oci_block(OCI_BUF_SEND, key->v));
	}
	oci_build_signal(b, 1, 0);
	oci_build_copy(b, oci_block(OCI_BUF_SEND, key->v), oci_block(OCI_BUF_RECV, key->v));
	oci_build_wait_others_ack(b, 1);
}

static void cost_pairwise(struct oci_costing *c)
{
	size_t n = c->shape->bytes;
	double others = c->shape->size - 1.0;

	oci_cost_touch(c, OCI_TOUCH_OWN, OCI_BY_ONE, 1, n);
	oci_cost_flags(c, others);
	oci_cost_copies_all(c, OCI_MODEL_PULL, others, n);
	oci_cost_flag_row(c, others);
	oci_cost_ops(c, 4 + 2 * others);
}

static void build_messages(struct oci_builder *b)
{
	const struct oci_plan_key *key = oci_builder_key(b);

	if (key->in_place) {
		build_in_place(b);
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

static void cost_messages(struct oci_costing *c)
{
	size_t n = c->shape->bytes;
	double others = c->shape->size - 1.0;

	oci_cost_touch(c, OCI_TOUCH_OWN, OCI_BY_ONE, 1, n);
	oci_cost_flags(c, 3 * others);
	oci_cost_copies_all(c, OCI_MODEL_PUSH, others, n);
	oci_cost_ops(c, 2 + 7 * others);
}

const struct oci_algorithm oci_alltoall_pairwise = {
	.name = "pairwise",
	.idea = "in step i each rank reads its block from one peer",
	.build = build_pairwise,
	.cost = cost_pairwise,
	.single_copy = true,
};

const struct oci_algorithm oci_alltoall_point_to_point = {
	.name = "point-to-point",
	.idea = "pairwise with a handshake for each message",
	.build = build_messages,
	.cost = cost_messages,
	.single_copy = true,
};
