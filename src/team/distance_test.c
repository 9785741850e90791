/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two ranks that measure, each for itself, how far they are from each other: dictated measurements
 * that differ between the ranks and change from span to span. All calls go by what both agreed,
 * from the same call on, blocking ones and requests in any mixture.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "api/engine.h"
#include "support/fork_team.h"
#include "support/mix.h"

#define CALLS 1200 /* four agreements */
/* Where near ranks take another algorithm; the larger one in larger slots. */
#define BYTES 16384
#define BYTES_MOST 200000
#define OUTSTANDING 20

enum { NEVER, ALWAYS, ONE_OF_THEM, CHANGING };

/* What each rank went by in each call; shared. */
struct seen {
	uint8_t near[CALLS];
	uint8_t algorithm[CALLS];
};

static struct {
	int kind;
	uint32_t seed, rank;
	struct oci_team *team;
	unsigned int measured;
	uint64_t last_line;
	bool same_line;
} mine;

/* In place of a clock. Each look must find a line that the peer has written since the last one. */
static uint64_t dictated(const uint64_t *word, uint64_t *value)
{
	uint64_t span = mine.team->distance.end;
	bool near = mine.kind == ALWAYS || (mine.kind == ONE_OF_THEM && mine.rank) ||
		    (mine.kind == CHANGING && oct_mix(span * 2 + mine.rank + mine.seed) % 3 != 0);

	*value = oci_load_acquire(word);
	mine.same_line |= *value == mine.last_line;
	mine.last_line = *value;
	/* A few samples are wrong: it is the median that counts. */
	return ++mine.measured % 8 < 3 ? 5000 : near ? 20 : 120;
}

static int check_bytes(const uint8_t *recv, uint32_t n, size_t bytes)
{
	for (size_t i = 0; i < bytes; i += 61) {
		if (recv[i] != (uint8_t)(n + i))
			return 1;
	}
	return 0;
}

static void fill(uint8_t *send, uint32_t n, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		send[i] = (uint8_t)(n + i);
}

/* Bcasts from either rank; some as requests, of which up to OUTSTANDING are under way at a call. */
static int mixture(struct oc_team *team, void *arg)
{
	struct seen *seen = (struct seen *)arg + team->team.rank;
	struct oc_request *request[OUTSTANDING];
	uint8_t *buffer[OUTSTANDING + 1];
	uint32_t number[OUTSTANDING], many = 0;
	size_t size[OUTSTANDING];
	int failed = 0;

	for (unsigned int i = 0; i <= OUTSTANDING; i++)
		buffer[i] = malloc(BYTES_MOST);
	while (oc_team_progress(team) == 0)
		;
	mine.rank = team->team.rank;
	mine.team = &team->team;
	oci_distance_measure = dictated;
	/* Also on a machine of one CPU. */
	team->team.oversubscribed = false;
	oci_distance_init(&team->team);
	for (uint32_t n = 0; n < CALLS && !failed; n++) {
		uint32_t random = (uint32_t)oct_mix(n + mine.seed);
		bool starts = random % 8 != 0;
		uint8_t *at = buffer[starts ? many : OUTSTANDING];
		struct oc_call call = { .collective = OC_BCAST,
					.send = at,
					.bytes = random >> 9 & 7 ? BYTES : BYTES_MOST,
					.root = random >> 8 & 1 };

		if (call.root == team->team.rank)
			fill(at, n, call.bytes);
		else
			memset(at, 0, call.bytes);
		if (starts) {
			failed = oc_start(team, &call, &request[many]);
			size[many] = call.bytes;
			number[many++] = n;
		} else {
			failed = oc_collective(team, &call) || check_bytes(at, n, call.bytes);
			seen->near[n] = 1 + (team->recent[OC_BCAST].apart == OCI_NEAR);
			seen->algorithm[n] = (uint8_t)team->recent[OC_BCAST].ready.record.algorithm;
		}
		/* Ranks complete theirs at different times, and now this one is ahead, now that. */
		if (random >> 24 < 16 && (random >> 20 & 1) == team->team.rank)
			usleep(300);
		if (many == OUTSTANDING || (random >> 12) % 64 == team->team.rank) {
			for (uint32_t i = 0; i < many && !failed; i++)
				failed = oc_wait(request[i]) ||
					 check_bytes(buffer[i], number[i], size[i]);
			many = 0;
		}
	}
	for (uint32_t i = 0; i < many && !failed; i++)
		failed = oc_wait(request[i]) || check_bytes(buffer[i], number[i], size[i]);
	if (failed || mine.same_line)
		fprintf(stderr, "rank %u: %d (%s), %s\n", team->team.rank, failed,
			oc_team_error(team), mine.same_line ? "old line" : "");
	for (unsigned int i = 0; i <= OUTSTANDING; i++)
		free(buffer[i]);
	return failed || mine.same_line || !mine.measured;
}

