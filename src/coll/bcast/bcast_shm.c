/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copy in, copy out, however long the message is: the root fills the halves of its slot by turns,
 * each when all others have emptied it. Bcast through shared memory, which paper 002 compares with
 * and finds ahead of single copies on Broadwell up to 2 MiB (VII-F).
 *
 * Wins where no single copy works, or where its readers hold each other up more than a second copy
 * costs. cico does the same for what fits a slot, with nobody waiting for a half to be emptied.
 * Cost: 2 n memcpy, half of it overlapped, with all readers at one memory + ceil(n / half) (T_flag
 * + T_gather(ack)).
 * Restriction: a flag has OCI_STEPS steps, one for each half, 2 GiB.
 *
 * POST at 3 + s: segment s is in my slot. ACK at 3 + s: I have emptied it. Segment s is filled when
 * all have reached 1 + s, that is when they have emptied segment s - 2; of the first two, when they
 * have begun (ACK at 2). The root leaves without waiting for the last two: the lane keeps its slot.
 */
#include "base/least.h"
#include "coll/build.h"

#define HALF_BYTES (OCI_SLOT_BYTES / 2)

static void build(struct oci_builder *b)
{
	const struct oci_plan_key *key = oci_builder_key(b);
	struct oci_range message = oci_block(OCI_BUF_RECV, 0);

	oci_build_segment(b, HALF_BYTES);
	if (key->v)
		oci_build_signal(b, 2, 0);
	else
		message.buf = OCI_BUF_SEND;
	oci_build_loop(b, message);
	if (key->v) {
		oci_build_wait_post(b, 0, 1, 3, 1);
		oci_build_pull(b, oci_segmented(message), 0, oci_slot_half());
		oci_build_signal(b, 3, 1);
	} else {
		oci_build_wait_ack(b, 1, key->size - 1, 1, 1);
		oci_build_copy(b, oci_segmented(message), oci_slot_half());
		oci_build_post(b, OCI_POST_SLOT, 3, 1);
	}
	oci_build_next(b);
}

/* Beyond it segments would grow (src/plan/range.c). */
static bool fits(const struct oci_shape *shape, uint32_t parameter)
{
	(void)parameter;
	return shape->bytes / HALF_BYTES < OCI_STEPS - 3;
}

static void cost(struct oci_costing *c)
{
	size_t n = c->shape->bytes, half = n < HALF_BYTES ? n : HALF_BYTES;
	double turns = oci_cost_pieces(n, HALF_BYTES), fill, fetch, flags, round, pace;
	double memory = c->cost.memory, before = c->cost.flags;

	c->whole = n;
	oci_cost_touch(c, OCI_TOUCH_SLOT, OCI_BY_ONE, 1, half);
	fill = c->cost.memory - memory;
	oci_cost_touch(c, OCI_TOUCH_PEERS, OCI_BY_OTHERS, 1, half);
	fetch = c->cost.memory - memory - fill;
	c->whole = 0;
	oci_cost_flags(c, 1);
	oci_cost_flag_row(c, c->shape->size - 1.0);
	flags = c->cost.flags - before;
	/* From the filling of a half to the next filling of the same, meanwhile the other one's. */
	round = fill + fetch + flags;
	pace = oci_larger(oci_larger(fill, fetch), round / 2);
	c->cost.memory += (turns - 1) * oci_larger(fill, fetch);
	c->cost.flags += (turns - 1) * (pace - oci_larger(fill, fetch));
	oci_cost_ops(c, 1 + 3 * turns);
}

const struct oci_algorithm oci_bcast_shm = {
	.name = "shm",
	.idea = "through both halves of the root's slot by turns, of any size; to compare with",
	.build = build,
	.cost = cost,
	.baseline = true,
	.fits = fits,
};
