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
	assert_int_equal(oct_fork_team(3, -1, fill, board), 0);
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
	assert_int_equal(oct_fork_team(2, 1, slots_of_the_dead, NULL), 0);
}

static void fill_segment(void)
{
	for (size_t bytes = OCI_NEAR_SLOT_BYTES; bytes >= 4096; bytes /= 2) {
		while (oci_segment_alloc(bytes) >= 0)
			;
	}
}

/* Blocks that no slot holds, by turns of one: a team has what that needs. */
static int large_by_turns(struct oc_team *team, void *arg)
{
	enum { RANKS = 3, BYTES = 200000 };
	static uint8_t send[RANKS][BYTES], recv[RANKS][BYTES];
	uint32_t rank = oc_team_rank(team);
	struct oc_call call = { .collective = OC_ALLTOALL,
				.send = send,
				.recv = recv,
				.bytes = BYTES };

	(void)arg;
	while (oc_team_progress(team) == 0)
		;
	fill_segment();
	for (uint32_t r = 0; r < RANKS; r++)
		memset(send[r], (int)(10 * rank + r + 1), BYTES);
	if (oc_team_force(team, "alltoall", "shm") || oc_collective(team, &call))
		return 1;
	for (uint32_t r = 0; r < RANKS; r++) {
		uint8_t want = (uint8_t)(10 * r + rank + 1);

		if (recv[r][0] != want || recv[r][BYTES / 2] != want || recv[r][BYTES - 1] != want)
			return 2;
	}
	return 0;
}

static void what_no_slot_holds_goes_through_one(void **state)
{
	(void)state;
	assert_int_equal(oct_fork_team(3, -1, large_by_turns, NULL), 0);
}

static uint64_t is_here(const uint64_t *word, uint64_t *value)
{
	*value = oci_load_acquire(word);
	return 20;
}

/* Near ranks have larger slots; without room for them, none is near. */
static int no_larger_slot(struct oc_team *team, void *full)
{
	char block[20000] = { 0 };
	struct oc_call call = { .collective = OC_BCAST, .send = block, .bytes = sizeof(block) };
	int result = 0;

	while (oc_team_progress(team) == 0)
		;
	/* Also on a machine of one CPU. */
	team->team.oversubscribed = false;
	oci_distance_init(&team->team);
	oci_distance_measure = is_here;
	if (full)
		fill_segment();
	for (unsigned int i = 0; i < 1000 && !result; i++) {
		call.root = i % 2;
		result = oc_collective(team, &call);
	}
	return result || team->team.distance.near != !full;
}

static void without_room_no_rank_is_near(void **state)
{
	static bool full = true;

	(void)state;
	assert_int_equal(oct_fork_team(2, -1, no_larger_slot, NULL), 0);
	assert_int_equal(oct_fork_team(2, -1, no_larger_slot, &full), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_full_segment_refuses_teams_and_hangs_none),
		cmocka_unit_test(slots_that_a_dead_rank_holds_hang_nobody),
		cmocka_unit_test(what_no_slot_holds_goes_through_one),
		cmocka_unit_test(without_room_no_rank_is_near),
	};

	/* The smallest segment; before anything reads the options. */
	setenv("ONECOPY_SEGMENT_BYTES", "1M", 1);
	setenv("ONECOPY_LOG", "error", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