/* How many calls went by `near`, after both ranks have done alike. */
static uint32_t run(int kind, uint32_t seed, bool *changes)
{
	struct seen *seen = mmap(NULL, 2 * sizeof(*seen), PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint32_t near = 0, before = 0;

	mine.kind = kind;
	mine.seed = seed;
	assert_int_equal(oct_fork_team(2, -1, mixture, seen), 0);
	assert_memory_equal(&seen[0], &seen[1], sizeof(*seen));
	*changes = false;
	for (uint32_t n = 0; n < CALLS; n++) {
		if (!seen->near[n])
			continue;
		near += seen->near[n] == 2;
		*changes |= before && seen->near[n] != before && n > 200;
		before = seen->near[n];
		assert_string_equal(oci_algorithm(OC_BCAST, seen->algorithm[n])->name,
				    seen->near[n] == 2 ? "cico" : "cooperative");
	}
	munmap(seen, 2 * sizeof(*seen));
	return near;
}

static void ranks_that_are_far_stay_far(void **state)
{
	bool changes;

	(void)state;
	assert_int_equal(run(NEVER, 1, &changes), 0);
	assert_false(changes);
}

static void ranks_that_are_near_go_by_it_soon(void **state)
{
	bool changes;

	(void)state;
	assert_true(run(ALWAYS, 1, &changes) > CALLS / 16);
	assert_false(changes);
}

static void one_rank_alone_decides_nothing(void **state)
{
	bool changes;

	(void)state;
	assert_int_equal(run(ONE_OF_THEM, 1, &changes), 0);
}

static void what_changes_changes_for_both_at_once(void **state)
{
	bool changes, any = false;

	(void)state;
	for (uint32_t seed = 0; seed < 20; seed++) {
		run(CHANGING, seed << 16, &changes);
		any |= changes;
	}
	assert_true(any);
}

/* Says in which order its operands came. */
static void in_order(void *context, const void *in, void *inout, size_t count)
{
	const uint8_t *a = in;
	uint8_t *b = inout;

	(void)context;
	for (size_t i = 0; i < count; i++)
		b[i] = (uint8_t)(3 * a[i] + b[i]);
}

/* By the choice of near ranks and of any two: the same bits. Returns how many choices differ. */
static int compare_bits(struct oc_team *team, struct oc_call *call, uint8_t *out[2])
{
	uint8_t algorithm[2];

	for (int near = 0; near < 2; near++) {
		call->recv = out[near];
		memset(out[near], 0, call->bytes);
		team->team.distance.near = near;
		if (oc_collective(team, call))
			return -1;
		algorithm[near] = (uint8_t)team->recent[call->collective].ready.record.algorithm;
	}
	if (memcmp(out[0], out[1], call->bytes))
		return -1;
	return algorithm[0] != algorithm[1];
}

static int reductions(struct oc_team *team, void *arg)
{
	static const enum oc_collective all[] = { OC_REDUCE, OC_ALLREDUCE, OC_SCAN, OC_EXSCAN };
	static const size_t sizes[] = { 8,     600,   8192,  12000,  16384,
					30000, 60000, 65536, 100000, 200000 };
	const struct oc_op op = { .apply = in_order, .bytes = 1, .commutative = 1, .id = 1 };
	uint8_t *in = malloc(200000), *out[2] = { malloc(200000), malloc(200000) };
	int differ = 0, found = 0;

	(void)arg;
	while (oc_team_progress(team) == 0)
		;
	team->team.oversubscribed = false;
	team->team.due = team->team.distance.until = UINT64_MAX;
	for (size_t i = 0; i < 200000; i++)
		in[i] = (uint8_t)(oct_mix(i) + team->team.rank * 77);
	for (unsigned int i = 0; i < 4 * 10 * 2 && found >= 0; i++) {
		struct oc_call call = { .collective = all[i % 4],
					.send = in,
					.bytes = sizes[i / 4 % 10],
					.root = i / 40,
					.op = &op };

		found = compare_bits(team, &call, out);
		differ += found > 0;
		if (found < 0)
			fprintf(stderr, "rank %u: %s of %zu bytes: other bits (%s)\n",
				team->team.rank, oci_collective_name(call.collective), call.bytes,
				oc_team_error(team));
	}
	free(in);
	free(out[0]);
	free(out[1]);
	return found < 0 || !differ;
}

static void results_do_not_depend_on_it(void **state)
{
	(void)state;
	assert_int_equal(oct_fork_team(2, -1, reductions, NULL), 0);
}

/* The clock's own word: a line of our own cache takes less than one from another's could. */
static void a_line_that_is_here_takes_no_time(void **state)
{
	uint64_t word = 42, value, least = UINT64_MAX;

	(void)state;
	for (int i = 0; i < 1000; i++) {
		uint64_t ns = oci_distance_measure(&word, &value);

		assert_int_equal(value, 42);
		if (ns < least)
			least = ns;
	}
	assert_true(least < 60);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_that_is_here_takes_no_time),
		cmocka_unit_test(ranks_that_are_far_stay_far),
		cmocka_unit_test(ranks_that_are_near_go_by_it_soon),
		cmocka_unit_test(one_rank_alone_decides_nothing),
		cmocka_unit_test(what_changes_changes_for_both_at_once),
		cmocka_unit_test(results_do_not_depend_on_it),
	};

	setenv("ONECOPY_CHECK", "on", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
