/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Part v is reduced by rank v, which pulls the others' parts through a buffer that stays in its
 * cache; then everyone reads the parts from where they are.
 *
 * Wins for large messages: all ranks compute, every byte is copied 2 (p - 1) / p times.
 * Cost: T_allgather(address) + 2 (p - 1) (alpha + n/p beta + l ceil(n / (p s)))
 *       + (p - 1) n/p reduced + T_barrier.
 */
#include "coll/build.h"

static void build(struct oci_builder *b)
{
	const struct oci_plan_key *key = oci_builder_key(b);
	struct oci_range part = oci_part(OCI_BUF_SEND, key->v, 1);
	struct oci_reduction r = {
		.mine = oci_segmented(part),
		.remote = oci_segmented(part),
		.acc = oci_segmented(oci_part(OCI_BUF_ACC, key->v, 1)),
		.temp = oci_segmented(oci_part(OCI_BUF_TEMP, key->v, 1)),
		.step = 1,
		.rotated = true,
	};

	oci_build_parts(b, key->size);
	oci_build_segment(b, OCI_REDUCE_BYTES);
	oci_build_post(b, OCI_POST_ADDRESS, 1, 0);
	/* Not only in the loop: a rank whose part is empty makes no turn of it. */
	oci_build_wait_others_post(b, 1);
	oci_build_loop(b, part);
	oci_build_reduction(b, &r);
	oci_build_copy(b, r.acc, oci_segmented(oci_part(OCI_BUF_RECV, key->v, 1)));
	oci_build_next(b);
	oci_build_signal(b, 1, 0);
	for (uint32_t i = 1; i < key->size; i++) {
		uint32_t source = oci_next(key, i);

		oci_build_wait_ack(b, source, 1, 1, 0);
		oci_build_pull(b, oci_part(OCI_BUF_RECV, source, 1), source,
			       oci_part(OCI_BUF_RECV, source, 1));
	}
	oci_build_signal(b, 2, 0);
	oci_build_wait_others_ack(b, 2);
}

static void cost(struct oci_costing *c)
{
	size_t part = oci_cost_part(c->shape);
	double others = c->shape->size - 1.0;

	oci_cost_flag_row(c, others);
	oci_cost_slice(c, part);
	oci_cost_flags(c, others);
	oci_cost_copies_all(c, OCI_MODEL_PULL, others, part);
	oci_cost_flag_row(c, others);
	oci_cost_ops(c, 5 + 2 * others);
}

const struct oci_algorithm oci_allreduce_sliced = {
	.name = "sliced",
	.idea = "each rank reduces its part of the message, everyone reads the parts",
	.build = build,
	.cost = cost,
	.single_copy = true,
};
