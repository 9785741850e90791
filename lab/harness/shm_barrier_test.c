// SPDX-License-Identifier: BSD-3-Clause
#include "lab/harness/shm_barrier.h"
#include "support/test.h"

#include <sys/wait.h>
#include <unistd.h>

enum { RANKS = 5, ROUNDS = 2000 };

/*
 * In each round every rank writes the round's number, and after the barrier must find it with
 * all others. Ends with the rank's exit status: 0 if it did.
 */
static int rank_main(struct shm_barrier *barrier)
{
	int round, rank;
	bool stop = false;

	for (round = 1; round <= ROUNDS && !stop; round++) {
		shm_barrier_times(barrier, barrier->rank)[0] = round;
		if (barrier->rank == 0)
			shm_barrier_set_stop(barrier, round == ROUNDS / 2);
		if (round % 2)
			shm_barrier_wait(barrier);
		else
			shm_barrier_align(barrier);
		for (rank = 0; rank < RANKS; rank++)
			if (shm_barrier_times(barrier, rank)[0] != round)
				return 1;
		stop = shm_barrier_stop(barrier);
		shm_barrier_wait(barrier);
	}
	/* All stop in the same round, or one would hang. */
	return round == ROUNDS / 2 + 1 ? 0 : 2;
}

TEST(five_processes_meet_in_every_round_and_stop_in_the_same_one)
{
	char name[SHM_BARRIER_NAME_CHARS];
	struct shm_barrier barrier = { 0 };
	int rank, status;

	shm_barrier_name(name);
	for (rank = 1; rank < RANKS; rank++) {
		if (fork() == 0) {
			struct shm_barrier theirs = { 0 };

			_exit(shm_barrier_meet(&theirs, name, rank, RANKS, 10) ?
				      3 :
				      rank_main(&theirs));
		}
	}
	assert_int_equal(shm_barrier_meet(&barrier, name, 0, RANKS, 10), 0);
	assert_int_equal(rank_main(&barrier), 0);
	for (rank = 1; rank < RANKS; rank++) {
		assert_true(wait(&status) > 0);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), 0);
	}
	shm_barrier_close(&barrier);
}

TEST(a_rank_that_did_not_enter_is_named)
{
	char name[SHM_BARRIER_NAME_CHARS];
	struct shm_barrier first = { 0 }, second = { 0 };
	int status;

	shm_barrier_name(name);
	if (fork() == 0)
		_exit(shm_barrier_meet(&second, name, 1, 2, 1) ? 1 : 0);
	assert_int_equal(shm_barrier_meet(&first, name, 0, 2, 1), 0);
	assert_true(wait(&status) > 0);
	assert_int_equal(status, 0);
	second = first;
	second.rank = 1;
	shm_barrier_mark(&first, 7);
	assert_int_equal(shm_barrier_find_absent(&first, 7), 1);
	shm_barrier_mark(&second, 7);
	assert_int_equal(shm_barrier_find_absent(&first, 7), -1);
	assert_false(shm_barrier_failed(&first));
	shm_barrier_add_failure(&second);
	assert_true(shm_barrier_failed(&first));
	shm_barrier_forget_failures(&first);
	assert_false(shm_barrier_failed(&second));
	shm_barrier_close(&first);
}

/* ---- two nodes --------------------------------------------------------------------------------
 */

static uint32_t meet_other(void *context, uint32_t word)
{
	struct shm_barrier *between = context;

	shm_barrier_times(between, between->rank)[0] = word;
	shm_barrier_wait(between);
	word |= (uint32_t)shm_barrier_times(between, !between->rank)[0];
	shm_barrier_wait(between);
	return word;
}

/* The first rank tells, one of the second node fails. 0: all heard the same. */
static int rank_of_node(int node, int rank, const char *const names[3])
{
	struct shm_barrier barrier = { 0 }, between = { 0 };
	int wrong = 0;

	if (shm_barrier_meet(&barrier, names[node], rank, 2, 1) ||
	    (!rank && shm_barrier_meet(&between, names[2], node, 2, 1)))
		return 1;
	barrier.meet_others = meet_other;
	barrier.context = &between;
	barrier.tells = !node && !rank;
	for (int round = 0; round < 100; round++) {
		if (barrier.tells)
			shm_barrier_set_stop(&barrier, round % 3 == 0);
		if (node && rank && round % 2)
			shm_barrier_add_failure(&barrier);
		shm_barrier_align(&barrier);
		if (shm_barrier_stop(&barrier) != (round % 3 == 0))
			wrong = 2;
		if (shm_barrier_failed(&barrier) != (round % 2 == 1))
			wrong = 3;
		shm_barrier_wait(&barrier);
		if (barrier.tells)
			shm_barrier_forget_failures(&barrier);
		shm_barrier_wait(&barrier);
		if (shm_barrier_failed(&barrier))
			wrong = 4;
		/* What others would say is of no account, and leaves nothing behind. */
		if (shm_barrier_tell(&barrier, node || rank || round % 5 == 0) != (round % 5 == 0))
			wrong = 5;
	}
	return wrong;
}

TEST(ranks_of_two_nodes_hear_of_each_other)
{
	char name[3][SHM_BARRIER_NAME_CHARS];
	const char *names[3] = { name[0], name[1], name[2] };
	int status;

	for (int i = 0; i < 3; i++)
		shm_barrier_name(name[i]);
	for (int i = 0; i < 4; i++)
		if (fork() == 0)
			_exit(rank_of_node(i / 2, i % 2, names));
	for (int i = 0; i < 4; i++) {
		assert_true(wait(&status) > 0);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), 0);
	}
}
