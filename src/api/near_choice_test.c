/* SPDX-License-Identifier: BSD-3-Clause */
/* What two near ranks choose: alike in blocking calls and requests, which go on in any mixture. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/engine.h"
#include "support/fork_team.h"
#include "support/mix.h"
#include "support/test.h"

#define CALLS 1200
/* Where near ranks take another algorithm; the larger one in larger slots. */
#define BYTES 16384
#define BYTES_MOST 200000
#define OUTSTANDING 20

static uint64_t dictated(const uint64_t *word)
{
	(void)word;
	return 20;
}

static uint64_t far_line(const uint64_t *word)
{
	(void)word;
	return 120;
}

/* What the root of a Gather has got of the other one; NULL: this rank is none. */
static int check_bytes(const uint8_t *recv, uint32_t n, size_t bytes)
{
	for (size_t i = 0; recv && i < bytes; i += 61) {
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

struct run {
	bool near;
	uint32_t seed;
};

/* As of two ranks that have a CPU each, also on a machine of one. */
static void be_two(struct oc_team *team)
{
	team->team.oversubscribed = team->team.may_part = false;
	team->team.common = oci_near_find(&team->team);
}

/* Large slots come behind OCI_LANES + 2 blocking calls that gain by them. */
static const char *expected(bool near, size_t bytes, bool starts, unsigned int called)
{
	if (bytes == BYTES_MOST && (starts || called < OCI_LANES + 2))
		near = false;
	return near ? "cico" : "throttled-write";
}

/* Gathers to either rank; some as requests, of which up to OUTSTANDING are under way at a call. */
static int mixture(struct oc_team *team, void *arg)
{
	const struct run *run = arg;
	struct oc_request *request[OUTSTANDING];
	uint8_t *buffer[OUTSTANDING + 1], *theirs[OUTSTANDING + 1];
	uint32_t number[OUTSTANDING], many = 0;
	size_t size[OUTSTANDING];
	const struct oci_algorithm *algorithm;
	unsigned int called = 0;
	int failed = 0;

	for (unsigned int i = 0; i <= OUTSTANDING; i++)
		buffer[i] = malloc((size_t)3 * BYTES_MOST);
	oci_near_source.by_places = false;
	oci_near_source.line_ns = run->near ? dictated : far_line;
	oct_made(team);
	be_two(team);
	for (uint32_t n = 0; n < CALLS && !failed; n++) {
		uint32_t random = (uint32_t)oct_mix(n + run->seed);
		bool starts = random % 8 != 0;
		uint32_t place = starts ? many : OUTSTANDING;
		uint8_t *at = buffer[place];
		struct oc_call call = { .collective = OC_GATHER,
					.send = at,
					.recv = at + BYTES_MOST,
					.bytes = random >> 9 & 7 ? BYTES : BYTES_MOST,
					.root = random >> 8 & 1 };

		fill(at, n, call.bytes);
		memset(call.recv, 0, 2 * call.bytes);
		theirs[place] = call.root == team->team.rank ?
					(uint8_t *)call.recv + !team->team.rank * call.bytes :
					NULL;
		if (starts) {
			failed = oc_start(team, &call, &request[many]);
			size[many] = call.bytes;
			number[many++] = n;
		} else {
			failed = oc_collective(team, &call) ||
				 check_bytes(theirs[place], n, call.bytes);
		}
		algorithm =
			oci_algorithm(OC_GATHER, team->recent[OC_GATHER]->ready.record.algorithm);
		failed = failed ?:
				  strcmp(algorithm->name,
					 expected(run->near, call.bytes, starts, called));
		called += !starts && call.bytes == BYTES_MOST;
		/* Ranks complete theirs at different times, and now this one is ahead, now that. */
		if (random >> 24 < 16 && (random >> 20 & 1) == team->team.rank)
			usleep(300);
		if (many == OUTSTANDING || (random >> 12) % 64 == team->team.rank) {
			for (uint32_t i = 0; i < many && !failed; i++)
				failed = oc_wait(request[i]) ||
					 check_bytes(theirs[i], number[i], size[i]);
			many = 0;
		}
	}
	for (uint32_t i = 0; i < many && !failed; i++)
		failed = oc_wait(request[i]) || check_bytes(theirs[i], number[i], size[i]);
	if (failed)
		fprintf(stderr, "rank %u: %d (%s)\n", team->team.rank, failed, oc_team_error(team));
	for (unsigned int i = 0; i <= OUTSTANDING; i++)
		free(buffer[i]);
	return failed;
}

TEST(calls_of_both_kinds_go_by_it)
{
	for (uint32_t i = 0; i < 8; i++) {
		struct run run = { i % 4 != 0, i << 16 };

		assert_int_equal(oct_fork_team(2, -1, mixture, &run), 0);
	}
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

/* Commutes. */
static void in_any_order(void *context, const void *in, void *inout, size_t count)
{
	const uint8_t *a = in;
	uint8_t *b = inout;

	(void)context;
	for (size_t i = 0; i < count; i++)
		b[i] = (uint8_t)(5 * a[i] * b[i] + 3 * (a[i] ^ b[i]));
}

/* By the choice of near ranks and of any two: the same bits. Returns how many choices differ. */
static int compare_bits(struct oc_team *team, struct oc_call *call, uint8_t *out[2])
{
	uint8_t algorithm[2];

	for (int near = 0; near < 2; near++) {
		call->recv = out[near];
		memset(out[near], 0, call->bytes);
		team->team.common = near ? OCI_TOPO_L3 : OCI_TOPO_MACHINE;
		oci_recent_forget(team);
		if (oc_collective(team, call))
			return -1;
		algorithm[near] = (uint8_t)team->recent[call->collective]->ready.record.algorithm;
	}
	if (memcmp(out[0], out[1], call->bytes))
		return -1;
	return algorithm[0] != algorithm[1];
}

TEST_ON_RANKS(results_do_not_depend_on_it, 2)
{
	static const enum oc_collective all[] = { OC_REDUCE, OC_ALLREDUCE, OC_SCAN, OC_EXSCAN };
	static const size_t sizes[] = { 8,     600,   8192,  12000,  16384,
					30000, 60000, 65536, 100000, 200000 };
	const struct oc_op ops[] = {
		{ .apply = in_order, .bytes = 1, .id = 1 },
		{ .apply = in_any_order, .bytes = 1, .commutative = 1, .id = 2 }
	};
	uint8_t *in = malloc(200000), *out[2] = { malloc(200000), malloc(200000) };
	int differ = 0, found = 0;

	oci_near_source.by_places = false;
	oci_near_source.line_ns = dictated;
	oct_made(team);
	be_two(team);
	for (size_t i = 0; i < 200000; i++)
		in[i] = (uint8_t)(oct_mix(i) + team->team.rank * 77);
	/* So often that large slots are among them. */
	for (unsigned int i = 0; i < 4 * 10 * 4 * 8 && found >= 0; i++) {
		struct oc_call call = { .collective = all[i % 4],
					.send = in,
					.bytes = sizes[i / 4 % 10],
					.root = i / 40 % 2,
					.op = &ops[i / 80 % 2] };

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

int main(void)
{
	setenv("ONECOPY_CHECK", "on", 1);
	return oct_test_run(NULL, NULL);
}
