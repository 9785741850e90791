/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Part v of the message is reduced by rank v, which pulls the others' parts through a buffer that
 * stays in its cache, and pushes the result to the root.
 *
 * Wins for large messages: all ranks compute.
 * Cost: T_allgather(address) + (p - 1) (alpha + n/p beta + l ceil(n / (p s)) + n/p reduced)
 *       + alpha + n/p beta + l gamma(p - 1) ceil(n / (p s)) + T_barrier.
 */
#include "coll/build.h"
#include "coll/cost.h"
#include "coll/reduce/reduce.h"

static void build(struct oci_builder *b)
{
	const struct oci_plan_key *key = oci_builder_key(b);
	struct oci_range part = oci_part(OCI_BUF_SEND, key->v, 1);
	struct oci_range result = oci_segmented(oci_part(OCI_BUF_RECV, key->v, 1));
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
	if (key->v)
		oci_build_push(b, r.acc, 0, result);
	else
		oci_build_copy(b, r.acc, result);
	oci_build_next(b);
	oci_build_signal(b, 1, 0);
	oci_build_wait_others_ack(b, 1);
}

static void cost(struct oci_costing *c)
{
	size_t part = oci_cost_part(c->shape);
	size_t piece = part < OCI_REDUCE_BYTES ? part : OCI_REDUCE_BYTES;
	double others = c->shape->size - 1.0, pieces = oci_cost_pieces(part, OCI_REDUCE_BYTES);

	oci_cost_flag_row(c, others);
	c->whole = c->shape->bytes;
	oci_cost_copies_all(c, others * pieces, piece);
	c->whole = 0;
	oci_cost_reduce(c, others, part, part);
	oci_cost_pushes(c, pieces, piece, others);
	oci_cost_flag_row(c, others);
	oci_cost_ops(c, 4 + pieces * (1 + 3 * others));
}

const struct oci_algorithm oci_reduce_sliced = {
	.name = "sliced",
	.idea = "each rank reduces its part of the message and pushes it to the root",
	.build = build,
	.cost = cost,
	.single_copy = true,
};
