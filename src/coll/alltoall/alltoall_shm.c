/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The pairwise exchange through shared memory, one of the baselines of paper 002, Figure 9: in step
 * i each rank copies its block for one rank into its slot, half a slot at a time, while it copies
 * the halves that its source has filled out of that one's.
 *
 * Wins where no single copy works. cico does the same for blocks that fit a slot all together, with
 * one flag a block and nobody waiting for a half to be emptied.
 * Cost: T_memcpy + (p - 1) (2 n memcpy + ceil(n / half) 2 T_flag).
 * Restriction: a flag has OCI_STEPS steps, so each rank sends at most that many halves, 2 GiB.
 *
 * Step i has `turns` steps of the flags from begin(i) on. POST at begin(i) + s: segment s is in my
 * slot. ACK at begin(i) + s: I have emptied segment s of my source. ACK at begin(i + 1) - 1: all of
 * it, and my source may fill its slot for another. A half is filled when its last but one segment
 * was emptied, ACK at begin(i) + s - 2 by my target; for the first two that is a step at which my
 * target is through with step i - 1 as well, a little more than is needed.
 */
#include "coll/alltoall/alltoall.h"
#include "coll/build.h"
#include "coll/cost.h"

#define HALF_BYTES (OCI_SLOT_BYTES / 2)

static uint32_t turns_of(uint32_t p)
{
	return (OCI_STEPS - 3) / (p - 1);
}

static uint16_t begin(uint32_t p, uint32_t i)
{
	return (uint16_t)(3 + (i - 1) * turns_of(p));
}

static void build_step(struct oci_builder *b, uint32_t i)
{
	const struct oci_plan_key *key = oci_builder_key(b);
	uint32_t target = oci_pairwise_target(key, i), source = oci_pairwise_source(key, i);
	uint16_t first = begin(key->size, i);

	if (i > 1)
		oci_build_wait_ack(b, oci_pairwise_target(key, i - 1), 1, first - 1, 0);
	oci_build_loop(b, oci_block(OCI_BUF_SEND, target));
	oci_build_wait_ack(b, target, 1, first - 2, 1);
	oci_build_copy(b, oci_segmented(oci_block(OCI_BUF_SEND, target)), oci_slot_half());
	oci_build_post(b, i == 1 ? OCI_POST_SLOT : OCI_POST_FLAG, first, 1);
	oci_build_wait_post(b, source, 1, first, 1);
	oci_build_pull(b, oci_segmented(oci_block(OCI_BUF_RECV, source)), source, oci_slot_half());
	oci_build_signal(b, first, 1);
	oci_build_next(b);
	if (i < key->size - 1)
		oci_build_signal(b, begin(key->size, i + 1) - 1, 0);
}

static void build(struct oci_builder *b)
{
	const struct oci_plan_key *key = oci_builder_key(b);

	if (key->size > 1 && turns_of(key->size) < 4) {
		oci_build_refuse(b);
		return;
	}
	oci_build_segment(b, HALF_BYTES);
	if (key->size > 1)
		oci_build_signal(b, begin(key->size, 1) - 1, 0);
	oci_build_copy(b, oci_block(OCI_BUF_SEND, key->v), oci_block(OCI_BUF_RECV, key->v));
	for (uint32_t i = 1; i < key->size; i++)
		build_step(b, i);
}

static bool fits(const struct oci_shape *shape, uint32_t parameter)
{
	(void)parameter;
	/* The last step of each turn is that of the whole. */
	return shape->size == 1 || (turns_of(shape->size) >= 4 &&
				    shape->bytes / HALF_BYTES < turns_of(shape->size) - 1);
}

static void cost(struct oci_costing *c)
{
	size_t n = c->shape->bytes;
	double others = c->shape->size - 1.0, turns = oci_cost_pieces(n, HALF_BYTES);

	oci_cost_fill_all(c, others, n, n);
	oci_cost_memcpy_all(c, 1, n, n);
	oci_cost_fetch_all(c, others, n, n);
	oci_cost_flags(c, others * (1 + 2 * turns));
	oci_cost_ops(c, 3 + others * (2 + 6 * turns));
}

const struct oci_algorithm oci_alltoall_shm = {
	.name = "shm",
	.idea = "pairwise through both halves of each rank's slot; to compare with",
	.build = build,
	.cost = cost,
	.baseline = true,
	.fits = fits,
	.needs = "fewer ranks, each of which then has more steps",
};
