/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Does the checker find faults? Small plans written by hand: right ones pass under every schedule,
 * and every fault put into them is found under every schedule, by its own sentence.
 */
#include <errno.h>
#include <string.h>

#include "lab/check/check.h"
#include "lab/check/check_test_plans.h"
#include "support/test.h"

/* ---- schedules ----------------------------------------------------------------------------- */

#define SEEDS 20

/* The n-th way to run a check, with every rank first and last; false when there are no more. */
static bool set_schedule(struct oci_check *c, uint32_t n)
{
	c->seed = n;
	c->favoured = n % c->size;
	if (n < c->size)
		c->schedule = OCI_CHECK_FIRST;
	else if (n < 2 * c->size)
		c->schedule = OCI_CHECK_LAST;
	else if (n < 2 * c->size + SEEDS)
		c->schedule = OCI_CHECK_RANDOM;
	else if (n == 2 * c->size + SEEDS)
		c->schedule = OCI_CHECK_ROUND_ROBIN;
	else if (n == 2 * c->size + SEEDS + 1 && c->size <= 3)
		c->schedule = OCI_CHECK_EXHAUSTIVE;
	else
		return false;
	return true;
}

static struct oci_check_call call_of(const struct plans *plans, uint32_t root, size_t bytes)
{
	bool reduction = plans->collective == OC_ALLREDUCE;
	bool rootless = reduction || plans->collective == OC_BARRIER ||
			plans->collective == OC_ALLGATHER;

	return (struct oci_check_call){ .collective = plans->collective,
					.commutative = plans->commutative,
					.root = rootless ? 0 : root,
					.bytes = bytes,
					.unit = reduction ? 4 : 1 };
}

static struct oci_check check_of(uint32_t size, struct oci_check_call *calls, uint32_t count,
				 struct set *set)
{
	return (struct oci_check){ .size = size,
				   .lanes = LANES,
				   .count = count,
				   .calls = calls,
				   .plan = plan_of,
				   .context = set };
}

static void assert_right(const struct plans *even, const struct plans *odd, uint32_t size,
			 bool in_place)
{
	struct oci_check_call calls[6];
	struct set set = { 0 };
	struct oci_check c = check_of(size, calls, 0, &set);
	struct oci_check_result result;
	char why[1024] = "";
	uint64_t digest = 0;

	c.slot_bytes = 64;
	make_plans(&set, 0, even, size, NONE);
	make_plans(&set, 1, odd, size, NONE);
	for (uint32_t i = 0; i < 6; i++) {
		calls[i] = call_of(i % 2 ? odd : even, i * 5 % size, i == 2 ? 0 : 4 * (i + 1));
		calls[i].in_place = in_place;
	}
	for (uint32_t n = 0; set_schedule(&c, n); n++) {
		c.count = c.schedule == OCI_CHECK_EXHAUSTIVE ? 4 : 6;
		c.seed = c.schedule == OCI_CHECK_RANDOM ? n : 7;
		if (oci_check_sequence(&c, &result, why, sizeof(why)))
			fail_msg("%s", why);
		assert_true(result.steps > 0);
		assert_int_equal(result.states > 0, c.schedule == OCI_CHECK_EXHAUSTIVE);
		/* The same symbols, the same associations. */
		if (c.seed == 7 && c.count == 6 && digest)
			assert_true(digest == result.digest);
		if (c.seed == 7 && c.count == 6)
			digest = result.digest;
	}
	free_plans(&set);
}

/* Every schedule says -EPROTO with both sentences in it, or with the one that stands for them where
 * the fault has a consequence that may show first. */
static void assert_found(const struct plans *plans, enum fault fault, const char *sentence,
			 const char *other, const char *instead)
{
	struct oci_check_call calls[2];
	struct set set = { 0 };
	struct oci_check c = check_of(3, calls, 2, &set);
	char why[1024];

	make_plans(&set, 0, plans, 3, NONE);
	make_plans(&set, 1, plans, 3, fault);
	calls[0] = calls[1] = call_of(plans, 0, 48);
	for (uint32_t n = 0; set_schedule(&c, n); n++) {
		why[0] = '\0';
		assert_int_equal(oci_check_sequence(&c, NULL, why, sizeof(why)), -EPROTO);
		if (instead && strstr(why, instead))
			continue;
		if (!strstr(why, sentence) || !strstr(why, other) || !strstr(why, "call 1"))
			fail_msg("schedule %u: expected \"%s\", \"%s\" in: %s", n, sentence, other,
				 why);
	}
	free_plans(&set);
}

/* ---- tests --------------------------------------------------------------------------------- */

TEST(check_right_plans_pass_under_every_schedule)
{
	for (uint32_t size = 2; size <= MOST_RANKS; size++) {
		assert_right(&bcast, &gather, size, false);
		assert_right(&chain, &in_line, size, false);
		assert_right(&scatter, &share, size, false);
		assert_right(&share_push, &bcast, size, false);
		assert_right(&allreduce, &sum, size, false);
		assert_right(&barrier, &in_line, size, false);
		assert_right(&work, &halves, size, false);
	}
	assert_right(&in_line, &in_line, 1, false);
}

