/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/fork_team.h"

#include "lab/harness/meet.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

struct seat {
	struct meet meet; /* first: the bootstrap's context */
	struct oct_board *board;
};

struct oct_board {
	uint32_t size, released;
	struct seat *seat;	  /* [size], private to each process after fork */
	struct meet_place *place; /* [size], shared */
};

struct oct_board *oct_board_create(uint32_t size)
{
	struct oct_board *board = calloc(1, sizeof(*board));

	board->size = size;
	board->seat = calloc(size, sizeof(*board->seat));
	board->place = mmap(NULL, size * sizeof(*board->place), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return board;
}

void oct_board_destroy(struct oct_board *board)
{
	munmap(board->place, board->size * sizeof(*board->place));
	free(board->seat);
	free(board);
}

struct oc_bootstrap oct_bootstrap(struct oct_board *board, uint32_t rank)
{
	struct seat *seat = &board->seat[rank];

	/* A rank goes on behind what it has gathered for an earlier team. */
	seat->board = board;
	seat->meet = (struct meet){ .place = board->place,
				    .rank = rank,
				    .ranks = board->size,
				    .round = board->place[rank].round };
	return meet_bootstrap(&seat->meet);
}

int oct_barrier(struct oc_team *team)
{
	return oc_collective(team, &(struct oc_call){ .collective = OC_BARRIER });
}

int oct_bcast(struct oc_team *team, void *buffer, size_t bytes, uint32_t root)
{
	return oc_collective(team, &(struct oc_call){ .collective = OC_BCAST,
						      .send = buffer,
						      .bytes = bytes,
						      .root = root });
}

int oct_made(struct oc_team *team)
{
	int state;

	while ((state = oc_team_progress(team)) == 0)
		;
	return state;
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

bool oct_may_leak;

/* The ranks whose leaks are looked for, as to look takes 0.1 s: of more than these the first and
 * the last. */
enum { LOOKED_AT = 5 };

static bool is_looked_at(uint32_t rank, uint32_t size)
{
	return rank < LOOKED_AT - 1 || rank == size - 1;
}

#ifdef __SANITIZE_ADDRESS__
/* A child has forgotten what its parent had freed of the segment. */
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:oci_segment_free\n";
}

/* They leave by _exit(), before which nobody else would look for what was not freed. */
static bool rank_leaks(const pid_t *pids)
{
	__lsan_ignore_object(pids);
	return !oct_may_leak && __lsan_do_recoverable_leak_check();
}
#else
static bool rank_leaks(const pid_t *pids)
{
	(void)pids;
	return false;
}
#endif

/* Of the ranks that oct_fork_team() has forked. */
static struct {
	uint32_t size;
	uint64_t *arrived; /* shared: how often a rank has come to oct_meet() */
	struct oct_board *again;
} forked;

void oct_meet(void)
{
	uint64_t mine = __atomic_fetch_add(forked.arrived, 1, __ATOMIC_ACQ_REL);
	uint64_t all = (mine / forked.size + 1) * forked.size;

	while (__atomic_load_n(forked.arrived, __ATOMIC_ACQUIRE) < all)
		usleep(200);
}

struct oc_bootstrap oct_again(const struct oc_team *first)
{
	return oct_bootstrap(forked.again, oc_team_rank(first));
}

int oct_fork_ranks(uint32_t size, int expect_dead,
		   int (*body)(const struct oc_bootstrap *bootstrap, void *arg), void *arg)
{
	struct oct_board *board = oct_board_create(size);
	pid_t *pids = calloc(size, sizeof(*pids));
	int failed;

	forked.size = size;
	forked.arrived = mmap(NULL, sizeof(*forked.arrived), PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	forked.again = oct_board_create(size);
	fflush(NULL);
	for (uint32_t r = 0; r < size; r++) {
		pids[r] = fork();
		if (pids[r] == 0) {
			struct oc_bootstrap bootstrap = oct_bootstrap(board, r);
			char name[16];
			int result;

			snprintf(name, sizeof(name), "rank %u", r);
			prctl(PR_SET_NAME, name);
			result = body(&bootstrap, arg);
			fflush(NULL);
			_exit(result ? result : is_looked_at(r, size) && rank_leaks(pids));
		}
	}
	failed = reap(pids, size, expect_dead);
	munmap(forked.arrived, sizeof(*forked.arrived));
	free(pids);
	oct_board_destroy(forked.again);
	oct_board_destroy(board);
	return failed;
}

struct with_team {
	int (*body)(struct oc_team *team, void *arg);
	void *arg;
};

static int run_with_team(const struct oc_bootstrap *bootstrap, void *arg)
{
	const struct with_team *with = arg;
	struct oc_team *team;
	int result;

	if (oc_team_create(&team, bootstrap))
		return 1;
	result = with->body(team, with->arg);
	oc_team_destroy(team);
	return result;
}

int oct_fork_team(uint32_t size, int expect_dead, int (*body)(struct oc_team *team, void *arg),
		  void *arg)
{
	struct with_team with = { body, arg };

	return oct_fork_ranks(size, expect_dead, run_with_team, &with);
}

static void release_seat(void *context)
{
	struct oct_board *board = ((struct seat *)context)->board;

	if (++board->released == board->size)
		oct_board_destroy(board);
}

int oct_local_begin(uint32_t size, struct oc_team **teams)
{
	struct oct_board *board = oct_board_create(size);
	int error = 0;

	for (uint32_t r = 0; r < size && !error; r++) {
		struct oc_bootstrap bootstrap = oct_bootstrap(board, r);

		bootstrap.release = release_seat;
		error = oc_team_create(&teams[r], &bootstrap);
	}
	return error;
}

int oct_local_teams(uint32_t size, struct oc_team **teams)
{
	uint32_t ready = 0;
	int error = oct_local_begin(size, teams);

	while (!error && ready < size) {
		ready = 0;
		for (uint32_t r = 0; r < size; r++) {
			int state = oc_team_progress(teams[r]);

			if (state < 0)
				return state;
			ready += (uint32_t)state;
		}
	}
	return error;
}

int oct_local_end(uint32_t size, struct oc_team **teams)
{
	int error = 0;

	for (uint32_t r = 0; r < size; r++) {
		int result = oc_team_destroy(teams[r]);

		error = error ?: result;
	}
	return error;
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
