/* SPDX-License-Identifier: BSD-3-Clause */
/* The segment is full: new teams are refused, on all ranks alike, and those that are ready work. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/engine.h"
#include "support/fork_team.h"

#define TEAMS 400

static int fill(struct oc_team *first, void *arg)
{
	static struct oc_team *teams[TEAMS];
	struct oct_board *board = arg;
	unsigned int ready = 0, refused = 0;
	static char block[200000];

	for (unsigned int i = 0; i < TEAMS; i++) {
		struct oc_bootstrap bootstrap = oct_bootstrap(board, oc_team_rank(first));
		int state;

		if (oc_team_create(&teams[i], &bootstrap))
			return 1;
		while ((state = oc_team_progress(teams[i])) == 0)
			;
		if (state == 1)
			ready++;
		else
			refused++;
		if (state == 1 && refused)
			return 2;
	}
	if (!ready || !refused)
		return 3;
	for (unsigned int i = 0; i < TEAMS; i++) {
		size_t bytes = i % 2 ? 2000 : sizeof(block);
		struct oc_call call = { .collective = OC_BCAST,
					.send = block,
					.bytes = bytes,
					.root = i % 3 };
		int result;

		memset(block, oc_team_rank(first) == i % 3 ? (int)i : 0xee, bytes);
		result = oc_collective(teams[i], &call);
		if (i >= ready ? result != OC_HAND_BACK :
				 result || block[0] != (char)i || block[bytes - 1] != (char)i)
			return 4;
	}
	return 0;
}

static void a_full_segment_refuses_teams_and_hangs_none(void **state)
{
	struct oct_board *board = oct_board_create(3);

	(void)state;
	assert_int_equal(oct_fork_team(3, 60, -1, fill, board), 0);
	oct_board_destroy(board);
}

/* Rank 1 dies with what it has not read in all slots of the root, which can make no more. */
static int slots_of_the_dead(struct oc_team *team, void *arg)
{
	char block[2000] = { 0 };
	struct oc_call call = { .collective = OC_BCAST, .send = block, .bytes = sizeof(block) };
	int result = 0;

	(void)arg;
	if (oc_team_force(team, "bcast", "cico") || oc_collective(team, &call))
		return 1;
	while (oci_segment_alloc(OCI_SLOT_BYTES) >= 0)
		;
	if (oc_team_rank(team) == 1)
		_exit(1);
	for (unsigned int i = 0; i < OCI_LANES - 1 && !result; i++)
		result = oc_collective(team, &call);
	return result == -EOWNERDEAD && oc_team_dead_rank(team) == 1 ? 0 : 2;
}

static void slots_that_a_dead_rank_holds_hang_nobody(void **state)
{
	(void)state;
	assert_int_equal(oct_fork_team(2, 20, 1, slots_of_the_dead, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_full_segment_refuses_teams_and_hangs_none),
		cmocka_unit_test(slots_that_a_dead_rank_holds_hang_nobody),
	};

	/* The smallest segment; before anything reads the options. */
	setenv("ONECOPY_SEGMENT_BYTES", "1M", 1);
	setenv("ONECOPY_LOG", "error", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
