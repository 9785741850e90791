/* SPDX-License-Identifier: BSD-3-Clause */
/* How a rank of an oversubscribed team waits: who asks it for other things is not held up. */
#include "base/clock.h"
#include "os/os.h"
#include "support/test.h"
#include "team/team.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* As the first sleep, of each rank, and the growth of the later ones in wait.c. */
enum { FIRST_US = 50, LAST_US = 1000, GROWTH = 16, LONG_US = 500 };
/* Likewise of a rank that may be asked at any moment. */
enum { NEEDED_US = 200, NEEDED_QUIET_NS = 25000000 };
/* Turns of a team of more ranks than CPUs before the first sleep. */
enum { YIELDS = 64 };
/* Of a look that does something; for so long behind a sleep or another thread none counts. */
enum { WORK_NS = 10000, COLD_NS = 40000 };
/* Long behind that, and long before a rank that others ask may sleep. */
enum { SOON_NS = 1000000, TRIES = 9 };

static uint64_t flag;
static uint32_t sleepers, looks, looks_that_work;
static int may_ask;
static bool loses_its_cpu; /* in the first of these, for a while */
static long preemptions;   /* when it last lost its CPU */
static uint64_t asked_ns;

static void lose_the_cpu(void)
{
	long before = oci_os_preemptions();

	while ((preemptions = oci_os_preemptions()) == before)
		oci_os_yield();
}

/* Idle ones make no system call, which some machines take 1 us for: as long as an answer takes. */
static int look(void)
{
	uint64_t begin = oci_clock_ns();

	looks++;
	if (looks_that_work) {
		looks_that_work--;
		if (loses_its_cpu)
			lose_the_cpu();
		loses_its_cpu = false;
		while (oci_clock_ns() - begin < WORK_NS)
			;
		asked_ns = oci_clock_ns();
	}
	return may_ask;
}

static struct oci_team team = { .oversubscribed = true, .size = 2 };

static void turn(struct oci_wait *wait)
{
	const struct oci_awaited awaited = { .word = &flag, .waiters = &sleepers, .target = 1 };

	oci_wait_turn(&team, wait, &awaited);
}

static void begin(int needed, uint32_t work)
{
	struct oci_wait wait = { 0 };

	oci_progress_hook = look;
	may_ask = needed;
	looks_that_work = work;
	/* What the hook said last, in a test before this one, is still in use in a first turn. */
	for (looks = 0; !looks;)
		turn(&wait);
}

static const uint32_t *woken;
static unsigned int wakes;

void __wrap_oci_os_futex_wake(uint32_t *word, int count);
void __wrap_oci_os_futex_wake(uint32_t *word, int count)
{
	(void)count;
	woken = word;
	wakes++;
}

enum { KEPT_US = 10000 };
static uint32_t kept_us; /* so long who gets the CPU by a yield keeps it */
static bool nobody_else; /* gets it */
static unsigned int yields;

void __real_oci_os_yield(void);
void __wrap_oci_os_yield(void);
void __wrap_oci_os_yield(void)
{
	yields++;
	if (kept_us)
		oci_os_sleep_us(kept_us);
	else if (!nobody_else)
		__real_oci_os_yield();
}

TEST(who_sleeps_is_woken_and_nobody_else_is_called)
{
	struct oci_team alone = { .size = 2 };
	uint64_t raised = 0;
	uint32_t asleep = 0;

	wakes = 0;
	oci_team_raise(&team, &raised, &asleep, 1);
	assert_int_equal(wakes, 0);
	asleep = 1;
	oci_team_raise(&team, &raised, &asleep, 2);
	assert_int_equal(wakes, 1);
	assert_true((const uint8_t *)woken >= (const uint8_t *)&raised &&
		    (const uint8_t *)woken < (const uint8_t *)(&raised + 1));
	/* With a CPU for each nobody sleeps. */
	oci_team_raise(&alone, &raised, &asleep, 3);
	assert_int_equal(wakes, 1);
	assert_int_equal(raised, 3);
}

/* The k-th sleep begins when the ones before it are over: it is no longer than the first one and a
 * part of what they have taken, which is less than the time that the wait has lasted. */
TEST(a_sleep_is_no_longer_than_a_part_of_the_wait)
{
	struct oci_wait wait = { 0 };
	uint64_t start;

	begin(0, 0);
	start = oci_clock_ns();
	while (wait.sleep_us < LONG_US) {
		turn(&wait);
		if (wait.sleep_us)
			assert_true(wait.sleep_us <=
				    FIRST_US * team.size +
					    (oci_clock_ns() - start) / 1000 / GROWTH);
	}
	assert_int_equal(sleepers, 0);
}

TEST(ranks_that_sleep_wake_together_as_often_however_many_they_are)
{
	static const uint32_t sizes[] = { 3, 8, 20, 33 };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct oci_wait wait = { 0 };

		team.size = sizes[i];
		begin(0, 0);
		while (!wait.sleep_us)
			turn(&wait);
		assert_in_range(wait.sleep_us, sizes[i] < 20 ? FIRST_US * sizes[i] : LAST_US,
				LAST_US);
	}
	team.size = 2;
}

TEST(a_rank_that_was_asked_stays_awake)
{
	struct oci_wait wait = { 0 };

	/* Else it sleeps for a while behind a yield to somebody who keeps the CPU. */
	nobody_else = true;
	for (yields = 0; !yields;)
		turn(&(struct oci_wait){ 0 });
	begin(0, 1);
	while (!wait.sleep_us) {
		turn(&wait);
		/* Eight times the shortest sleep and the slack of its end. */
		if (oci_clock_ns() - asked_ns < 1200000)
			assert_int_equal(wait.sleep_us, 0);
	}
	nobody_else = false;
}

