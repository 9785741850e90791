/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A collective that fails on one rank gives the program its buffers back, while the other ranks may
 * not know yet: none of them writes there any more, and none believes what it reads there.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/engine.h"
#include "base/clock.h"
#include "lab/mock/mock.h"
#include "os/os.h"
#include "support/call_bytes.h"
#include "support/fork_team.h"
#include "support/test.h"

#define BYTES ((size_t)200000)

static const struct collective {
	enum oc_collective collective;
	const char *name, *algorithm;
	uint32_t fails; /* of two ranks */
} writing[] = {
	{ OC_GATHER, "gather", "parallel-write", 0 },
	{ OC_GATHER, "gather", "throttled-write", 0 },
	{ OC_SCATTER, "scatter", "sequential-write", 1 },
	{ OC_SCATTER, "scatter", "cooperative", 1 },
	{ OC_BCAST, "bcast", "direct-write", 1 },
	{ OC_BCAST, "bcast", "cooperative", 1 },
	{ OC_ALLGATHER, "allgather", "ring-source-write", 1 },
	{ OC_GATHERV, "gatherv", "throttled-write", 0 },
}, reading[] = {
	{ OC_BCAST, "bcast", "direct-read", 0 },
	{ OC_BCAST, "bcast", "cooperative", 0 },
	{ OC_SCATTER, "scatter", "parallel-read", 0 },
	{ OC_GATHER, "gather", "sequential-read", 1 },
	{ OC_GATHER, "gather", "cooperative", 1 },
	{ OC_ALLGATHER, "allgather", "ring-source-read", 1 },
	{ OC_ALLTOALL, "alltoall", "pairwise", 1 },
	{ OC_ALLREDUCE, "allreduce", "sliced", 1 },
	{ OC_SCATTERV, "scatterv", "throttled-read", 0 },
	{ OC_ALLGATHERV, "allgatherv", "ring-source-read", 1 },
};

/* One rank's part of a call whose root is rank 0. */
struct part {
	struct oc_call call;
	struct oc_block blocks[2];
	uint8_t *send, *recv; /* 2 * BYTES each */
	struct oc_request *request;
};

static void largest(void *context, const void *in, void *inout, size_t count)
{
	const uint8_t *from = in;
	uint8_t *to = inout;

	(void)context;
	for (size_t i = 0; i < count; i++)
		to[i] = to[i] > from[i] ? to[i] : from[i];
}

static void part_start(struct part *part, struct oc_team *team, const struct collective *c)
{
	static const struct oc_op op = { .apply = largest, .bytes = 1, .commutative = 1 };

	*part = (struct part){ .blocks = { { 0, BYTES }, { BYTES, BYTES } },
			       .send = calloc(2, BYTES),
			       .recv = calloc(2, BYTES) };
	part->call = (struct oc_call){ .collective = c->collective,
				       .send = part->send,
				       .recv = part->recv,
				       .bytes = BYTES,
				       .op = c->collective == OC_ALLREDUCE ? &op : NULL,
				       .send_blocks = part->blocks,
				       .recv_blocks = part->blocks };
	assert_int_equal(oc_team_force(team, c->name, c->algorithm), 0);
	assert_int_equal(oc_start(team, &part->call, &part->request), 0);
}

static int part_end(struct part *part)
{
	int result;

	while (!(result = oc_test(part->request)))
		;
	return result;
}

static void part_free(struct part *part)
{
	free(part->send);
	free(part->recv);
}

/* The call fails on one rank, which changes its buffers, before the other one comes. What the other
 * one gets. */
static int other_after(const struct collective *c, struct part part[2])
{
	struct oc_team *teams[2];
	uint32_t fails = c->fails, other = !fails;
	int result;

	oci_mock = (struct oci_mock){ .enabled = true };
	assert_int_equal(oct_local_teams(2, teams), 0);
	part_start(&part[fails], teams[fails], c);
	oc_progress();
	assert_int_equal(oc_peek(part[fails].request), 0);
	oci_team_fail(&teams[fails]->team, -EOWNERDEAD, 7, "as if a third rank had died");
	assert_int_equal(part_end(&part[fails]), -EOWNERDEAD);
	memset(part[fails].send, 0xee, 2 * BYTES);
	memset(part[fails].recv, 0xee, 2 * BYTES);
	part_start(&part[other], teams[other], c);
	result = part_end(&part[other]);
	assert_int_equal(oct_local_end(2, teams), 0);
	oci_mock = (struct oci_mock){ 0 };
	return result;
}

TEST(nobody_writes_to_the_buffers_of_a_failed_call)
{
	for (size_t i = 0; i < sizeof(writing) / sizeof(writing[0]); i++) {
		struct part part[2];
		int result = other_after(&writing[i], part);

		if (result != -EOWNERDEAD || !oct_all(part[writing[i].fails].recv, 0xee, 2 * BYTES))
			fail_msg("%s:%s: result %d, or the buffer has changed", writing[i].name,
				 writing[i].algorithm, result);
		part_free(&part[0]);
		part_free(&part[1]);
	}
}

