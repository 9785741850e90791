/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every algorithm in every list goes through the checker (lab/check/check.h): at its largest size,
 * in random sequences with others, with copies left out, and through every interleaving of up to 3
 * ranks. coll_grid_test.c has all numbers of ranks. Adding an algorithm to a list is enough to have
 * it checked.
 *
 * ONECOPY_CHECK_FULL=1 takes more ranks and sequences: minutes.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "coll/coll.h"
#include "lab/check/check.h"
#include "lab/check/coll_check_test.h"
#include "support/test.h"

/* ---- limits -------------------------------------------------------------------------------- */

/* The largest block that an algorithm claims to fit, up to that of a slot. */
static void check_largest(const struct subject *subject)
{
	size_t slot = subject->near ? OCI_NEAR_SLOT_BYTES : OCI_SLOT_BYTES;
	size_t unit = oci_is_reduction(subject->collective) ? 4 : 1;
	size_t low = 0, high = slot / unit;
	struct sequence s = { 0 };

	if (subject->collective == OC_BARRIER || fits(subject, (high + 1) * unit, unit))
		return;
	while (low < high) {
		size_t middle = (low + high + 1) / 2;

		if (fits(subject, middle * unit, unit))
			low = middle;
		else
			high = middle - 1;
	}
	for (unsigned int in_place = 0; in_place < 2; in_place++) {
		add_call(&s, subject, subject->size - 1, low * unit, unit, in_place);
		s.check.lanes = 2;
		s.check.slot_bytes = (uint32_t)slot;
		run(&s, subject->size, OCI_CHECK_RANDOM, low);
		clear(&s);
	}
}

static void check_largest_in_both_orders(const struct subject *subject)
{
	both_orders(subject, check_largest);
}

/* Two near ranks have larger slots. */
static void check_largest_near(const struct subject *subject)
{
	struct subject near = *subject;

	near.near = true;
	both_orders(&near, check_largest);
}

TEST(coll_largest_size_that_fits_stays_in_bounds)
{
	static const uint32_t some[] = { 2, 3, 5, 8 };

	for (size_t i = 0; i < COUNT(some); i++)
		for_each_subject(some[i], check_largest_in_both_orders);
	for_each_subject(2, check_largest_near);
	if (full())
		for_each_subject(MOST_RANKS, check_largest_in_both_orders);
}

/* ---- steps of a flag at the largest size ---------------------------------------------------- */

/* The last step that a flag operation reaches with so many segments. */
static uint64_t last_step(const struct oci_op *op, uint64_t segments)
{
	return op->step + (op->step_loop ? (segments - 1) * op->step_loop : 0);
}

static size_t largest_that_fits(const struct subject *subject)
{
	size_t low = 0, high = (size_t)1 << 40;

	while (low < high) {
		size_t middle = (low + high + 1) / 2;

		if (fits(subject, middle, 1))
			low = middle;
		else
			high = middle - 1;
	}
	return low;
}

static void check_steps_of_halves(const struct subject *subject)
{
	size_t most = largest_that_fits(subject);
	struct plan_set *set = build_set(subject, 0, false);
	const struct oci_plan *plan = set->plan[0];
	struct oci_params params = { .bytes = most, .size = subject->size };
	uint64_t reached[2] = { 0 }, segments, blocks;

	oci_params_derive(&params, plan, 1);
	assert_int_equal(params.segment_bytes, OCI_SLOT_BYTES / 2);
	segments = (most + params.segment_bytes - 1) / params.segment_bytes;
	/* The more blocks, the fewer steps for each: with 2 ranks all but a few of a flag. */
	blocks = subject->collective == OC_ALLTOALL ? subject->size - 1 : 1;
	assert_true(segments * blocks > OCI_STEPS - 4 * subject->size);
	for (uint32_t i = 0; i < plan->count; i++) {
		const struct oci_op *op = &plan->ops[i];
		uint64_t *flag = &reached[op->code == OCI_OP_SIGNAL];

		if (op->code != OCI_OP_POST && op->code != OCI_OP_SIGNAL)
			continue;
		assert_true(op->step > *flag);
		*flag = last_step(op, segments);
		assert_true(*flag < OCI_STEPS);
	}
	for (uint32_t v = 0; v < subject->size; v++)
		free(set->plan[v]);
	free(set);
}

