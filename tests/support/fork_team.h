/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Teams without an MPI, for tests and micro-benchmarks: ranks are forked, or all in one process.
 */
#ifndef OC_TESTS_FORK_TEAM_H
#define OC_TESTS_FORK_TEAM_H

#include <onecopy/onecopy.h>

/* Memory through which the ranks gather; shared with children that are forked afterwards. */
struct oct_board;
struct oct_board *oct_board_create(uint32_t size);
void oct_board_destroy(struct oct_board *board);
/* The bootstrap of one rank over the board. */
struct oc_bootstrap oct_bootstrap(struct oct_board *board, uint32_t rank);

/*
 * Forks `size` ranks, each of which creates a team and runs `body`; 0 when all of them returned 0,
 * else the number of ranks that did not (told on stderr). Ranks that hang are ended by oc_watch,
 * under which tests run. A rank may exit by itself; `expect_dead` (or -1) is one that has to.
 */
int oct_fork_team(uint32_t size, int expect_dead, int (*body)(struct oc_team *team, void *arg),
		  void *arg);

/* Runs `run` in a process of its own, which may change what its children are born with: the status
 * of waitpid(2). */
int oct_apart(int (*run)(void));
/* In a rank of oct_fork_team(), without the engine: returns when all ranks have come here. */
void oct_meet(void);

/* `size` teams of one process, all ready. The ranks must then be driven by oc_start()/oc_test(). */
int oct_local_teams(struct oct_board *board, uint32_t size, struct oc_team **teams);

#endif
