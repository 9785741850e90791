/* SPDX-License-Identifier: BSD-3-Clause */
#include "lab/tune/steady.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define COUNT 1000

/* `near` looks in a thousand of 92 ns, the others of 190, 8 % up and down. */
static void two_states(double *look, size_t near)
{
	for (size_t i = 0; i < COUNT; i++) {
		double jitter = 0.92 + 0.16 * (double)(i * 7919 % COUNT) / COUNT;

		look[i] = (i * 389 % COUNT < near ? 92e-9 : 190e-9) * jitter;
	}
}

static void the_nearer_state_is_taken_when_it_is_not_rare(void **state)
{
	struct oci_steady found;
	double look[COUNT];

	(void)state;
	for (size_t near = 300; near < COUNT; near += 100) {
		two_states(look, near);
		oci_steady_choose(look, COUNT, &found);
		assert_true(found.flag_s > 85e-9 && found.flag_s < 99e-9);
		assert_true(fabs(found.share - (double)near / COUNT) < 0.01);
		assert_true(oci_steady_holds(&found, 92e-9) && !oci_steady_holds(&found, 190e-9));
		assert_true(found.other_s > 175e-9 && found.other_s < 205e-9);
		assert_string_equal(oci_steady_name(&found), "near");
	}
}

static void a_rare_near_state_is_left_for_the_frequent_one(void **state)
{
	struct oci_steady found;
	double look[COUNT];

	(void)state;
	two_states(look, 100);
	oci_steady_choose(look, COUNT, &found);
	assert_true(found.flag_s > 175e-9 && found.flag_s < 205e-9);
	assert_true(oci_steady_holds(&found, 190e-9) && !oci_steady_holds(&found, 92e-9));
	assert_string_equal(oci_steady_name(&found), "far");
}

static void a_machine_that_does_not_change_has_one_state(void **state)
{
	struct oci_steady found;
	double look[COUNT];

	(void)state;
	two_states(look, COUNT);
	look[17] = 5e-6; /* an interrupt */
	oci_steady_choose(look, COUNT, &found);
	assert_string_equal(oci_steady_name(&found), "only");
	assert_true(found.share > 0.99);
	oci_steady_choose(look, 1, &found);
	assert_string_equal(oci_steady_name(&found), "only");
}

static void without_looks_every_batch_counts(void **state)
{
	struct oci_steady found;

	(void)state;
	oci_steady_choose(NULL, 0, &found);
	assert_true(oci_steady_holds(&found, 1e-9) && oci_steady_holds(&found, 1));
	assert_string_equal(oci_steady_name(&found), "only");
}

static void batches_of_another_state_and_with_a_change_inside_are_dropped(void **state)
{
	struct oci_steady_batches b;
	struct oci_steady near;

	(void)state;
	oci_steady_at(92e-9, &near);
	oci_steady_begin(&b, &near, 92e-9, 0, 1);
	assert_false(oci_steady_is_over(&b, 0.001));
	assert_true(oci_steady_is_over(&b, 0.005));
	assert_int_equal(oci_steady_end(&b, 95e-9, 0.005, 10), 10);  /* near all the time */
	assert_int_equal(oci_steady_end(&b, 190e-9, 0.010, 25), 10); /* changed in the middle */
	assert_int_equal(oci_steady_end(&b, 190e-9, 0.015, 20), 10); /* far */
	assert_int_equal(oci_steady_end(&b, 92e-9, 0.020, 20), 10);  /* changed back */
	assert_int_equal(oci_steady_end(&b, 92e-9, 0.025, 18), 18);
	assert_true(fabs(b.lost_s - 0.015) < 1e-12 && !b.mixed);
}

static void who_waits_too_long_for_its_state_takes_what_there_is(void **state)
{
	struct oci_steady_batches b;
	struct oci_steady near;
	uint32_t samples = 0;
	double now = 0;

	(void)state;
	oci_steady_at(92e-9, &near);
	oci_steady_begin(&b, &near, 190e-9, now, 0.1);
	while (!b.mixed && now < 1)
		samples = oci_steady_end(&b, 190e-9, now += 0.01, samples + 5);
	assert_true(now > 0.2 && now < 0.22);
	assert_int_equal(samples, 0);
	assert_int_equal(oci_steady_end(&b, 190e-9, now + 0.01, 5), 5);
}

static void two_processes_look_at_each_other(void **state)
{
	struct oci_steady_lines *lines = mmap(NULL, sizeof(*lines), PROT_READ | PROT_WRITE,
					      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint64_t turn = 0;
	int status;
	pid_t pid;

	(void)state;
	assert_ptr_not_equal(lines, MAP_FAILED);
	pid = fork();
	assert_true(pid >= 0);
	for (int i = 0; i < 3; i++) {
		double look = oci_steady_look(lines, pid, &turn);

		/* A nanosecond is less than light needs; a second is a hang. */
		if (pid && (look < 1e-9 || look > 1))
			fail_msg("a flag takes %g s", look);
	}
	if (!pid)
		_exit(0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(turn, lines->back);
	munmap(lines, sizeof(*lines));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_nearer_state_is_taken_when_it_is_not_rare),
		cmocka_unit_test(a_rare_near_state_is_left_for_the_frequent_one),
		cmocka_unit_test(a_machine_that_does_not_change_has_one_state),
		cmocka_unit_test(without_looks_every_batch_counts),
		cmocka_unit_test(batches_of_another_state_and_with_a_change_inside_are_dropped),
		cmocka_unit_test(who_waits_too_long_for_its_state_takes_what_there_is),
		cmocka_unit_test(two_processes_look_at_each_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
