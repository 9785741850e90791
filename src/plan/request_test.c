/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The user executor, polled: all ranks of a team in one process, many operations outstanding,
 * stepped in random order; copies by the mock mechanism, with and without dictated failures.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "api/engine.h"
#include "coll/coll.h"
#include "lab/mock/mock.h"
#include "support/call.h"
#include "support/fork_team.h"
#include "support/test.h"

#define RANKS 4
#define CALLS (3 * OCI_LANES) /* more than lanes at once */

static unsigned int seed = 12345;

static unsigned int draw(unsigned int below)
{
	seed = seed * 1103515245u + 12345u;
	return (seed >> 8) % below;
}

struct planned {
	struct oct_call of[RANKS];
	struct oct_memory memory[RANKS];
	struct oc_request *request[RANKS];
	int result[RANKS];
};

/* The same random call for all ranks. */
static void plan_call(struct planned *p, unsigned int n)
{
	static const size_t sizes[] = { 0, 3, 100, 1000, 20000, 70000, 150001 };
	struct oct_spec spec = { .n = n + draw(1000000), .bytes = sizes[draw(7)], .op = &oct_sum };

	do
		spec.collective = draw(OC_COLLECTIVES);
	while (!oci_algorithm(spec.collective, 0));
	spec.root = oci_is_rooted(spec.collective) ? draw(RANKS) : 0;
	spec.in_place = spec.bytes & 1;
	*p = (struct planned){ .result = { 0 } };
	for (uint32_t r = 0; r < RANKS; r++)
		oct_call_make(&p->of[r], &p->memory[r], &spec, r, RANKS);
}

static void check_call(struct planned *p, unsigned int n)
{
	for (unsigned int r = 0; r < RANKS; r++) {
		const struct oct_spec *spec = &p->of[r].spec;

		assert_int_equal(p->result[r], 1);
		if (!oct_call_right(&p->of[r]))
			fail_msg("call %u (%s%s, %zu bytes, root %u): rank %u has wrong bytes", n,
				 oci_collective_name(spec->collective),
				 spec->in_place ? " in place" : "", spec->bytes, spec->root, r);
		oct_call_free(&p->of[r]);
		oct_memory_free(&p->memory[r]);
	}
}

/* Ranks start their calls in order, each at its own pace, and are looked at in random order. */
static void run_calls(struct oc_team **teams, struct planned *planned)
{
	unsigned int started[RANKS] = { 0 }, left = RANKS * CALLS;

	for (unsigned int n = 0; n < CALLS; n++)
		plan_call(&planned[n], n);
	while (left) {
		unsigned int r = draw(RANKS), n = draw(CALLS);

		if (started[r] < CALLS && draw(3) == 0) {
			struct planned *p = &planned[started[r]++];

			assert_int_equal(oc_start(teams[r], &p->of[r].call, &p->request[r]), 0);
		}
		if (n < started[r] && !planned[n].result[r]) {
			planned[n].result[r] = oc_test(planned[n].request[r]);
			left -= planned[n].result[r] != 0;
		}
	}
	for (unsigned int n = 0; n < CALLS; n++)
		check_call(&planned[n], n);
}

static uint64_t recovered(struct oc_team **teams)
{
	uint64_t count = 0;

	for (unsigned int r = 0; r < RANKS; r++) {
		for (unsigned int i = 0; i < teams[r]->counts.used; i++)
			count += teams[r]->counts.count[i].recovered;
	}
	return count;
}

static void with_mock(unsigned int fail_every, size_t short_bytes, unsigned int rounds)
{
	static struct planned planned[CALLS];
	struct oc_team *teams[RANKS];
	size_t before = oci_segment_live_bytes() - oci_slots_bytes();

	oci_mock = (struct oci_mock){ .enabled = true };
	assert_int_equal(oct_local_teams(RANKS, teams), 0);
	oci_mock.fail_every = fail_every;
	oci_mock.fail_with = EFAULT;
	oci_mock.short_bytes = short_bytes;
	oci_mock.calls = 0;
	for (unsigned int i = 0; i < rounds; i++)
		run_calls(teams, planned);
	assert_true(oci_mock.calls > 0);
	if (fail_every)
		assert_true(recovered(teams) > 0);
	else
		assert_int_equal(recovered(teams), 0);
	assert_int_equal(oct_local_end(RANKS, teams), 0);
	/* What the teams had is given back; slots stay in the pool. */
	assert_int_equal(oci_segment_live_bytes() - oci_slots_bytes(), before);
	oci_mock = (struct oci_mock){ 0 };
}

