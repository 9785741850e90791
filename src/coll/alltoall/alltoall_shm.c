/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The pairwise exchange through shared memory, one of the baselines of paper 002, Figure 9: in step
 * i each rank copies its block for one rank into its slot, half a slot at a time, while it copies
 * the halves that its source has filled out of that one's.
 *
 * Wins where no single copy works. cico does the same for blocks that fit a slot all together, with
 * one flag a block and nobody waiting for a half to be emptied.
 * Cost: T_memcpy + (p - 1) (2 n memcpy + ceil(n / half) 2 T_flag).
 * In place both have to be one rank (oci_pairwise_partner()), which may take a step more, in some
 * of which a rank has nothing to do but to say that it is through: a half is then sent before it is
 * overwritten by what its partner had there.
 * Restriction: a flag has OCI_STEPS steps, so each rank sends at most that many halves, 2 GiB.
 *
 * Step i has `turns` steps of the flags from begin(i) on. POST at begin(i) + s: segment s is in my
 * slot. ACK at begin(i) + s: I have emptied segment s of my source. ACK at begin(i + 1) - 1: all of
 * it, and my source may fill its slot for another. A half is filled when its last but one segment
 * was emptied, ACK at begin(i) + s - 2 by my target; for the first two that is a step at which my
 * target is through with step i - 1 as well, a little more than is needed.
 */
#include "coll/build.h"

#define HALF_BYTES (OCI_SLOT_BYTES / 2)

/* In place there is one more where p is no power of two: oci_pairwise_partner(). */
static uint32_t first_step(uint32_t p, bool in_place)
{
	return in_place && p & (p - 1) ? 0 : 1;
}

static uint32_t turns_of(uint32_t p, bool in_place)
{
	return (OCI_STEPS - 3) / (p - first_step(p, in_place));
}

static uint16_t begin(const struct oci_plan_key *key, uint32_t i)
{
	return (uint16_t)(3 + (i - first_step(key->size, key->in_place)) *
				      turns_of(key->size, key->in_place));
}

static uint32_t target_of(const struct oci_plan_key *key, uint32_t i)
{
	return key->in_place ? oci_pairwise_partner(key, i) : oci_pairwise_target(key, i);
}

static uint32_t source_of(const struct oci_plan_key *key, uint32_t i)
{
	return key->in_place ? oci_pairwise_partner(key, i) : oci_pairwise_source(key, i);
}

/* A step that moves bytes; `before`: the one before it that did, or i. */
static void build_step(struct oci_builder *b, uint32_t i, uint32_t before)
{
	const struct oci_plan_key *key = oci_builder_key(b);
	uint32_t target = target_of(key, i), source = source_of(key, i);
	uint16_t first = begin(key, i);

	if (before != i)
		oci_build_wait_ack(b, target_of(key, before), 1, begin(key, before + 1) - 1, 0);
	oci_build_loop(b, oci_block(OCI_BUF_SEND, target));
	oci_build_wait_ack(b, target, 1, first - 2, 1);
	oci_build_copy(b, oci_segmented(oci_block(OCI_BUF_SEND, target)), oci_slot_half());
	oci_build_post(b, before == i ? OCI_POST_SLOT : OCI_POST_FLAG, first, 1);
	oci_build_wait_post(b, source, 1, first, 1);
	oci_build_pull(b, oci_segmented(oci_block(OCI_BUF_RECV, source)), source, oci_slot_half());
	oci_build_signal(b, first, 1);
	oci_build_next(b);
}

static void build(struct oci_builder *b)
{
	const struct oci_plan_key *key = oci_builder_key(b);
	uint32_t before = key->size;

	if (key->size > 1 && turns_of(key->size, key->in_place) < 4) {
		oci_build_refuse(b);
		return;
	}
	oci_build_segment(b, HALF_BYTES);
	oci_build_copy(b, oci_block(OCI_BUF_SEND, key->v), oci_block(OCI_BUF_RECV, key->v));
	for (uint32_t i = first_step(key->size, key->in_place); i < key->size; i++) {
		/* I am through with all before. */
		oci_build_signal(b, begin(key, i) - 1, 0);
		if (target_of(key, i) == key->v)
			continue;
		build_step(b, i, before == key->size ? i : before);
		before = i;
	}
}

static bool fits(const struct oci_shape *shape, uint32_t parameter)
{
	uint32_t turns = shape->size > 1 ? turns_of(shape->size, shape->in_place) : 0;

	(void)parameter;
	/* The last step of each turn is that of the whole. */
	return shape->size == 1 || (turns >= 4 && shape->bytes / HALF_BYTES < turns - 1);
}

static void cost(struct oci_costing *c)
{
	size_t n = c->shape->bytes;
	double others = c->shape->size - 1.0, turns = oci_cost_pieces(n, HALF_BYTES);

	oci_cost_touch(c, OCI_TOUCH_SLOT, OCI_BY_ALL, others, n);
	oci_cost_touch(c, OCI_TOUCH_OWN, OCI_BY_ALL, 1, n);
	oci_cost_touch(c, OCI_TOUCH_PEERS, OCI_BY_ALL, others, n);
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