TEST(coll_halves_of_a_slot_have_steps_for_the_largest_size)
{
	static const uint32_t some[] = { 2, 3, 8, MOST_RANKS, MOST_PLANS };
	static const enum oc_collective collectives[] = { OC_ALLTOALL, OC_BCAST };

	for (size_t c = 0; c < COUNT(collectives); c++) {
		struct subject subject = { .collective = collectives[c] };

		while (strcmp(oci_algorithm(collectives[c], subject.algorithm)->name, "shm"))
			subject.algorithm++;
		for (size_t i = 0; i < COUNT(some); i++) {
			subject.size = some[i];
			check_steps_of_halves(&subject);
		}
	}
}

/* ---- offers at their own thresholds -----------------------------------------------------------
 */

/* Blocks around the sizes where a way ends, most of them the lesser; also with cells in the slot.
 */
static void check_offers(const struct subject *subject)
{
	bool single = subject->collective == OC_ALLGATHERV || subject->collective == OC_GATHERV;
	struct oci_offer offer = oci_offer_layout(single ? 1 : subject->size - 1, 0);
	uint32_t limit = oci_offer_limit(&offer), size = subject->size;
	struct sequence s = { 0 };

	if (!oci_is_v(subject->collective) ||
	    subject->parameter !=
		    oci_algorithm(subject->collective, subject->algorithm)->parameter_default)
		return;
	for (uint32_t root = 0; root < size; root += size - 1) {
		s.check.tiny_bytes = offer.cell_bytes;
		s.check.small_bytes = limit;
		add_call(&s, subject, root, EMPTY, 1, root);
		for (size_t i = 0; i < (size_t)size * size; i++) {
			const size_t some[] = { offer.cell_bytes - 1, offer.cell_bytes,
						offer.cell_bytes + 1, limit, limit + 1 };
			bool rare = size > 5 && i % (5 * size + 7) > 4;

			s.from_to[0][i] = rare ? i % 23 : some[i % COUNT(some)];
		}
		s.check.lanes = 2;
		run(&s, size, OCI_CHECK_RANDOM, root);
		clear(&s);
	}
}

TEST(coll_offers_at_their_own_thresholds)
{
	static const uint32_t some[] = { 2, 3, 5, 31, 32, MOST_RANKS, 66 };

	for (size_t i = 0; i < COUNT(some); i++)
		for_each_subject(some[i], check_offers);
}

/* ---- every interleaving -------------------------------------------------------------------- */

/* Two calls with different roots: the second may begin before the first has ended elsewhere. */
static void check_exhaustively(const struct subject *subject)
{
	/* Of a Reduce whose parts are of different lengths every rank has one. */
	bool parts = subject->collective == OC_REDUCE;
	size_t unit = oci_is_reduction(subject->collective) && !parts ? 2 : 1;
	size_t bytes = subject->collective == OC_BARRIER ? 0 : parts ? 11 : 6;
	struct sequence s = { 0 };

	for (uint32_t lanes = 1; lanes <= 2; lanes++) {
		s.check.tiny_bytes = 2;
		s.check.small_bytes = 4;
		for (uint32_t i = 0; i < 2; i++)
			add_call(&s, subject, (i + 1) % subject->size, bytes, unit, i);
		s.check.lanes = lanes;
		s.check.segment_bytes = 4;
		run(&s, subject->size, OCI_CHECK_EXHAUSTIVE, lanes);
		clear(&s);
	}
}

static void check_exhaustively_in_both_orders(const struct subject *subject)
{
	both_orders(subject, check_exhaustively);
}

TEST(coll_every_interleaving_of_2_and_3_ranks)
{
	for (uint32_t size = 2; size <= 3; size++)
		for_each_subject(size, check_exhaustively_in_both_orders);
}

/* ---- mutants -------------------------------------------------------------------------------- */

static bool is_needed(const struct oci_op *op)
{
	switch (op->code) {
	case OCI_OP_PULL:
	case OCI_OP_PUSH:
	case OCI_OP_SHARE:
	case OCI_OP_HELP:
	case OCI_OP_COPY:
	case OCI_OP_REDUCE:
	case OCI_OP_REDUCE_FROM:
	case OCI_OP_OFFER:
	case OCI_OP_TAKE:
	case OCI_OP_GIVE:
	case OCI_OP_TRADE:
		return true;
	/* The last wait of an offer: for those who read a LARGE block. */
	case OCI_OP_WAIT_ACK:
		return op->when && op[1].code == OCI_OP_END;
	default:
		return false;
	}
}

