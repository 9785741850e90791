/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Part v of the message is reduced by rank v, which pulls the others' parts through a buffer that
 * stays in its cache, and pushes the result to the root. The root's part needs no push, so it is
 * the larger: with a sum at a third of the cost of a copy, which it is between cold buffers of 2
 * ranks, a byte of another rank's part takes 1 + 1 / (1.4 (p - 1)) times as long.
 *
 * Wins for large messages: all ranks compute.
 * Cost, n' being the bytes of a part: T_allgather(address) + the larger of the root's
 *       (p - 1) (alpha + n' beta + l ceil(n' / s) + n' reduced) and another's same
 *       + alpha + n' beta + l gamma(p - 1) ceil(n' / s); + T_barrier.
 */
#include "coll/build.h"

/* Shares of the message: of a rank that is not the root, of the root, and of all. With more than
 * four ranks all are alike, and as fine as can be. */
static uint32_t share(uint32_t p)
{
	return p > 1 && p < 5 ? 4 : 1;
}

static uint32_t root_share(uint32_t p)
{
	return share(p) + (p > 1 && p < 5 ? 3 / (p - 1) : 0);
}

static uint32_t shares(uint32_t p)
{
	return root_share(p) + (p - 1) * share(p);
}

static struct oci_range part_of(enum oci_buf buf, const struct oci_plan_key *key)
{
	uint32_t root = root_share(key->size), other = share(key->size);

	return key->v ? oci_part(buf, root + (key->v - 1) * other, other) : oci_part(buf, 0, root);
}

static void build(struct oci_builder *b)
{
	const struct oci_plan_key *key = oci_builder_key(b);
	struct oci_range part = part_of(OCI_BUF_SEND, key);
	struct oci_range result = oci_segmented(part_of(OCI_BUF_RECV, key));
	struct oci_reduction r = {
		.mine = oci_segmented(part),
		.remote = oci_segmented(part),
		.acc = oci_segmented(part_of(OCI_BUF_ACC, key)),
		.temp = oci_segmented(part_of(OCI_BUF_TEMP, key)),
		.step = 1,
		.rotated = true,
	};

	oci_build_parts(b, shares(key->size));
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

/* A rank's way to the end of its part. */
static void cost_of(struct oci_costing *c, size_t part, bool pushes)
{
	size_t piece = part < OCI_REDUCE_BYTES ? part : OCI_REDUCE_BYTES;
	double pieces = oci_cost_slice(c, part);

	if (pushes)
		oci_cost_copies(c, OCI_MODEL_PUSH, pieces, piece, c->shape->size - 1.0);
	oci_cost_ops(c, pieces);
}

static void cost(struct oci_costing *c)
{
	uint32_t p = c->shape->size;
	struct oci_costing root = *c, other = *c;

	cost_of(&root, oci_cost_parts(c->shape, shares(p), root_share(p)), false);
	cost_of(&other, oci_cost_parts(c->shape, shares(p), share(p)), true);
	*c = oci_cost_total(&root.cost) > oci_cost_total(&other.cost) ? root : other;
	oci_cost_flag_row(c, p - 1.0);
	oci_cost_flag_row(c, p - 1.0);
	oci_cost_ops(c, 4);
}

const struct oci_algorithm oci_reduce_sliced = {
	.name = "sliced",
	.idea = "each rank reduces its part of the message and pushes it to the root",
	.build = build,
	.cost = cost,
	.single_copy = true,
};