TEST(check_in_place_plans_pass_under_every_schedule)
{
	for (uint32_t size = 2; size <= MOST_RANKS; size++) {
		assert_right(&scatter, &gather, size, true);
		assert_right(&share, &share_push, size, true);
		assert_right(&allreduce, &sum, size, true);
	}
}

TEST(check_missing_signal_is_a_deadlock)
{
	assert_found(&bcast, NO_SIGNAL, "deadlock: rank 0 (v0) in call 1 op 1 WAIT_ACK",
		     "waits for step 1 of rank 2's ACK flag, which stands at 0", NULL);
}

TEST(check_handle_must_be_awaited)
{
	assert_found(&bcast, NO_WAIT_POST, "op 0 PULL RECV[0] <- v0 SEND[0]",
		     "uses a handle it did not await: SEND of rank 0", NULL);
	assert_found(&share, LATE_PUBLICATION, "HELP",
		     "uses a handle it did not await: RECV of rank", NULL);
	assert_found(&work, NO_WAIT_POST, "PULL RECV[", "it did not await: WORK of rank", NULL);
}

TEST(check_leaving_before_the_readers_is_a_race)
{
	assert_found(&bcast, NO_WAIT_ACK, "race: ", "rank 0", NULL);
	assert_found(&share, NO_WAIT_ACK, "race: ", "SEND of rank 0", NULL);
	assert_found(&share_push, NO_WAIT_ACK, "race: ", "RECV of rank 0", NULL);
	assert_found(&work, NO_WAIT_ACK, "race: ", "WORK of rank ", NULL);
}

TEST(check_half_of_a_slot_must_be_empty_when_it_is_filled)
{
	assert_found(&halves, NO_WAIT_ACK, "race: ", "SLOT of rank 0", NULL);
	assert_found(&halves, EARLY_STEP, "race: ", "SLOT of rank 0", NULL);
}

TEST(check_access_outside_of_a_buffer_is_found)
{
	assert_found(&gather, OUT_OF_BOUNDS, "op 1 PUSH SEND[0] -> v0 RECV[3]",
		     "out of bounds: bytes [144, 192) of RECV of rank 0, which has 144", NULL);
	assert_found(&bcast, TOO_LONG, "PULL", "out of bounds: bytes [0, 96) of RECV", NULL);
	assert_found(&work, OUT_OF_BOUNDS, " <- v0 WORK[1]",
		     "out of bounds: bytes [48, 96) of WORK of rank 0, which has 48",
		     "wrong byte: RECV[48]");
}

TEST(check_unordered_writers_are_a_race)
{
	assert_found(&gather, SAME_TARGET, "race: write of bytes [48, 96) of RECV of rank 0",
		     "is not ordered with the write by rank", NULL);
}

TEST(check_wrong_byte_is_found)
{
	assert_found(&scatter, WRONG_BLOCK, "wrong byte: RECV[0] should be byte ",
		     "of rank 0's SEND", NULL);
	assert_found(&scatter, SEND_WRITTEN, "rank 0 (v0)", "SEND[0] was changed", NULL);
}

TEST(check_barrier_must_hold_until_all_are_in)
{
	assert_found(&barrier, NO_WAIT_POST, "rank 1 (v1), op 1 END: leaves the barrier without",
		     "knowing that rank", NULL);
}

TEST(check_reduction_must_keep_rank_order)
{
	assert_found(&allreduce, WRONG_ORDER, "wrong byte: RECV[0]",
		     "should be the reduction in rank order", NULL);
}

TEST(check_lost_and_doubled_contributions_are_found)
{
	assert_found(&sum, TWICE, "wrong byte: RECV[0]", "should be the sum over all ranks", NULL);
	assert_found(&sum, LEFT_OUT, "wrong byte: RECV[0]", "should be the sum", NULL);
	assert_found(&sum, OVERLAP, "op 0 REDUCE", "the operands overlap", NULL);
}

TEST(check_ranks_of_an_allreduce_must_associate_alike)
{
	assert_found(&sum, OTHER_TREE, "association: RECV[0]", "in another order than on", NULL);
}

/* A flag that stands far does not help a WAIT that asks for too little. */
TEST(check_wait_for_too_small_a_step_is_a_race)
{
	assert_found(&in_line, EARLY_STEP, "race: ", "INLINE of rank 0", "wrong byte: RECV[0]");
	assert_found(&chain, EARLY_STEP, "race: ", "RECV of rank", "wrong byte: RECV[0]");
}

TEST(check_flags_grow_within_their_steps)
{
	assert_found(&bcast, SAME_STEP, "op 1 POST step 1",
		     "the flag does not grow: it stands at step 1", NULL);
	assert_found(&chain, STEP_RANGE, "SIGNAL", "is not one of an operation", NULL);
}

TEST(check_both_ends_of_a_share_must_exist_and_agree)
{
	assert_found(&share, NO_HELP, "the SHARE of rank 2", "has no HELP by rank 0", NULL);
	assert_found(&share, OTHER_BYTES, "SHARE of rank 2", "mean different bytes",
		     "wrong byte: RECV[0]");
	assert_found(&share, SECOND_SHARE, "op 3 SHARE", "second SHARE of this rank", NULL);
}