TEST(outstanding_operations_in_random_order)
{
	with_mock(0, 0, 8);
}

TEST(every_third_copy_fails_and_is_recovered)
{
	with_mock(3, 0, 6);
}

TEST(every_copy_fails_and_is_recovered)
{
	with_mock(1, 0, 3);
}

TEST(short_copies_are_continued)
{
	with_mock(0, 777, 3);
}

TEST(a_team_with_outstanding_operations_is_not_destroyed)
{
	struct oc_team *teams[2];
	struct oc_request *request[2];
	struct oc_call barrier = { .collective = OC_BARRIER };

	assert_int_equal(oct_local_teams(2, teams), 0);
	assert_int_equal(oc_start(teams[0], &barrier, &request[0]), 0);
	assert_int_equal(oc_test(request[0]), 0);
	assert_int_equal(oc_team_destroy(teams[0]), -EBUSY);
	assert_int_equal(oc_start(teams[1], &barrier, &request[1]), 0);
	assert_int_equal(oc_wait(request[0]), 0);
	assert_int_equal(oc_wait(request[1]), 0);
	assert_int_equal(oc_team_destroy(teams[0]), 0);
	assert_int_equal(oc_team_destroy(teams[1]), 0);
}

static void *start_and_wait(void *argument)
{
	struct oc_call barrier = { .collective = OC_BARRIER };
	struct oc_request *request[4];

	for (int n = 0; n < 1000; n++) {
		for (int i = 0; i < 4; i++)
			if (oc_start(argument, &barrier, &request[i]))
				abort();
		for (int i = 3; i >= 0; i--)
			if (oc_wait(request[i]))
				abort();
	}
	return NULL;
}

TEST(requests_of_several_threads)
{
	struct oc_team *teams[2];
	pthread_t threads[2];

	assert_int_equal(oct_local_teams(2, teams), 0);
	for (int r = 0; r < 2; r++)
		assert_int_equal(pthread_create(&threads[r], NULL, start_and_wait, teams[r]), 0);
	for (int r = 0; r < 2; r++)
		pthread_join(threads[r], NULL);
	assert_int_equal(oct_local_end(2, teams), 0);
}

/* A nonblocking call that is the first use of a team waits for it, here for another thread. */
static void *first_calls(void *arg)
{
	struct oc_team *team = arg;
	struct oc_request *request[CALLS];
	int32_t value[CALLS];

	for (int n = 0; n < CALLS; n++) {
		struct oc_call bcast = { .collective = OC_BCAST, .send = &value[n], .bytes = 4 };

		value[n] = oc_team_rank(team) ? 0 : 100 + n;
		if (oc_start(team, &bcast, &request[n]))
			abort();
	}
	for (int n = CALLS - 1; n >= 0; n--)
		if (oc_wait(request[n]) || value[n] != 100 + n)
			abort();
	return NULL;
}

TEST(a_first_nonblocking_call_brings_the_team_up)
{
	struct oc_team *teams[2];
	pthread_t threads[2];

	assert_int_equal(oct_local_begin(2, teams), 0);
	for (int r = 0; r < 2; r++)
		assert_int_equal(pthread_create(&threads[r], NULL, first_calls, teams[r]), 0);
	for (int r = 0; r < 2; r++)
		pthread_join(threads[r], NULL);
	assert_int_equal(oct_local_end(2, teams), 0);
}

static int fails(void *context)
{
	(void)context;
	return -EIO;
}

TEST(a_call_on_a_team_that_is_refused_is_handed_back)
{
	struct oct_board *board = oct_board_create(2);
	struct oc_bootstrap bootstrap = oct_bootstrap(board, 0);
	struct oc_call barrier = { .collective = OC_BARRIER };
	struct oc_request *request;
	struct oc_team *team;

	bootstrap.allgather_test = fails;
	assert_int_equal(oc_team_create(&team, &bootstrap), 0);
	assert_int_equal(oc_team_progress(team), 0);
	assert_int_equal(oc_team_destroy(team), -EBUSY);
	assert_int_equal(oc_start(team, &barrier, &request), OC_HAND_BACK);
	assert_int_equal(oct_barrier(team), OC_HAND_BACK);
	assert_int_equal(oc_team_progress(team), -EIO);
	assert_int_equal(oc_team_destroy(team), 0);
	assert_int_equal(oci_engine.pending, 0);
	oct_board_destroy(board);
}