TEST(what_is_read_of_a_failed_call_is_no_success)
{
	for (size_t i = 0; i < sizeof(reading) / sizeof(reading[0]); i++) {
		struct part part[2];
		int result = other_after(&reading[i], part);

		if (result != -EOWNERDEAD)
			fail_msg("%s:%s: result %d", reading[i].name, reading[i].algorithm, result);
		part_free(&part[0]);
		part_free(&part[1]);
	}
}

/* A list of pieces is read as the buffers are: one that has changed must not be followed. */
TEST(a_list_of_pieces_of_a_failed_call_is_not_followed)
{
	uint8_t *from = calloc(1, BYTES), *to = calloc(1, BYTES);
	struct oc_piece pieces[3] = { { 0, from }, { 90000, from + 90000 }, { BYTES, NULL } };
	struct oc_layout layout = { pieces, 2 };
	struct oc_call call = { .collective = OC_BCAST, .send_layout = &layout, .bytes = BYTES };
	struct oc_request *requests[2];
	struct oc_team *teams[2];
	int result;

	oci_mock = (struct oci_mock){ .enabled = true };
	assert_int_equal(oct_local_teams(2, teams), 0);
	for (unsigned int i = 0; i < 2; i++)
		assert_int_equal(oc_team_force(teams[i], "bcast", "direct-read"), 0);
	assert_int_equal(oc_start(teams[0], &call, &requests[0]), 0);
	oci_team_fail(&teams[0]->team, -EOWNERDEAD, 7, "as if a third rank had died");
	while (!oc_test(requests[0]))
		;
	memset(pieces, 0x7f, sizeof(pieces));
	call = (struct oc_call){ .collective = OC_BCAST, .send = to, .bytes = BYTES };
	assert_int_equal(oc_start(teams[1], &call, &requests[1]), 0);
	while (!(result = oc_test(requests[1])))
		;
	assert_int_equal(result, -EOWNERDEAD);
	assert_int_equal(oct_local_end(2, teams), 0);
	oci_mock = (struct oci_mock){ 0 };
	free(from);
	free(to);
}

/* ---- a copy that is under way ---------------------------------------------------------------- */

/* Rank 2 of three writes to rank 0 when rank 1 fails. */
static struct oc_team *under_way[3];
static bool has_returned;

static void wait_for_the_return(void)
{
	uint64_t end = oci_clock_ns() + 300000000u;

	oci_team_fail(&under_way[1]->team, -ENOMEM, -1, "as if a rank had no memory");
	/* Long enough for the root to notice, if it did not wait for us. */
	while (!__atomic_load_n(&has_returned, __ATOMIC_ACQUIRE) && oci_clock_ns() < end)
		oci_os_yield();
}

static void *writes(void *arg)
{
	struct oc_call call = { .collective = OC_GATHER, .send = arg, .bytes = BYTES };

	oc_collective(under_way[2], &call);
	return NULL;
}

TEST(a_failed_call_waits_for_who_writes)
{
	uint8_t *from = calloc(1, BYTES), *to = calloc(3, BYTES);
	struct oc_call call = { .collective = OC_GATHER, .send = from, .recv = to, .bytes = BYTES };
	pthread_t thread;

	oci_mock = (struct oci_mock){ .enabled = true };
	assert_int_equal(oct_local_teams(3, under_way), 0);
	oci_mock.hook = wait_for_the_return;
	for (unsigned int i = 0; i < 3; i++)
		assert_int_equal(oc_team_force(under_way[i], "gather", "parallel-write"), 0);
	assert_int_equal(pthread_create(&thread, NULL, writes, from), 0);
	assert_int_equal(oc_collective(under_way[0], &call), -ENOMEM);
	memset(to + BYTES, 0xee, 2 * BYTES);
	__atomic_store_n(&has_returned, true, __ATOMIC_RELEASE);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_true(oct_all(to + BYTES, 0xee, 2 * BYTES));
	assert_int_equal(oct_local_end(3, under_way), 0);
	oci_mock = (struct oci_mock){ 0 };
	free(from);
	free(to);
}

/* Rank 2 is killed in the middle of a copy into rank 0, as far as its words tell. */
static int dies_writing(struct oc_team *team, void *arg)
{
	static uint8_t from[BYTES], to[3 * BYTES];
	struct oc_call call = { .collective = OC_GATHER, .send = from, .recv = to, .bytes = BYTES };

	(void)arg;
	if (oc_collective(team, &call))
		return 1;
	if (oc_team_rank(team) == 2) {
		oci_write_begin(&team->team, team->team.next, 0);
		_exit(1);
	}
	return oc_collective(team, &call) == -EOWNERDEAD || oc_team_rank(team) == 1 ? 0 : 2;
}

TEST(a_failed_call_does_not_wait_for_the_dead)
{
	oct_may_leak = true; /* what the tests before have left outstanding, in this process */
	assert_int_equal(oct_fork_team(3, 2, dies_writing, NULL), 0);
}