TEST(a_rank_that_may_be_asked_at_any_moment_looks_in_each_turn_and_stays_awake_while_others_ask)
{
	struct oci_wait wait = { 0 };

	/* Three, behind one that may be taken for one in which another thread had the CPU, as it
	 * may have had before, and those that do not count then; again where one has it now. */
	do {
		preemptions = oci_os_preemptions();
		begin(1, 2 + COLD_NS / WORK_NS + 4);
		while (looks_that_work)
			turn(&wait);
	} while (oci_os_preemptions() != preemptions);
	looks = 0;
	for (uint32_t i = 1; !wait.sleep_us; i++) {
		turn(&wait);
		assert_int_equal(looks, i);
		if (oci_clock_ns() - asked_ns < NEEDED_QUIET_NS)
			assert_int_equal(wait.sleep_us, 0);
	}
	assert_in_range(wait.sleep_us, NEEDED_US, NEEDED_US + NEEDED_US / GROWTH);
	begin(0, 0);
}

TEST(a_rank_whose_hook_gives_up_the_cpu_itself_never_sleeps)
{
	struct oci_wait wait = { 0 };
	uint64_t start;

	/* From the look on that says so. */
	begin(0, 0);
	while (wait.polls < YIELDS)
		turn(&wait);
	wait.sleep_us = 0;
	may_ask = 2;
	start = oci_clock_ns();
	looks = 0;
	for (uint32_t i = 1; oci_clock_ns() - start < 2 * NEEDED_QUIET_NS; i++) {
		turn(&wait);
		assert_int_equal(looks, i);
		assert_int_equal(wait.sleep_us, 0);
	}
	begin(0, 0);
}

/* A process that takes its CPU from the caller's thread. */
static pid_t compete(void)
{
	pid_t other = fork();

	if (!other) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			;
	}
	if (other < 0) {
		perror("fork"); /* as a pid it would mean all processes */
		abort();
	}
	return other;
}

/*
 * Does it soon sleep again after three long looks behind a sleep, or behind one in which another
 * one had its CPU? -1: it lost its CPU meanwhile, as it may on a busy machine.
 */
static int sleeps_soon(bool loses)
{
	struct oci_wait wait = { 0 };
	pid_t other = loses ? compete() : 0;
	bool lost;

	begin(1, 0);
	while (!wait.sleep_us) /* nobody has asked for long */
		turn(&wait);
	wait.sleep_us = 0;
	loses_its_cpu = loses;
	preemptions = oci_os_preemptions();
	for (looks_that_work = loses ? 4 : 3; looks_that_work;)
		turn(&wait);
	while (!wait.sleep_us && oci_clock_ns() - asked_ns < SOON_NS)
		turn(&wait);
	lost = oci_os_preemptions() != preemptions;
	if (other) {
		kill(other, SIGKILL);
		waitpid(other, NULL, 0);
	}
	begin(0, 0);
	return lost ? -1 : wait.sleep_us > 0;
}

/* Mostly, as an interrupt may be in the way, too. */
static bool sleeps_again(bool loses)
{
	int known = 0, slept = 0;

	while (known < TRIES) {
		int soon = sleeps_soon(loses);

		known += soon >= 0;
		slept += soon > 0;
	}
	return slept > TRIES / 2;
}

TEST(looks_with_cold_caches_behind_a_sleep_are_no_answers)
{
	assert_true(sleeps_again(false));
}

TEST(a_look_in_which_it_lost_its_cpu_is_no_answer)
{
	cpu_set_t before, one;
	bool sleeps;

	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	sleeps = sleeps_again(true);
	assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
	assert_true(sleeps);
}

/* As interrupts make them. */
TEST(single_long_looks_do_not_keep_it_awake)
{
	struct oci_wait wait = { 0 };
	uint64_t last = 0;

	begin(1, 0);
	while (!wait.sleep_us) {
		if (oci_clock_ns() - last > 1000000) {
			looks_that_work = 1;
			last = oci_clock_ns();
		}
		turn(&wait);
	}
	begin(0, 0);
}

/* In the first turn of a wait. True: without a yield. */
static bool sleeps_at_once(bool is_woken)
{
	const struct oci_awaited awaited = { .word = &flag,
					     .waiters = is_woken ? &sleepers : NULL,
					     .target = 1 };
	uint64_t start = oci_clock_ns();
	unsigned int before = yields;

	oci_wait_turn(&team, &(struct oci_wait){ 0 }, &awaited);
	return yields == before && oci_clock_ns() - start >= FIRST_US * 1000ull;
}

/* For a while: then it yields again. A machine that is busy may keep us from it in some tries. */
TEST(who_has_yielded_twice_to_somebody_who_keeps_the_cpu_sleeps_at_once)
{
	bool sleeps[2] = { false, false };

	for (int i = 0; i < TRIES && !(sleeps[0] && sleeps[1]); i++) {
		begin(0, 0);
		kept_us = KEPT_US;
		for (yields = 0; yields < 2;)
			turn(&(struct oci_wait){ 0 });
		kept_us = 0;
		for (int is_woken = 0; is_woken < 2; is_woken++)
			sleeps[is_woken] |= sleeps_at_once(is_woken);
	}
	assert_true(sleeps[0] && sleeps[1]);
	for (yields = 0; !yields;)
		turn(&(struct oci_wait){ 0 });
}
