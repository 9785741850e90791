/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Under limits of a process (setrlimit): few descriptors and many ranks, little address space.
 * Teams are made, or refused on all ranks alike; what is left is the program's.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/engine.h"
#include "os/os.h"
#include "support/fork_team.h"
#include "support/test.h"

#define MIB ((size_t)1 << 20)

enum { WRONG = 2 };

static int barrier(struct oc_team *team)
{
	return oc_collective(team, &(struct oc_call){ .collective = OC_BARRIER });
}

static unsigned int descriptors(void)
{
	DIR *open_ones = opendir("/proc/self/fd");
	unsigned int count = 0;

	while (open_ones && readdir(open_ones))
		count++;
	closedir(open_ones);
	return count;
}

static int keeps_few_descriptors(struct oc_team *team, void *arg)
{
	uint32_t rank = oc_team_rank(team), size = oc_team_size(team);
	static char block[200000];
	struct oc_call call = { .collective = OC_BCAST,
				.send = block,
				.bytes = sizeof(block),
				.root = size - 1 };

	memset(block, rank == size - 1 ? 5 : 0, sizeof(block));
	if (barrier(team) || oc_collective(team, &call) || barrier(team))
		return 1;
	if (block[0] != 5 || block[sizeof(block) - 1] != 5)
		return WRONG;
	/* The segment, and what the test's own processes have. */
	return descriptors() > *(unsigned int *)arg + 4 ? WRONG + 1 : 0;
}

static int few_descriptors(void)
{
	struct rlimit limit = { 64, 64 };
	unsigned int before = descriptors();

	if (setrlimit(RLIMIT_NOFILE, &limit))
		return 1;
	return oct_fork_team(100, -1, keeps_few_descriptors, &before);
}

TEST(a_hundred_ranks_need_no_hundred_descriptors)
{
	assert_int_equal(oct_apart(few_descriptors), 0);
}

/* ---- address space --------------------------------------------------------------------------- */

static size_t address_space(void)
{
	size_t pages = 0;
	char text[64];

	if (oci_os_read_file("/proc/self/statm", text, sizeof(text)) > 0)
		pages = strtoull(text, NULL, 10);
	return pages * oci_os_page_bytes();
}

/* So much more than is in use. */
static void limit_address_space(size_t more)
{
	struct rlimit limit;

	getrlimit(RLIMIT_AS, &limit);
	limit.rlim_cur = address_space() + more;
	setrlimit(RLIMIT_AS, &limit);
}

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
	return barrier(team) ? 1 : can_have(1024 * MIB) ? 0 : WRONG;
}

static int limited_to_2560_mib(void)
{
	limit_address_space(2560 * MIB);
	return oct_fork_team(8, -1, program_has_its_share, NULL);
}

TEST(a_limit_of_address_space_leaves_the_program_its_own)
{
	assert_int_equal(oct_apart(limited_to_2560_mib), 0);
}

static int is_handed_back(struct oc_team *team, void *arg)
{
	return barrier(team) != OC_HAND_BACK ? 1 : can_have(*(size_t *)arg) ? 0 : WRONG;
}

static int limited_to_96_mib(void)
{
	size_t most = 64 * MIB;

	limit_address_space(96 * MIB);
	return oct_fork_team(8, -1, is_handed_back, &most);
}

TEST(too_little_address_space_refuses_the_team_on_all_ranks)
{
	assert_int_equal(oct_apart(limited_to_96_mib), 0);
}

/* One rank's limit is set when the others have told their segments' size. */
static int one_is_limited(struct oc_team *alone, void *arg)
{
	struct oc_bootstrap bootstrap = oct_bootstrap(arg, oc_team_rank(alone));
	struct oc_team *all;
	int state, result;

	if (oc_team_rank(alone) == 2)
		limit_address_space(512 * MIB);
	if (oc_team_create(&all, &bootstrap))
		return 1;
	while ((state = oc_team_progress(all)) == 0)
		;
	result = barrier(all);
	oct_meet(); /* a process that has gone is another error */
	if (state == 1 || result != OC_HAND_BACK)
		return WRONG;
	return strstr(oc_team_error(all), "rank 2") && can_have(384 * MIB) ? 0 : WRONG + 1;
}

TEST(one_rank_with_too_little_refuses_the_team_on_all)
{
	struct oct_board *board = oct_board_create(4);

	assert_int_equal(oct_fork_team(4, -1, one_is_limited, board), 0);
	oct_board_destroy(board);
}
