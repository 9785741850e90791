/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every algorithm in every list goes through the checker (lab/check/check.h) for 2 to 33 ranks,
 * awkward sizes and roots, in place; coll_check_test.c has the rest.
 *
 * ONECOPY_CHECK_FULL=1 takes all roots, sizes and schedules for all numbers of ranks: minutes.
 */
#include "lab/check/coll_check_test.h"
#include "support/test.h"

/* The roots that are tried with every size, and whether a size is tried at all. */
static bool root_counts(uint32_t root, uint32_t size)
{
	return size <= 9 || full() || root == 0 || root == 1 || root == size / 2 ||
	       root == size - 1;
}

static bool size_counts(size_t bytes, uint32_t size, size_t index)
{
	return full() || size <= 9 || bytes <= 64 || index % 4 == size % 4;
}

/* One sequence in three has no segments to speak of; lanes are few or many. */
static void flush(struct sequence *s, uint32_t size, uint64_t turn)
{
	static const enum oci_check_schedule schedules[] = { OCI_CHECK_RANDOM, OCI_CHECK_FIRST,
							     OCI_CHECK_LAST,
							     OCI_CHECK_ROUND_ROBIN };
	uint64_t most = full() ? COUNT(schedules) : 1;

	for (uint64_t i = 0; i < most && s->check.count; i++) {
		s->check.lanes = (turn + i) % 2 ? 2 : 8;
		s->check.segment_bytes = (turn + i) % 3 ? 24 : 0;
		run(s, size, schedules[(turn + i) % COUNT(schedules)], turn + i);
	}
	clear(s);
}

static void check_grid_of(const struct subject *subject)
{
	static uint64_t turn;
	struct sequence s = { 0 };
	uint32_t size = subject->size;

	for (uint32_t root = 0; root < (oci_is_rooted(subject->collective) ? size : 1); root++) {
		if (!root_counts(root, size))
			continue;
		for (size_t i = 0; i < COUNT(grid_sizes); i++) {
			size_t unit = oci_is_reduction(subject->collective) ?
					      grid_units[i % COUNT(grid_units)] :
					      1;
			size_t bytes = grid_sizes[i] - grid_sizes[i] % unit;

			if (subject->collective == OC_BARRIER)
				bytes = 0;
			if (!size_counts(bytes, size, i))
				continue;
			add_call(&s, subject, root, bytes, unit, (i + root) % 2);
			if (s.check.count == 24)
				flush(&s, size, turn++);
		}
	}
	flush(&s, size, turn++);
}

static void check_grid_in_both_orders(const struct subject *subject)
{
	both_orders(subject, check_grid_of);
}

TEST(coll_every_algorithm_for_2_to_33_ranks)
{
	for (uint32_t size = 2; size <= MOST_RANKS; size++)
		for_each_subject(size, check_grid_in_both_orders);
}

int main(void)
{
	return oct_test_run(NULL, print_totals);
}
