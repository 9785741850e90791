/* SPDX-License-Identifier: BSD-3-Clause */
/* The hand-made plans of check_test.c: small ones that are right, and the faults put into them. */
#ifndef OC_PLAN_CHECK_TEST_PLANS_H
#define OC_PLAN_CHECK_TEST_PLANS_H

#include <stdlib.h>

#include "lab/check/check.h"
#include "support/test.h"

#define MOST_RANKS 6
#define LANES 2

/* What is wrong with a plan; each builder knows some of them. */
enum fault {
	NONE,
	NO_SIGNAL,
	NO_WAIT_POST,
	NO_WAIT_ACK,
	OUT_OF_BOUNDS,
	SAME_TARGET,
	WRONG_BLOCK,
	WRONG_ORDER,
	TWICE,
	LEFT_OUT,
	OTHER_TREE,
	EARLY_STEP,
	SAME_STEP,
	STEP_RANGE,
	SEND_WRITTEN,
	TOO_LONG,
	OVERLAP,
	NO_HELP,
	NO_SHARE,
	OTHER_BYTES,
	SECOND_SHARE,
	LATE_PUBLICATION,
	LENGTHS,
};

struct plans {
	enum oc_collective collective;
	void (*build)(struct oci_builder *b, enum fault fault);
	bool commutative;
};

struct set {
	uint32_t size;
	struct oci_plan *plan[2][MOST_RANKS]; /* of even and odd calls */
};

static const struct oci_plan *plan_of(void *context, uint32_t call, uint32_t v)
{
	const struct set *set = context;

	return set->plan[call % 2][v];
}

static void make_plans(struct set *set, unsigned int parity, const struct plans *plans,
		       uint32_t size, enum fault fault)
{
	set->size = size;
	for (uint32_t v = 0; v < size; v++) {
		struct oci_plan_key key = { .collective = (uint8_t)plans->collective,
					    .commutative = plans->commutative,
					    .v = v,
					    .size = size };
		struct oci_builder *b = oci_builder_create(&key);
		int error = 0;

		assert_non_null(b);
		plans->build(b, fault);
		set->plan[parity][v] = oci_builder_finish(b, &error);
		assert_int_equal(error, 0);
	}
}

static void free_plans(struct set *set)
{
	for (unsigned int i = 0; i < 2; i++)
		for (uint32_t v = 0; v < MOST_RANKS; v++)
			free(set->plan[i][v]);
}

/* The root posts its buffer, all read it. */
static void bcast_read(struct oci_builder *b, enum fault fault)
{
	const struct oci_plan_key *key = oci_builder_key(b);
	struct oci_range message = oci_block(OCI_BUF_RECV, 0);

	if (key->v == 0) {
		oci_build_post(b, OCI_POST_ADDRESS, 1, 0);
		if (fault == SAME_STEP)
			oci_build_post(b, OCI_POST_FLAG, 1, 0);
		if (fault != NO_WAIT_ACK)
			oci_build_wait_ack(b, 1, key->size - 1, 1, 0);
		return;
	}
	if (fault != NO_WAIT_POST)
		oci_build_wait_post(b, 0, 1, 1, 0);
	if (fault == TOO_LONG)
		message = oci_blocks(OCI_BUF_RECV, 0, 2);
	oci_build_pull(b, message, 0, oci_block(OCI_BUF_SEND, 0));
	if (fault != NO_SIGNAL || key->v != 2)
		oci_build_signal(b, 1, 0);
}

