/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/fork_team.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MOST_BYTES 8192 /* of one contribution */

struct contribution {
	uint64_t round;		     /* last round started */
	uint8_t data[2][MOST_BYTES]; /* by parity of the round */
};

struct rank_state {
	struct oct_board *board;
	uint32_t rank;
	uint64_t round;
	size_t bytes;
	void *recv;
};

struct oct_board {
	uint32_t size;
	size_t bytes;
	struct rank_state *state;  /* private to each process after fork */
	struct contribution *from; /* size */
};

struct oct_board *oct_board_create(uint32_t size)
{
	struct oct_board *board = calloc(1, sizeof(*board));

	board->size = size;
	board->bytes = size * sizeof(*board->from);
	board->state = calloc(size, sizeof(*board->state));
	board->from =
		mmap(NULL, board->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return board;
}

void oct_board_destroy(struct oct_board *board)
{
	munmap(board->from, board->bytes);
	free(board->state);
	free(board);
}

/* Round n + 2 reuses the bytes of round n: a rank starts it only after round n + 1 is complete,
 * which every rank started after it had read round n. */
static int gather_start(void *context, const void *send, size_t bytes, void *recv)
{
	struct rank_state *s = context;
	struct contribution *mine = &s->board->from[s->rank];

	if (bytes > MOST_BYTES)
		return -EMSGSIZE;
	s->round++;
	s->bytes = bytes;
	s->recv = recv;
	memcpy(mine->data[s->round % 2], send, bytes);
	__atomic_store_n(&mine->round, s->round, __ATOMIC_RELEASE);
	return 0;
}

static int gather_test(void *context)
{
	struct rank_state *s = context;

	for (uint32_t r = 0; r < s->board->size; r++) {
		if (__atomic_load_n(&s->board->from[r].round, __ATOMIC_ACQUIRE) < s->round)
			return 0;
	}
	for (uint32_t r = 0; r < s->board->size; r++)
		memcpy((uint8_t *)s->recv + r * s->bytes, s->board->from[r].data[s->round % 2],
		       s->bytes);
	return 1;
}

struct oc_bootstrap oct_bootstrap(struct oct_board *board, uint32_t rank)
{
	struct rank_state *s = &board->state[rank];

	*s = (struct rank_state){ .board = board, .rank = rank, .round = board->from[rank].round };
	return (struct oc_bootstrap){ .rank = rank,
				      .size = board->size,
				      .context = s,
				      .allgather_start = gather_start,
				      .allgather_test = gather_test };
}

static int run_rank(struct oct_board *board, uint32_t rank,
		    int (*body)(struct oc_team *team, void *arg), void *arg)
{
	struct oc_bootstrap bootstrap = oct_bootstrap(board, rank);
	struct oc_team *team;
	int result;

	if (oc_team_create(&team, &bootstrap))
		return 1;
	result = body(team, arg);
	oc_team_destroy(team);
	return result;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int reap(const pid_t *pids, uint32_t size, unsigned int seconds, int expect_dead)
{
	double end = now() + seconds;
	uint32_t left = size;
	int failed = 0;

	while (left) {
		int status;
		pid_t pid = waitpid(-1, &status, WNOHANG);

		if (pid <= 0) {
			if (now() > end) {
				fprintf(stderr, "%u ranks hang after %u s\n", left, seconds);
				for (uint32_t r = 0; r < size; r++)
					kill(pids[r], SIGKILL);
				end += 1e9;
				failed++;
			}
			usleep(500);
			continue;
		}
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

int oct_fork_team(uint32_t size, unsigned int seconds, int expect_dead,
		  int (*body)(struct oc_team *team, void *arg), void *arg)
{
	struct oct_board *board = oct_board_create(size);
	pid_t *pids = calloc(size, sizeof(*pids));
	int failed;

	fflush(NULL);
	for (uint32_t r = 0; r < size; r++) {
		pids[r] = fork();
		if (pids[r] == 0) {
			int result = run_rank(board, r, body, arg);

			fflush(NULL);
			_exit(result);
		}
	}
	failed = reap(pids, size, seconds, expect_dead);
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
