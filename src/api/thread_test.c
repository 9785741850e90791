/* SPDX-License-Identifier: BSD-3-Clause */
/* Every algorithm by ranks that are threads of one process: for ThreadSanitizer. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/engine.h"
#include "coll/coll.h"
#include "support/blocks.h"
#include "support/call_bytes.h"
#include "support/test.h"
#include "support/thread_team.h"

#define RANKS 3
#define BYTES 70000

static const struct oc_op sum = { .apply = oct_add, .bytes = 1, .commutative = 1, .id = 1 };

static bool right(const struct oc_call *call, const uint8_t *got, uint32_t rank, unsigned int n)
{
	size_t bytes = oct_recv_bytes(call->collective, call->bytes, RANKS, rank == call->root);

	for (size_t at = 0; at < bytes; at += call->bytes) {
		uint8_t want = (uint8_t)(n + at / call->bytes);

		if (call->collective == OC_SCATTER || call->collective == OC_BCAST)
			want = (uint8_t)(n + call->root);
		if (oci_is_reduction(call->collective)) {
			uint32_t operands = RANKS;

			if (call->collective == OC_SCAN)
				operands = rank + 1;
			if (call->collective == OC_EXSCAN)
				operands = rank;
			want = operands ? (uint8_t)(operands * n + operands * (operands - 1) / 2) :
					  0xee; /* not touched */
		}
		if (!oct_all(got + at, want, call->bytes))
			return false;
	}
	return true;
}

/* Of a Reduce_scatter: as the blocks of a Reduce_scatter_block; parts_test.c has others. */
static void equal_parts(struct oc_block *parts, uint32_t size, size_t bytes)
{
	for (uint32_t r = 0; r < size; r++)
		parts[r] = (struct oc_block){ r * bytes, bytes };
}

static int one_call(struct oc_team *team, enum oc_collective c, size_t bytes, unsigned int n)
{
	static __thread uint8_t send[RANKS * BYTES], recv[RANKS * BYTES];
	uint32_t me = oc_team_rank(team);
	struct oc_block parts[RANKS];
	struct oc_call call = { .collective = (enum oc_collective)c,
				.send = send,
				.recv = recv,
				.bytes = c == OC_BARRIER ? 0 : bytes,
				.op = &sum,
				.root = c == OC_BARRIER ? 0 : n % RANKS };

	equal_parts(parts, RANKS, bytes);
	call.recv_blocks = parts;
	/* Rewritten before each call: a peer that still reads is a race. */
	memset(send, (int)(n + me), sizeof(send));
	memset(recv, 0xee, sizeof(recv));
	if (oc_collective(team, &call))
		return 1;
	return !right(&call, c == OC_BCAST ? send : recv, me, n);
}

static int one_of_blocks(struct oc_team *team, enum oc_collective c, unsigned int n)
{
	struct oct_blocks b;
	int failed;

	oct_blocks_make(&b, (enum oc_collective)c, n, oc_team_rank(team), RANKS, n % RANKS, n % 2);
	failed = oc_collective(team, &b.call) || !oct_blocks_right(&b);
	oct_blocks_free(&b);
	return failed;
}

static int run(struct oc_team *team)
{
	static const size_t sizes[] = { 1, 100, 3000, BYTES };
	const struct oci_algorithm *a;
	unsigned int n = 0;
	int failed = 0;

	for (unsigned int c = 0; c < OC_COLLECTIVES; c++) {
		for (unsigned int i = 0; (a = oci_algorithm(c, i)) != NULL; i++) {
			oc_team_force(team, oci_collective_name(c), a->name);
			for (unsigned int s = 0; s < 4 * 6 && !failed; s++)
				failed = oci_is_v((enum oc_collective)c) ?
						 one_of_blocks(team, c, n++) :
						 one_call(team, c, sizes[s % 4], n++);
			if (failed) {
				fprintf(stderr, "%s %s\n", oci_collective_name(c), a->name);
				return failed;
			}
		}
	}
	return 0;
}

TEST(no_access_is_unordered_in_any_algorithm)
{
	assert_int_equal(oct_thread_team(RANKS, 0, run), 0);
}

TEST(nor_when_copies_fail_and_are_recovered)
{
	assert_int_equal(oct_thread_team(RANKS, 4, run), 0);
}