/* The root reads with all others at their POSTs' word: pipelined chain of segments. */
static void bcast_chain(struct oci_builder *b, enum fault fault)
{
	const struct oci_plan_key *key = oci_builder_key(b);
	struct oci_range all = oci_block(OCI_BUF_RECV, 0), segment = oci_segmented(all);
	uint16_t grow = fault == STEP_RANGE ? 40000 : 1;

	oci_build_segment(b, 4);
	oci_build_post(b, OCI_POST_ADDRESS, 1, 0);
	oci_build_wait_post(b, (key->v + 1) % key->size, 1, 1, 0);
	/* Segments grow so that a block's steps suffice, not those of two blocks. */
	oci_build_loop(b, oci_blocks(OCI_BUF_RECV, 0, fault == STEP_RANGE ? 2 : 1));
	if (key->v) {
		oci_build_wait_ack(b, key->v - 1, 1, fault == EARLY_STEP ? 1 : 2, grow);
		oci_build_wait_post(b, key->v - 1, 1, 1, 0);
		oci_build_pull(b, segment, key->v - 1, segment);
	}
	oci_build_signal(b, key->v || fault == EARLY_STEP ? 2 : 3, grow);
	oci_build_next(b);
	/* Whoever read from me says so by its last POST. */
	oci_build_post(b, OCI_POST_FLAG, 2, 0);
	if (key->v + 1 < key->size)
		oci_build_wait_post(b, key->v + 1, 1, 2, 0);
}

/* The payload of the POST line: nobody waits for the readers, the lanes' gate does. */
static void bcast_inline(struct oci_builder *b, enum fault fault)
{
	struct oci_range line = oci_block(OCI_BUF_INLINE, 0);

	if (oci_builder_key(b)->v == 0) {
		if (fault == EARLY_STEP)
			oci_build_post(b, OCI_POST_FLAG, 1, 0);
		oci_build_copy(b, oci_block(OCI_BUF_SEND, 0), line);
		oci_build_post(b, OCI_POST_FLAG, fault == EARLY_STEP ? 2 : 1, 0);
	} else {
		oci_build_wait_post(b, 0, 1, 1, 0);
		oci_build_pull(b, oci_block(OCI_BUF_RECV, 0), 0, line);
	}
}

/* All read their blocks from the root. */
static void scatter_read(struct oci_builder *b, enum fault fault)
{
	const struct oci_plan_key *key = oci_builder_key(b);
	uint32_t block = fault == WRONG_BLOCK ? (key->v + 1) % key->size : key->v;

	if (key->v == 0) {
		oci_build_post(b, OCI_POST_ADDRESS, 1, 0);
		oci_build_copy(b, oci_block_rel(OCI_BUF_SEND, block), oci_block(OCI_BUF_RECV, 0));
		if (fault == SEND_WRITTEN)
			oci_build_copy(b, oci_block_rel(OCI_BUF_SEND, 1),
				       oci_block_rel(OCI_BUF_SEND, 0));
		oci_build_wait_ack(b, 1, key->size - 1, 1, 0);
	} else {
		oci_build_wait_post(b, 0, 1, 1, 0);
		oci_build_pull(b, oci_block(OCI_BUF_RECV, 0), 0,
			       oci_block_rel(OCI_BUF_SEND, block));
		oci_build_signal(b, 1, 0);
	}
}

/* All write their blocks to the root. */
static void gather_write(struct oci_builder *b, enum fault fault)
{
	const struct oci_plan_key *key = oci_builder_key(b);
	struct oci_range target = oci_block_rel(OCI_BUF_RECV, key->v);

	if (fault == SAME_TARGET && key->v)
		target = oci_block_rel(OCI_BUF_RECV, 1);
	if (fault == OUT_OF_BOUNDS && key->v == 1)
		target = oci_block(OCI_BUF_RECV, key->size);
	if (fault == LENGTHS && key->v == 0)
		target = oci_blocks(OCI_BUF_RECV, 0, key->size);
	if (key->v == 0) {
		oci_build_post(b, OCI_POST_ADDRESS, 1, 0);
		oci_build_copy(b, oci_block(OCI_BUF_SEND, 0), target);
		oci_build_wait_ack(b, 1, key->size - 1, 1, 0);
	} else {
		oci_build_wait_post(b, 0, 1, 1, 0);
		oci_build_push(b, oci_block(OCI_BUF_SEND, 0), 0, target);
		oci_build_signal(b, 1, 0);
	}
}

