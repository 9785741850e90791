/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every rank reads the others' operands, and when all have read its own it combines all of them
 * itself.
 *
 * Wins between few ranks for medium messages: sliced copies as much and reduces a p-th, but by
 * twice as many system calls, and what a rank reads in the second half the others have to have
 * made. Cost: T_allgather(address) + (p - 1) (alpha + n beta + l ceil(n / s)) + T_barrier + n
 * memcpy
 *       + (p - 1) n reduced.
 *
 * All ranks associate alike, so their results are identical.
 */
#include "coll/build.h"

/* Where the operand of `v` waits. */
static struct oci_range kept(const struct oci_plan_key *key, uint32_t v)
{
	return v == key->v ? oci_block(OCI_BUF_SEND, 0) :
			     oci_block(OCI_BUF_WORK, (v + key->size - key->v) % key->size - 1);
}

static void build(struct oci_builder *b)
{
	const struct oci_plan_key *key = oci_builder_key(b);
	struct oci_range mine = oci_block(OCI_BUF_SEND, 0);
	struct oci_range acc = oci_segmented(oci_block(OCI_BUF_ACC, 0));

	oci_build_work(b, key->size - 1);
	oci_build_post(b, OCI_POST_ADDRESS, 1, 0);
	for (uint32_t i = 1; i < key->size; i++) {
		oci_build_wait_post(b, oci_next(key, i), 1, 1, 0);
		oci_build_pull(b, kept(key, oci_next(key, i)), oci_next(key, i), mine);
	}
	oci_build_signal(b, 1, 0);
	/* What a call in place replaces they have read. */
	oci_build_wait_others_ack(b, 1);
	oci_build_segment(b, OCI_REDUCE_BYTES);
	oci_build_loop(b, mine);
	oci_build_copy(b, oci_segmented(kept(key, key->size - 1)), acc);
	for (uint32_t v = key->size - 1; v-- > 0;)
		oci_build_reduce(b, oci_segmented(kept(key, v)), acc);
	oci_build_copy(b, acc, oci_segmented(oci_block(OCI_BUF_RECV, 0)));
	oci_build_next(b);
}

static bool fits(const struct oci_shape *shape, uint32_t parameter)
{
	(void)parameter;
	return oci_fits_work(shape->size > 1 ? shape->size - 1 : 1, shape);
}

static void cost(struct oci_costing *c)
{
	size_t n = c->shape->bytes;
	double others = c->shape->size - 1.0;

	oci_cost_flag_row(c, others);
	oci_cost_copies_all(c, OCI_MODEL_PULL, others, n);
	oci_cost_flag_row(c, others);
	oci_cost_touch(c, OCI_TOUCH_OWN, OCI_BY_ONE, 1, n);
	oci_cost_reduce(c, OCI_TOUCH_OWN, others, n);
	oci_cost_ops(c, 5 + 3 * others);
}

const struct oci_algorithm oci_allreduce_direct_read = {
	.name = "direct-read",
	.idea = "each rank reads the others' operands and combines all of them itself",
	.build = build,
	.cost = cost,
	.fits = fits,
	.single_copy = true,
};
