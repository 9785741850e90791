/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages one by one: what is promised of them in onecopy.h, and what goes wrong with them. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "api/engine.h"
#include "lab/harness/clock.h"
#include "support/fork_team.h"
#include "support/process.h"
#include "support/test.h"

#define CHECK(condition)                                                                       \
	do {                                                                                   \
		if (!(condition)) {                                                            \
			fprintf(stderr, "rank %u, line %d: not %s (%s)\n", oc_team_rank(team), \
				__LINE__, #condition, oc_team_error(team));                    \
			return 1;                                                              \
		}                                                                              \
	} while (0)

#define BIG ((size_t)1 << 20)

/* Both fill the channel between them, several times over, before either receives. */
static int fill_both_ways(struct oc_team *team, void *arg)
{
	enum { MESSAGES = 3000 };
	static struct oc_request *requests[MESSAGES];
	static uint8_t out[MESSAGES], in[700];
	uint32_t peer = !oc_team_rank(team);
	size_t bytes = *(const size_t *)arg;

	for (unsigned int i = 0; i < MESSAGES; i++) {
		out[i] = (uint8_t)i;
		if (bytes == 1)
			CHECK(oc_isend(team, peer, (int32_t)i, &out[i], 1, &requests[i]) == 0);
		else
			CHECK(oc_isend(team, peer, (int32_t)i, out, bytes, &requests[i]) == 0);
	}
	/* In another order than they were sent. */
	for (unsigned int i = MESSAGES; i-- > 0;) {
		struct oc_status status;

		CHECK(oc_recv(team, peer, (int32_t)i, in, sizeof(in), &status) == 0);
		CHECK(status.bytes == bytes && in[0] == (bytes == 1 ? (uint8_t)i : 0));
	}
	for (unsigned int i = 0; i < MESSAGES; i++)
		CHECK(oc_wait(requests[i]) == 0);
	return 0;
}

TEST(full_channels_in_both_directions_block_nobody)
{
	size_t bytes[] = { 1, 700 };

	assert_int_equal(oct_fork_team(2, -1, fill_both_ways, &bytes[0]), 0);
	assert_int_equal(oct_fork_team(2, -1, fill_both_ways, &bytes[1]), 0);
}

/* What is kept for a rank that does not receive is bounded: the sender waits at last. */
TEST_ON_RANKS(a_flood_of_small_messages_is_held_back, 2)
{
	enum { MESSAGES = 20000 };
	static struct oc_request *requests[MESSAGES];
	unsigned int over = 0;
	uint64_t value = 0;

	CHECK(oct_barrier(team) == 0);
	for (uint64_t i = 0; oc_team_rank(team) == 0 && i < MESSAGES; i++) {
		CHECK(oc_isend(team, 1, 0, &value, sizeof(value), &requests[i]) == 0);
		over += oc_peek(requests[i]) == 1 ? (requests[i] = NULL, 1) : 0;
	}
	/* The other looks for this one first, and so at all before it. */
	if (oc_team_rank(team) == 0) {
		CHECK(over < MESSAGES / 2);
		CHECK(oc_send(team, 1, 1, &value, sizeof(value)) == 0);
	} else {
		CHECK(oc_recv(team, 0, 1, &value, sizeof(value), NULL) == 0);
	}
	for (unsigned int i = 0; oc_team_rank(team) == 1 && i < MESSAGES; i++)
		CHECK(oc_recv(team, 0, 0, &value, sizeof(value), NULL) == 0);
	for (unsigned int i = 0; oc_team_rank(team) == 0 && i < MESSAGES; i++)
		CHECK(!requests[i] || oc_wait(requests[i]) == 0);
	return oct_barrier(team);
}

/* A small message overtakes a large one that nobody has asked for, or that is on its way. */
TEST_ON_RANKS(a_large_message_does_not_hold_up_a_small_one, 2)
{
	static uint8_t large[8 * BIG];
	struct oc_request *request;
	uint32_t value = 7;

	if (oc_team_rank(team) == 0) {
		CHECK(oc_isend(team, 1, 1, large, sizeof(large), &request) == 0);
		CHECK(oc_send(team, 1, 2, &value, sizeof(value)) == 0);
		CHECK(oc_recv(team, 1, 3, &value, sizeof(value), NULL) == 0);
		CHECK(value == 8);
		CHECK(oc_wait(request) == 0);
		return 0;
	}
	CHECK(oc_recv(team, 0, 2, &value, sizeof(value), NULL) == 0 && value == 7);
	CHECK(oc_irecv(team, 0, 1, large, sizeof(large), NULL, &request) == 0);
	value = 8;
	CHECK(oc_send(team, 0, 3, &value, sizeof(value)) == 0);
	CHECK(oc_wait(request) == 0);
	return 0;
}

TEST_ON_RANKS(a_rank_by_itself_gets_messages_or_an_error_but_never_waits, 1, 2)
{
	uint32_t me = oc_team_rank(team);
	struct oc_request *request = NULL, *other = NULL;
	static uint8_t large[BIG];
	struct oc_status status;
	int value = 3, got = 0;

	CHECK(oc_send(team, 9, 0, &value, 4) == -EINVAL && strstr(oc_team_error(team), "rank 9"));
	CHECK(oc_isend(team, me, 0, NULL, 4, &request) == -EINVAL && !request);
	CHECK(oc_send(team, me, 0, large, sizeof(large)) == -EDEADLK);
	/* A small one is kept. */
	CHECK(oc_send(team, me, 4, &value, 4) == 0);
	CHECK(oc_iprobe(team, OC_ANY_SOURCE, OC_ANY_TAG, &status) == 1 && status.tag == 4);
	CHECK(oc_recv(team, OC_ANY_SOURCE, 4, &got, 4, NULL) == 0 && got == 3);
	CHECK(oc_irecv(team, me, 0, large, sizeof(large), &status, &request) == 0);
	CHECK(oc_team_destroy(team) == -EBUSY);
	CHECK(oc_isend(team, me, 0, large, sizeof(large), &other) == 0);
	CHECK(oc_wait(request) == 0 && oc_wait(other) == 0 && status.bytes == sizeof(large));
	CHECK(oc_send(team, me, 0, NULL, 0) == 0 && oc_recv(team, me, 0, NULL, 0, &status) == 0);
	return 0;
}

/* mode 0: receives from the dead; 1: from any; 2: sends to it; 3: polls a request. */
static int lose_a_rank(struct oc_team *team, void *arg)
{
	static uint8_t large[BIG];
	struct oc_request *request;
	double start, waited;
	int result, value;

	CHECK(oct_barrier(team) == 0);
	if (oc_team_rank(team) == 1) {
		usleep(20000);
		raise(SIGKILL);
	}
	start = now_s();
	waited = oct_waited_s();
	if (*(const int *)arg == 0)
		result = oc_recv(team, 1, 0, &value, sizeof(value), NULL);
	else if (*(const int *)arg == 1)
		result = oc_recv(team, OC_ANY_SOURCE, 0, &value, sizeof(value), NULL);
	else if (*(const int *)arg == 2)
		result = oc_send(team, 1, 0, large, sizeof(large));
	else
		result = oc_irecv(team, 1, 0, large, 4, NULL, &request) ?: oc_wait(request);
	CHECK(result == -EOWNERDEAD && oc_team_dead_rank(team) == 1);
	/* 100 ms are promised from when it dies, which takes it a CPU. */
	CHECK(now_s() - start - (oct_waited_s() - waited) < 5);
	CHECK(oc_send(team, 0, 0, &value, 4) == -EOWNERDEAD);
	return 0;
}

TEST(a_rank_that_dies_ends_the_messages_to_and_from_it)
{
	for (int mode = 0; mode < 4; mode++)
		assert_int_equal(oct_fork_team(3, 1, lose_a_rank, &mode), 0);
}

/* Calls that come before the team is there are queued, in order. */
static int before_the_team_is_ready(struct oc_team *team, void *arg)
{
	enum { MESSAGES = 20 };
	struct oc_request *sends[MESSAGES], *receives[MESSAGES];
	uint32_t out[MESSAGES], in[MESSAGES], size = oc_team_size(team);
	uint32_t to = (oc_team_rank(team) + 1) % size,
		 from = (oc_team_rank(team) + size - 1) % size;

	(void)arg;
	for (uint32_t i = 0; i < MESSAGES; i++) {
		out[i] = i;
		CHECK(oc_isend(team, to, 0, &out[i], 4, &sends[i]) == 0);
		CHECK(oc_irecv(team, from, 0, &in[i], 4, NULL, &receives[i]) == 0);
	}
	for (uint32_t i = 0; i < MESSAGES; i++)
		CHECK(oc_wait(sends[i]) == 0 && oc_wait(receives[i]) == 0 && in[i] == i);
	return 0;
}

TEST(messages_may_be_the_first_use_of_a_team)
{
	static const uint32_t sizes[] = { 1, 2, 5, 33 };

	for (unsigned int i = 0; i < 4; i++)
		assert_int_equal(oct_fork_team(sizes[i], -1, before_the_team_is_ready, NULL), 0);
}

/* 4 GiB and a little, out of and into the same 8 MiB again and again. */
TEST_ON_RANKS(a_message_may_be_longer_than_4_gib, 2)
{
	enum { TIMES = 520 };
	static struct oc_piece pieces[TIMES + 1];
	struct oc_layout layout = { pieces, TIMES };
	size_t piece = 8 * BIG;
	uint8_t *memory = malloc(piece);
	struct oc_status status;

	CHECK(memory);
	memset(memory, oc_team_rank(team) ? 0 : 0x5a, piece);
	for (size_t i = 0; i <= TIMES; i++)
		pieces[i] = (struct oc_piece){ i * piece, memory };
	if (oc_team_rank(team) == 0) {
		CHECK(oc_sendv(team, 1, 0, &layout) == 0);
	} else {
		CHECK(oc_recvv(team, 0, 0, &layout, &status) == 0);
		CHECK(status.bytes == TIMES * piece && status.bytes > UINT32_MAX);
		CHECK(memory[0] == 0x5a && !memcmp(memory, memory + 1, piece - 1));
	}
	free(memory);
	return 0;
}

/* Memory of channels and lines comes back when all have left. */
TEST_ON_RANKS(memory_of_messages_comes_back_with_their_team, 2)
{
	size_t before = 0;

	for (unsigned int round = 0; round < 20; round++) {
		struct oc_bootstrap bootstrap = oct_again(team);
		static uint8_t large[BIG];
		struct oc_request *request;
		struct oc_team *next;
		uint32_t peer = !oc_team_rank(team);

		CHECK(oc_team_create(&next, &bootstrap) == 0);
		CHECK(oc_isend(next, peer, 0, large, sizeof(large), &request) == 0);
		CHECK(oc_recv(next, peer, 0, large, sizeof(large), NULL) == 0);
		CHECK(oc_wait(request) == 0);
		CHECK(oc_team_destroy(next) == 0);
		/* Both have left. */
		CHECK(oct_barrier(team) == 0);
		oci_team_collect();
		if (!round)
			before = oci_segment_live_bytes();
		CHECK(oci_segment_live_bytes() == before);
	}
	return 0;
}