/* The root and each of the others meet in the middle of that one's block. */
static void scatter_share(struct oci_builder *b, enum fault fault)
{
	const struct oci_plan_key *key = oci_builder_key(b);
	struct oci_range mine = oci_block(OCI_BUF_RECV, 0);
	struct oci_range there = oci_block_rel(OCI_BUF_SEND, key->v);
	bool last = key->v == key->size - 1;

	if (fault == LATE_PUBLICATION)
		oci_build_post(b, OCI_POST_FLAG, 1, 0);
	oci_build_post(b, OCI_POST_ADDRESS, 2, 0);
	if (key->v == 0) {
		oci_build_copy(b, there, mine);
		oci_build_help(b, OCI_SHARE_PULL, oci_block(OCI_BUF_SEND, 0), true, 1,
			       key->size - 1 - (fault == NO_HELP), mine);
		if (fault != NO_WAIT_ACK)
			oci_build_wait_ack(b, 1, key->size - 1, 1, 0);
		return;
	}
	if (fault == OTHER_BYTES && last)
		there = oci_block_rel(OCI_BUF_SEND, 0);
	oci_build_wait_post(b, 0, 1, 2, 0);
	if (fault == NO_SHARE && last)
		oci_build_pull(b, mine, 0, there);
	else
		oci_build_share(b, OCI_SHARE_PULL, mine, 0, there);
	if (fault == SECOND_SHARE && last)
		oci_build_share(b, OCI_SHARE_PULL, mine, 0, there);
	oci_build_signal(b, 1, 0);
}

/* The same the other way: the SHARE end holds the source. */
static void gather_share(struct oci_builder *b, enum fault fault)
{
	const struct oci_plan_key *key = oci_builder_key(b);
	struct oci_range mine = oci_block(OCI_BUF_SEND, 0);
	struct oci_range there = oci_block_rel(OCI_BUF_RECV, key->v);

	oci_build_post(b, OCI_POST_ADDRESS, 1, 0);
	if (key->v == 0) {
		oci_build_copy(b, mine, there);
		oci_build_help(b, OCI_SHARE_PUSH, oci_block(OCI_BUF_RECV, 0), true, 1,
			       key->size - 1, mine);
		if (fault != NO_WAIT_ACK)
			oci_build_wait_ack(b, 1, key->size - 1, 1, 0);
	} else {
		oci_build_wait_post(b, 0, 1, 1, 0);
		oci_build_share(b, OCI_SHARE_PUSH, mine, 0, there);
		oci_build_signal(b, 1, 0);
	}
}

/* From the last rank down: ACC = SEND(i) op ACC, so that rank order holds. */
static void fold(struct oci_builder *b, enum fault fault)
{
	const struct oci_plan_key *key = oci_builder_key(b);
	struct oci_range acc = oci_block(OCI_BUF_ACC, 0), slot = oci_block(OCI_BUF_SLOT, 0);
	bool reverse = fault == WRONG_ORDER || (fault == OTHER_TREE && key->v == 1);
	uint32_t last = key->size - 1;

	if (fault == OVERLAP)
		oci_build_reduce(b, acc, acc);
	oci_build_copy(b, oci_block(OCI_BUF_SEND, 0), slot);
	oci_build_post(b, OCI_POST_SLOT, 1, 0);
	oci_build_wait_post(b, 0, key->size, 1, 0);
	for (uint32_t i = 0; i <= last; i++) {
		uint32_t v = reverse ? i : last - i;
		bool own = v == key->v, first = i == 0;

		if (own && first)
			oci_build_copy(b, slot, acc);
		else if (own)
			oci_build_reduce(b, slot, acc);
		else if (first)
			oci_build_pull(b, acc, v, slot);
		else if (fault != LEFT_OUT || v != 1)
			oci_build_reduce_from(b, v, slot, acc);
		if (fault == TWICE && !own && v == 1)
			oci_build_reduce_from(b, v, slot, acc);
	}
	oci_build_copy(b, acc, oci_block(OCI_BUF_RECV, 0));
}