TEST(check_lengths_must_match)
{
	assert_found(&gather, LENGTHS, "op 1 COPY SEND[0] -> RECV[0..3)",
		     "the lengths differ: 48 and 144 bytes", NULL);
}

/* A HELP alone copies behind its peer's back: whichever shows first. */
TEST(check_help_without_a_share_is_found)
{
	struct oci_check_call calls[1] = { call_of(&share, 0, 48) };
	struct set set = { 0 };
	struct oci_check c = check_of(3, calls, 1, &set);
	char why[1024];

	make_plans(&set, 0, &share, 3, NO_SHARE);
	for (uint32_t n = 0; set_schedule(&c, n); n++) {
		assert_int_equal(oci_check_sequence(&c, NULL, why, sizeof(why)), -EPROTO);
		assert_true(strstr(why, "race: write of bytes [0, 48) of RECV of rank 2") ||
			    strstr(why, "race: write of bytes [36, 48) of RECV of rank 2") ||
			    strstr(why, "race: write of bytes [24, 48) of RECV of rank 2") ||
			    strstr(why, "the HELP for the SHARE of rank 2 has no SHARE"));
	}
	free_plans(&set);
}

/* The payload of call n is overwritten by call n + L: only the gate keeps them apart. */
TEST(check_lane_reuse_without_the_gate_is_a_race)
{
	struct oci_check_call calls[4];
	struct set set = { 0 };
	struct oci_check c = check_of(3, calls, 4, &set);
	char why[1024];

	make_plans(&set, 0, &in_line, 3, NONE);
	make_plans(&set, 1, &in_line, 3, NONE);
	for (uint32_t i = 0; i < 4; i++)
		calls[i] = call_of(&in_line, 0, 48);
	for (uint32_t n = 0; set_schedule(&c, n); n++) {
		c.ungated = false;
		assert_int_equal(oci_check_sequence(&c, NULL, why, sizeof(why)), 0);
		c.ungated = true;
		why[0] = '\0';
		assert_int_equal(oci_check_sequence(&c, NULL, why, sizeof(why)), -EPROTO);
		assert_non_null(strstr(why, "race: "));
		assert_non_null(strstr(why, "of INLINE of rank 0"));
	}
	free_plans(&set);
}

TEST(check_exhaustive_search_visits_every_state_and_keeps_its_limit)
{
	struct oci_check_call calls[1] = { call_of(&in_line, 0, 4) };
	struct set set = { 0 };
	struct oci_check c = check_of(2, calls, 1, &set);
	struct oci_check_result result;
	char why[256];

	c.schedule = OCI_CHECK_EXHAUSTIVE;
	make_plans(&set, 0, &in_line, 2, NONE);
	assert_int_equal(oci_check_sequence(&c, &result, why, sizeof(why)), 0);
	/* Rank 0 stands at one of 5 places (before, COPY, POST, END, after), rank 1 at one of 5,
	 * and the last 3 of these only when rank 0 has posted, at its last 2: 5 * 2 + 2 * 3. */
	assert_int_equal(result.states, 16);
	c.max_states = 15;
	assert_int_equal(oci_check_sequence(&c, &result, why, sizeof(why)), -E2BIG);
	assert_string_equal(why, "more than 15 states");
	free_plans(&set);
}

TEST(check_impossible_descriptions_are_refused)
{
	struct oci_check_call calls[1] = { call_of(&bcast, 0, 4) };
	struct set set = { 0 };
	struct oci_check c = check_of(2, calls, 1, &set);
	char why[256];

	assert_int_equal(oci_check_sequence(&c, NULL, why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, "there is no plan"));
	make_plans(&set, 0, &bcast, 2, NONE);
	assert_int_equal(oci_check_sequence(&c, NULL, why, sizeof(why)), 0);
	calls[0].in_place = true;
	assert_int_equal(oci_check_sequence(&c, NULL, why, sizeof(why)), -EINVAL);
	assert_string_equal(why, "call 0: this collective has no form in place");
	calls[0].in_place = false;
	calls[0].root = 2;
	assert_int_equal(oci_check_sequence(&c, NULL, why, sizeof(why)), -EINVAL);
	calls[0].root = 0;
	calls[0].unit = 2;
	assert_int_equal(oci_check_sequence(&c, NULL, why, sizeof(why)), -EINVAL);
	calls[0] = call_of(&allreduce, 0, 4);
	calls[0].root = 1;
	assert_int_equal(oci_check_sequence(&c, NULL, why, sizeof(why)), -EINVAL);
	assert_string_equal(why, "call 0: no such root");
	calls[0] = call_of(&gather, 0, 4);
	assert_int_equal(oci_check_sequence(&c, NULL, why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, "the plan is one of v0 of 2 for a bcast"));
	c.schedule = OCI_CHECK_EXHAUSTIVE;
	c.size = 5;
	assert_int_equal(oci_check_sequence(&c, NULL, why, sizeof(why)), -EINVAL);
	free_plans(&set);
}
