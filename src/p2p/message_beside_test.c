/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages while another thread drives progress, as oc_progress() allows: ranks are threads of one
 * process, so ThreadSanitizer sees what one does to another's team. And teams that end: progress
 * must not look at them any more, as AddressSanitizer sees.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/engine.h"
#include "lab/mock/mock.h"
#include "support/call_bytes.h"
#include "support/fork_team.h"
#include "support/test.h"
#include "support/thread_team.h"

#define ROUNDS 3000
#define LARGE 40000
#define MOST 400000

static bool all_over;

static void *drive(void *arg)
{
	while (!__atomic_load_n(&all_over, __ATOMIC_ACQUIRE)) {
		oc_progress();
		sched_yield();
	}
	return arg;
}

/* Not oc_wait(): another thread is to find the end. */
static int await(struct oc_request *request)
{
	int result;

	while (!(result = oc_peek(request)))
		sched_yield();
	return result == 1 ? 0 : result;
}

/* A started receive, which another thread may find complete while blocking calls find that nothing
 * else is under way. All carry their number, so one that is taken twice is seen. */
static int receive_rounds(struct oc_team *team)
{
	static uint8_t large[LARGE];
	int failed = 0;

	for (unsigned int i = 0; i < ROUNDS && !failed; i++) {
		size_t bytes = i % 16 ? 1000 : LARGE;
		struct oc_request *request;
		unsigned int number = 0;

		failed = oc_irecv(team, 0, 0, large, bytes, NULL, &request) ||
			 oc_recv(team, 0, OC_ANY_TAG, &number, sizeof(number), NULL) ||
			 number != i ||
			 oc_recv(team, 0, OC_ANY_TAG, &number, sizeof(number), NULL) ||
			 number != i + 1 || await(request) || !oct_all(large, (uint8_t)i, bytes);
		if (failed)
			fprintf(stderr, "round %u: %u\n", i, number);
		failed |= oc_send(team, 0, 0, &i, sizeof(i));
	}
	return failed;
}

static int send_rounds(struct oc_team *team)
{
	static uint8_t large[LARGE];
	int failed = 0;

	for (unsigned int i = 0; i < ROUNDS && !failed; i++) {
		size_t bytes = i % 16 ? 1000 : LARGE;
		unsigned int next = i + 1, answer = 0;
		struct oc_request *request;

		memset(large, (int)i, bytes);
		failed = oc_isend(team, 1, 0, large, bytes, &request) ||
			 oc_send(team, 1, 1, &i, sizeof(i)) ||
			 oc_send(team, 1, 2, &next, sizeof(next)) ||
			 oc_recv(team, 1, 0, &answer, sizeof(answer), NULL) || answer != i ||
			 await(request);
	}
	return failed;
}

static int all_rounds(struct oc_team *team)
{
	return oc_team_rank(team) ? receive_rounds(team) : send_rounds(team);
}

TEST(progress_of_another_thread_touches_no_team_without_requests)
{
	pthread_t driver;

	assert_int_equal(pthread_create(&driver, NULL, drive, NULL), 0);
	assert_int_equal(oct_thread_team(2, 0, all_rounds), 0);
	__atomic_store_n(&all_over, true, __ATOMIC_RELEASE);
	pthread_join(driver, NULL);
}

TEST(a_team_that_ended_is_not_driven)
{
	struct oc_team *teams[2];
	struct oc_request *request;
	int sent = 7, got = 0, other = 0;

	for (unsigned int i = 0; i < 2; i++)
		assert_int_equal(oct_local_teams(1, &teams[i]), 0);
	/* A blocking call ends the request, so progress does not. */
	assert_int_equal(oc_irecv(teams[0], 0, 0, &got, sizeof(got), NULL, &request), 0);
	assert_int_equal(oc_send(teams[0], 0, 0, &sent, sizeof(sent)), 0);
	assert_int_equal(oc_wait(request), 0);
	assert_int_equal(got, 7);
	assert_int_equal(oc_team_destroy(teams[0]), 0);
	assert_int_equal(oc_irecv(teams[1], 0, 0, &other, sizeof(other), NULL, &request), 0);
	oc_progress();
	assert_int_equal(oc_send(teams[1], 0, 0, &sent, sizeof(sent)), 0);
	assert_int_equal(oc_wait(request), 0);
	assert_int_equal(other, 7);
	assert_int_equal(oc_team_destroy(teams[1]), 0);
}

/* A large message of rank 0 to rank 1, half way. */
struct transfer {
	struct oc_team *teams[2];
	struct oc_request *sent, *received;
	uint8_t from[MOST], to[MOST];
};

static struct transfer *begin_transfer(void)
{
	struct transfer *t = calloc(1, sizeof(*t));

	assert_non_null(t);
	oci_mock = (struct oci_mock){ .enabled = true };
	assert_int_equal(oct_local_teams(2, t->teams), 0);
	assert_int_equal(oc_isend(t->teams[0], 1, 0, t->from, MOST, &t->sent), 0);
	assert_int_equal(oc_irecv(t->teams[1], 0, 0, t->to, MOST, NULL, &t->received), 0);
	oc_progress();
	return t;
}

static void end_transfer(struct transfer *t)
{
	assert_int_equal(oct_local_end(2, t->teams), 0);
	oci_mock = (struct oci_mock){ 0 };
	free(t);
}

static int wait_by_tests(struct oc_request *request)
{
	int result;

	while (!(result = oc_test(request)))
		;
	return result;
}

/* The sender helps to copy a large message. It must not write to a buffer that the receiver's error
 * has given back. */
TEST(nobody_writes_to_the_receive_of_a_failed_team)
{
	struct transfer *t = begin_transfer();

	assert_int_equal(oc_peek(t->received), 0);
	oci_team_fail(&t->teams[1]->team, -EPROTO, -1, "as if another rank had called differently");
	assert_int_equal(wait_by_tests(t->received), -EPROTO);
	memset(t->to, 0xee, MOST);
	/* The sender learns of it when it looks, some milliseconds later. */
	assert_int_equal(wait_by_tests(t->sent), -EPROTO);
	assert_true(oct_all(t->to, 0xee, MOST));
	end_transfer(t);
}

/* A sender whose call has failed may change its buffer, while the receiver still copies. */
TEST(a_receive_from_a_failed_team_is_no_success)
{
	struct transfer *t = begin_transfer();

	oci_team_fail(&t->teams[0]->team, -EPROTO, -1, "as if another rank had called differently");
	assert_int_equal(wait_by_tests(t->sent), -EPROTO);
	memset(t->from, 0xee, MOST);
	assert_int_equal(wait_by_tests(t->received), -EPROTO);
	end_transfer(t);
}
