/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/fork_team.h"

#include "lab/harness/meet.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

struct oct_board {
	uint32_t size;
	struct meet *ranks;	  /* [size], private to each process after fork */
	struct meet_place *place; /* [size], shared */
};

struct oct_board *oct_board_create(uint32_t size)
{
	struct oct_board *board = calloc(1, sizeof(*board));

	board->size = size;
	board->ranks = calloc(size, sizeof(*board->ranks));
	board->place = mmap(NULL, size * sizeof(*board->place), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return board;
}

void oct_board_destroy(struct oct_board *board)
{
	munmap(board->place, board->size * sizeof(*board->place));
	free(board->ranks);
	free(board);
}

struct oc_bootstrap oct_bootstrap(struct oct_board *board, uint32_t rank)
{
	struct meet *me = &board->ranks[rank];

	/* A rank goes on behind what it has gathered for an earlier team. */
	*me = (struct meet){ .place = board->place,
			     .rank = rank,
			     .ranks = board->size,
			     .round = board->place[rank].round };
	return meet_bootstrap(me);
}

static int run_rank(struct oct_board *board, uint32_t rank,
		    int (*body)(struct oc_team *team, void *arg), void *arg)
{
	struct oc_bootstrap bootstrap = oct_bootstrap(board, rank);
	struct oc_team *team;
	char name[16];
	int result;

	snprintf(name, sizeof(name), "rank %u", rank);
	prctl(PR_SET_NAME, name);
	if (oc_team_create(&team, &bootstrap))
		return 1;
	result = body(team, arg);
	oc_team_destroy(team);
	return result;
}

static int reap(const pid_t *pids, uint32_t size, int expect_dead)
{
	uint32_t left = size;
	int failed = 0;

	while (left) {
		int status;
		pid_t pid = waitpid(-1, &status, 0);

		for (uint32_t r = 0; r < size; r++) {
			if (pids[r] != pid)
				continue;
			left--;
			if ((int)r == expect_dead ? WIFEXITED(status) && !WEXITSTATUS(status) :
						    status != 0) {
				fprintf(stderr, "rank %u ended with status 0x%x\n", r, status);
				failed++;
			}
		}
	}
	return failed;
}

static struct {
	uint32_t size;
	uint64_t *arrived; /* shared: how often a rank has come to oct_meet() */
} meeting;

void oct_meet(void)
{
	uint64_t mine = __atomic_fetch_add(meeting.arrived, 1, __ATOMIC_ACQ_REL);
	uint64_t all = (mine / meeting.size + 1) * meeting.size;

	while (__atomic_load_n(meeting.arrived, __ATOMIC_ACQUIRE) < all)
		usleep(200);
}

int oct_fork_team(uint32_t size, int expect_dead, int (*body)(struct oc_team *team, void *arg),
		  void *arg)
{
	struct oct_board *board = oct_board_create(size);
	pid_t *pids = calloc(size, sizeof(*pids));
	int failed;

	meeting.size = size;
	meeting.arrived = mmap(NULL, sizeof(*meeting.arrived), PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	fflush(NULL);
	for (uint32_t r = 0; r < size; r++) {
		pids[r] = fork();
		if (pids[r] == 0) {
			int result = run_rank(board, r, body, arg);

			fflush(NULL);
			_exit(result);
		}
	}
	failed = reap(pids, size, expect_dead);
	munmap(meeting.arrived, sizeof(*meeting.arrived));
	free(pids);
	oct_board_destroy(board);
	return failed;
}

int oct_local_teams(struct oct_board *board, uint32_t size, struct oc_team **teams)
{
	uint32_t ready = 0;

	for (uint32_t r = 0; r < size; r++) {
		struct oc_bootstrap bootstrap = oct_bootstrap(board, r);

		if (oc_team_create(&teams[r], &bootstrap))
			return -1;
	}
	while (ready < size) {
		ready = 0;
		for (uint32_t r = 0; r < size; r++) {
			int state = oc_team_progress(teams[r]);

			if (state < 0)
				return state;
			ready += (uint32_t)state;
		}
	}
	return 0;
}

int oct_apart(int (*run)(void))
{
	pid_t pid = fork();
	int status;

	if (!pid)
		_exit(run());
	waitpid(pid, &status, 0);
	return status;
}
