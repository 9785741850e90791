/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Under limits of a process (setrlimit): few descriptors and many ranks, little address space.
 * Teams are made, or refused on all ranks alike; what is left is the program's.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "api/engine.h"
#include "os/os.h"
#include "support/fork_team.h"
#include "support/process.h"
#include "support/test.h"

#define MIB ((size_t)1 << 20)

enum { WRONG = 2 };

static int keeps_few_descriptors(struct oc_team *team, void *arg)
{
	uint32_t rank = oc_team_rank(team), size = oc_team_size(team);
	static char block[200000];

	memset(block, rank == size - 1 ? 5 : 0, sizeof(block));
	if (oct_barrier(team) || oct_bcast(team, block, sizeof(block), size - 1) ||
	    oct_barrier(team))
		return 1;
	if (block[0] != 5 || block[sizeof(block) - 1] != 5)
		return WRONG;
	/* The segment, and what the test's own processes have. */
	return oct_descriptors() > *(unsigned int *)arg + 4 ? WRONG + 1 : 0;
}

static int few_descriptors(void)
{
	unsigned int before = oct_descriptors();

	if (oct_limit(RLIMIT_NOFILE, 64))
		return 1;
	return oct_fork_team(100, -1, keeps_few_descriptors, &before);
}

TEST(a_hundred_ranks_need_no_hundred_descriptors)
{
	assert_int_equal(oct_apart(few_descriptors), 0);
}

/* ---- address space --------------------------------------------------------------------------- */

static bool can_have(size_t bytes)
{
	char *memory = malloc(bytes);

	if (memory)
		memory[bytes / 2] = 1;
	free(memory);
	return memory;
}

static int program_has_its_share(struct oc_team *team, void *arg)
{
	(void)arg;
	return oct_barrier(team) ? 1 : can_have(1024 * MIB) ? 0 : WRONG;
}

static int limited_to_2560_mib(void)
{
	oct_limit_address_space(2560 * MIB);
	return oct_fork_team(8, -1, program_has_its_share, NULL);
}

TEST(a_limit_of_address_space_leaves_the_program_its_own)
{
	assert_int_equal(oct_apart(limited_to_2560_mib), 0);
}

static int is_handed_back(struct oc_team *team, void *arg)
{
	return oct_barrier(team) != OC_HAND_BACK ? 1 : can_have(*(size_t *)arg) ? 0 : WRONG;
}

static int limited_to_96_mib(void)
{
	size_t most = 64 * MIB;

	oct_limit_address_space(96 * MIB);
	return oct_fork_team(8, -1, is_handed_back, &most);
}

TEST(too_little_address_space_refuses_the_team_on_all_ranks)
{
	assert_int_equal(oct_apart(limited_to_96_mib), 0);
}

/* One rank's limit is set when the others have told their segments' size. */
TEST_ON_RANKS(one_rank_with_too_little_refuses_the_team_on_all, 4)
{
	struct oc_bootstrap bootstrap = oct_again(team);
	struct oc_team *all;
	int state, result;

	if (oc_team_rank(team) == 2)
		oct_limit_address_space(512 * MIB);
	if (oc_team_create(&all, &bootstrap))
		return 1;
	state = oct_made(all);
	result = oct_barrier(all);
	oct_meet(); /* a process that has gone is another error */
	if (state == 1 || result != OC_HAND_BACK)
		return WRONG;
	return strstr(oc_team_error(all), "rank 2") && can_have(384 * MIB) ? 0 : WRONG + 1;
}
