/* SPDX-License-Identifier: BSD-3-Clause */
/* Alltoall and Alltoallv in place where less address space is left than their blocks have. */
#include <stdio.h>
#include <stdlib.h>

#include "api/engine.h"
#include "support/fork_team.h"
#include "support/process.h"
#include "support/test.h"

enum { BLOCK = 4 << 20, LEFT = 3 << 20, WORDS = BLOCK / 8, MOST = 4 };

static uint64_t word_of(uint32_t from, uint32_t to, size_t i)
{
	return ((uint64_t)from << 48 | (uint64_t)to << 40 | i) * 0x9e3779b97f4a7c15u;
}

/* 0, or 1 where a call failed or gave wrong bytes. */
static int exchange(struct oc_team *team, uint64_t *words, bool v)
{
	uint32_t rank = oc_team_rank(team), size = oc_team_size(team);
	struct oc_block blocks[MOST];
	struct oc_call call = { .collective = v ? OC_ALLTOALLV : OC_ALLTOALL,
				.send = OC_IN_PLACE,
				.recv = words,
				.recv_blocks = blocks,
				.bytes = v ? 0 : BLOCK };

	for (uint32_t r = 0; r < size; r++) {
		/* Alike for both of a pair; some are not large. */
		blocks[r] = (struct oc_block){ r * (size_t)BLOCK,
					       v && (r + rank) % 3 == 2 ? 800 : BLOCK };
		for (size_t i = 0; i < WORDS; i++)
			words[r * (size_t)WORDS + i] = word_of(rank, r, i);
	}
	if (oc_collective(team, &call))
		return 1;
	for (uint32_t r = 0; r < size; r++)
		for (size_t i = 0; i < blocks[r].bytes / 8; i++)
			if (words[r * (size_t)WORDS + i] != word_of(r, rank, i))
				return 1;
	return 0;
}

static int with_little_left(struct oc_team *team, void *arg)
{
	uint64_t *words = malloc((size_t)oc_team_size(team) * BLOCK);
	int failed;

	(void)arg;
	/* The team comes up before there is a limit. */
	if (!words || oct_barrier(team))
		return 1;
	if (oct_limit_address_space(LEFT))
		return 1;
	failed = exchange(team, words, false) || exchange(team, words, true);
	free(words);
	return failed;
}

TEST(in_place_needs_no_second_buffer)
{
	for (uint32_t size = 2; size <= MOST; size++)
		assert_int_equal(oct_fork_team(size, -1, with_little_left, NULL), 0);
}

int main(void)
{
#ifdef __SANITIZE_ADDRESS__
	fprintf(stderr,
		"skipped: AddressSanitizer's shadow is address space, which is limited here\n");
	return 77;
#endif
	return oct_test_run(NULL, NULL);
}
