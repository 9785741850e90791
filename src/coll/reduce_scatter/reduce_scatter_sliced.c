/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rank v reduces block v: it pulls the others' through a buffer that stays in its cache.
 *
 * Wins for large messages: every byte is copied once, by the rank that needs it, and all ranks
 * compute. Of a commutative operation rank v begins with the operand of rank v - 1, so that no two
 * ranks read from one process at the same time as long as they keep step.
 * Cost: T_allgather(address) + (p - 1) (alpha + n beta + l ceil(n / s) + n reduced) + T_barrier.
 */
#include "coll/reduce_scatter/reduce_scatter.h"

static void build(struct oci_builder *b)
{
	const struct oci_plan_key *key = oci_builder_key(b);
	struct oci_range mine = oci_reduce_scatter_input(key, OCI_BUF_SEND, key->v, 1);
	struct oci_reduction r = {
		.mine = oci_segmented(mine),
		.remote = oci_segmented(mine),
		.acc = oci_segmented(oci_reduce_scatter_result(key, OCI_BUF_RECV)),
		.temp = oci_segmented(oci_reduce_scatter_result(key, OCI_BUF_TEMP)),
		.step = 1,
		.rotated = true,
	};

	oci_build_segment(b, OCI_REDUCE_BYTES);
	oci_build_post(b, OCI_POST_ADDRESS, 1, 0);
	oci_build_loop(b, mine);
	oci_build_reduction(b, &r);
	oci_build_next(b);
	oci_build_signal(b, 1, 0);
	oci_build_wait_others_ack(b, 1);
}

static void cost(struct oci_costing *c)
{
	size_t n = oci_reduce_scatter_block(c->shape);
	double others = c->shape->size - 1.0;

	oci_cost_flags(c, others);
	oci_cost_slice(c, n);
	oci_cost_flag_row(c, others);
	oci_cost_ops(c, 3);
}

const struct oci_algorithm oci_reduce_scatter_sliced = {
	.name = "sliced",
	.idea = "each rank pulls its block from the others and reduces it",
	.build = build,
	.cost = cost,
	.single_copy = true,
};