/* Everyone awaits everyone. */
static void barrier_flat(struct oci_builder *b, enum fault fault)
{
	const struct oci_plan_key *key = oci_builder_key(b);

	oci_build_post(b, OCI_POST_FLAG, 1, 0);
	if (fault == NO_WAIT_POST && key->v == 1)
		return;
	oci_build_wait_post(b, key->v + 1 < key->size ? key->v + 1 : 0, key->size - 1, 1, 0);
}

/* Everyone reads the others' blocks from the second block of their WORK. */
static void allgather_work(struct oci_builder *b, enum fault fault)
{
	const struct oci_plan_key *key = oci_builder_key(b);
	bool lacks = fault == OUT_OF_BOUNDS && key->v == 0; /* so it reads the wrong one, too */
	struct oci_range waiting = oci_block(OCI_BUF_WORK, lacks ? 0 : 1);
	uint32_t next = (key->v + 1) % key->size;

	oci_build_work(b, lacks ? 1 : 2);
	oci_build_copy(b, oci_block(OCI_BUF_SEND, 0), waiting);
	oci_build_copy(b, oci_block(OCI_BUF_SEND, 0), oci_block(OCI_BUF_RECV, key->v));
	oci_build_post(b, OCI_POST_ADDRESS, 1, 0);
	for (uint32_t v = next; v != key->v; v = (v + 1) % key->size) {
		if (fault != NO_WAIT_POST)
			oci_build_wait_post(b, v, 1, 1, 0);
		oci_build_pull(b, oci_block(OCI_BUF_RECV, v), v, waiting);
	}
	oci_build_signal(b, 1, 0);
	if (fault != NO_WAIT_ACK)
		oci_build_wait_ack(b, next, key->size - 1, 1, 0);
}

/* The root fills the halves of its slot by turns, when all have emptied the one it needs. */
static void bcast_halves(struct oci_builder *b, enum fault fault)
{
	const struct oci_plan_key *key = oci_builder_key(b);
	struct oci_range segment = oci_segmented(oci_block(OCI_BUF_RECV, 0));

	oci_build_segment(b, 8);
	if (key->v)
		oci_build_signal(b, 2, 0);
	oci_build_loop(b, oci_block(OCI_BUF_RECV, 0));
	if (key->v == 0) {
		/* EARLY_STEP: with the one before it still unread. */
		if (fault != NO_WAIT_ACK)
			oci_build_wait_ack(b, 1, key->size - 1, 1, fault == EARLY_STEP ? 0 : 1);
		oci_build_copy(b, segment, oci_slot_half());
		oci_build_post(b, OCI_POST_SLOT, 3, 1);
	} else {
		oci_build_wait_post(b, 0, 1, 3, 1);
		oci_build_pull(b, segment, 0, oci_slot_half());
		oci_build_signal(b, 3, 1);
	}
	oci_build_next(b);
}

static const struct plans bcast = { OC_BCAST, bcast_read, false };
static const struct plans barrier = { OC_BARRIER, barrier_flat, false };
static const struct plans work = { OC_ALLGATHER, allgather_work, false };
static const struct plans halves = { OC_BCAST, bcast_halves, false };
static const struct plans chain = { OC_BCAST, bcast_chain, false };
static const struct plans in_line = { OC_BCAST, bcast_inline, false };
static const struct plans scatter = { OC_SCATTER, scatter_read, false };
static const struct plans gather = { OC_GATHER, gather_write, false };
static const struct plans share = { OC_SCATTER, scatter_share, false };
static const struct plans share_push = { OC_GATHER, gather_share, false };
static const struct plans allreduce = { OC_ALLREDUCE, fold, false };
static const struct plans sum = { OC_ALLREDUCE, fold, true };

#endif