/* Four calls, the last in place, with one operation of the first call's rank v left out. */
static bool found_without(struct sequence *s, const struct subject *subject, uint32_t v,
			  uint32_t index)
{
	struct oci_op *op = &s->used[0]->plan[v]->ops[index], kept = *op;
	char why[1024] = "";
	int rc;

	*op = (struct oci_op){ .code = OCI_OP_COPY };
	s->check.size = subject->size;
	s->check.calls = s->calls;
	s->check.plan = plan_of;
	s->check.context = s;
	s->check.kept = &kept_world;
	s->check.lanes = 2;
	s->check.segment_bytes = 8;
	s->check.tiny_bytes = TINY_BYTES;
	s->check.small_bytes = SMALL_BYTES;
	rc = oci_check_sequence(&s->check, NULL, why, sizeof(why));
	*op = kept;
	total.mutants++;
	return rc == -EPROTO;
}

static void check_mutants(const struct subject *subject)
{
	size_t unit = oci_is_reduction(subject->collective) ? 4 : 1;
	/* Ranks of a Reduce may have parts of different lengths: none is to be without one. */
	size_t times = subject->collective == OC_REDUCE ? 4 : 1;
	struct sequence s = { 0 };

	if (subject->collective == OC_BARRIER)
		return;
	for (uint32_t i = 0; i < 4; i++)
		add_call(&s, subject, 0,
			 oci_is_v(subject->collective) ? i : i * subject->size * times * unit, unit,
			 i == 3);
	if (!s.check.count)
		return;
	for (uint32_t v = 0; v < subject->size; v++) {
		const struct oci_plan *plan = s.used[0]->plan[v];

		for (uint32_t i = 0; i < plan->count; i++)
			if (is_needed(&plan->ops[i]) && is_run() &&
			    !found_without(&s, subject, v, i))
				fail_msg("%s %s:%u, v%u of %u: op %u %s is not missed",
					 oci_collective_name(subject->collective),
					 oci_algorithm(subject->collective, subject->algorithm)
						 ->name,
					 subject->parameter, v, subject->size, i,
					 oci_opcode_name(plan->ops[i].code));
	}
	clear(&s);
}

static void check_mutants_in_both_orders(const struct subject *subject)
{
	both_orders(subject, check_mutants);
}

/* A plan that passes proves nothing if a plan that lacks a copy passes too. */
TEST(coll_no_copy_can_be_left_out)
{
	for (uint32_t size = 2; size <= 8; size++)
		for_each_subject(size, check_mutants_in_both_orders);
}

/* ---- mixed sequences ----------------------------------------------------------------------- */

static uint64_t random_state = 1;

static uint32_t pick(uint32_t below)
{
	random_state = random_state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((random_state >> 33) % below);
}

static void add_random_call(struct sequence *s, uint32_t size)
{
	struct subject subject = { .size = size };
	size_t unit = 1, bytes = 0;
	unsigned int algorithms = 0;
	uint32_t root;
	bool in_place;
	const struct oci_algorithm *a;

	do
		subject.collective = pick(OC_COLLECTIVES);
	while (!oci_algorithm(subject.collective, 0));
	while (oci_algorithm(subject.collective, algorithms))
		algorithms++;
	subject.algorithm = pick(algorithms);
	subject.commutative = pick(2);
	a = oci_algorithm(subject.collective, subject.algorithm);
	subject.parameter = a->parameter_default;
	if (a->parameter_min)
		subject.parameter = a->parameter_min + pick(size);
	if (a->parameter_max && subject.parameter > a->parameter_max)
		subject.parameter = a->parameter_max;
	if (oci_is_reduction(subject.collective))
		unit = grid_units[pick(COUNT(grid_units))];
	if (subject.collective != OC_BARRIER)
		bytes = grid_sizes[pick(COUNT(grid_sizes))];
	root = pick(size);
	in_place = pick(2);
	add_call(s, &subject, root, bytes - bytes % unit, unit, in_place);
}

TEST(coll_random_sequences_of_mixed_collectives)
{
	unsigned int sequences = full() ? 20000 : 1500;

	for (unsigned int i = 0; i < sequences; i++) {
		uint32_t size = 2 + pick(i % 16 ? 8 : MOST_RANKS - 1);
		struct sequence s = { 0 };

		for (unsigned int j = 0; j < 20; j++)
			add_random_call(&s, size);
		s.check.lanes = 2 + 6 * pick(2);
		s.check.segment_bytes = 8 * pick(4);
		run(&s, size, pick(OCI_CHECK_EXHAUSTIVE), i);
		clear(&s);
	}
}

int main(void)
{
	return oct_test_run(NULL, print_totals);
}
