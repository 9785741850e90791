/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Teams without an MPI, for tests and micro-benchmarks: ranks are forked, or all in one process.
 */
#ifndef OC_TESTS_FORK_TEAM_H
#define OC_TESTS_FORK_TEAM_H

#include <onecopy/onecopy.h>
#include <stdbool.h>

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
/* With AddressSanitizer a rank that has not freed what it took has failed, unless this is set; of
 * more than five ranks, five are looked at. */
extern bool oct_may_leak;
/* The same for ranks that prepare something before they create their team. */
int oct_fork_ranks(uint32_t size, int expect_dead,
		   int (*body)(const struct oc_bootstrap *bootstrap, void *arg), void *arg);

/*
 * A test (support/test.h) whose body runs on each rank of a new team, once for each number of
 *ranks:
 *
 *	TEST_ON_RANKS(a_barrier_ends, 2, 5)
 *	{
 *		return barrier(team);
 *	}
 *
 * It has to return 0. An assertion of cmocka would not end the rank.
 */
#define TEST_ON_RANKS(name, ...)                                                                  \
	static int name##_on_a_rank(struct oc_team *team, void *unused);                          \
	TEST(name)                                                                                \
	{                                                                                         \
		static const uint32_t sizes[] = { __VA_ARGS__ };                                  \
                                                                                                  \
		for (unsigned int i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)               \
			assert_int_equal(oct_fork_team(sizes[i], -1, name##_on_a_rank, NULL), 0); \
	}                                                                                         \
	static int name##_on_a_rank(struct oc_team *team, __attribute__((unused)) void *unused)

/* Runs `run` in a process of its own, which may change what its children are born with: the status
 * of waitpid(2). */
int oct_apart(int (*run)(void));
/* In a rank of oct_fork_team(): the bootstrap of a further team of the same ranks, and of any after
 * it, once this one has been made. */
struct oc_bootstrap oct_again(const struct oc_team *first);
/* In a rank of oct_fork_team(), without the engine: returns when all ranks have come here. */
void oct_meet(void);

/*
 * `size` teams of one process, all ready. The ranks must then be driven by oc_start()/oc_test(), or
 * each by a thread. These give 0 or the first error.
 */
int oct_local_teams(uint32_t size, struct oc_team **teams);
/* Not ready yet: their creation has begun. */
int oct_local_begin(uint32_t size, struct oc_team **teams);
int oct_local_end(uint32_t size, struct oc_team **teams);

/* What the engine's functions return. */
int oct_barrier(struct oc_team *team);
int oct_bcast(struct oc_team *team, void *buffer, size_t bytes, uint32_t root);
/* Until the team is made, or refused. */
int oct_made(struct oc_team *team);

#endif
