/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The segment is full: new teams are refused, on all ranks alike, and those that are ready work.
 * More than 500 lines, as its cases fill it by the same few helpers.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/engine.h"
#include "support/blocks.h"
#include "support/fork_team.h"
#include "support/test.h"

#define TEAMS 400

TEST_ON_RANKS(a_full_segment_refuses_teams_and_hangs_none, 3)
{
	static struct oc_team *teams[TEAMS];
	unsigned int ready = 0, refused = 0;
	static char block[200000];

	for (unsigned int i = 0; i < TEAMS; i++) {
		struct oc_bootstrap bootstrap = oct_again(team);
		int state;

		if (oc_team_create(&teams[i], &bootstrap))
			return 1;
		state = oct_made(teams[i]);
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
		int result;

		memset(block, oc_team_rank(team) == i % 3 ? (int)i : 0xee, bytes);
		result = oct_bcast(teams[i], block, bytes, i % 3);
		if (i >= ready ? result != OC_HAND_BACK :
				 result || block[0] != (char)i || block[bytes - 1] != (char)i)
			return 4;
	}
	return 0;
}

static void take_all(size_t bytes)
{
	while (oci_segment_alloc(bytes) >= 0)
		;
}

static void fill_segment(void)
{
	for (size_t bytes = OCI_NEAR_SLOT_BYTES; bytes >= 4096; bytes /= 2)
		take_all(bytes);
}

/* Rank 1 dies with what it has not read in all slots of the root, which can make no more. */
static int slots_of_the_dead(struct oc_team *team, void *arg)
{
	const size_t *bytes = arg;
	char block[8000] = { 0 };
	int result = 0;

	if (oc_team_force(team, "bcast", "cico") || oct_bcast(team, block, *bytes, 0))
		return 1;
	take_all(OCI_SLOT_BYTES);
	take_all(OCI_SMALL_SLOT_BYTES);
	if (oc_team_rank(team) == 1)
		_exit(1);
	for (unsigned int i = 0; i < OCI_LANES - 1 && !result; i++)
		result = oct_bcast(team, block, *bytes, 0);
	return result == -EOWNERDEAD && oc_team_dead_rank(team) == 1 ? 0 : 2;
}

TEST(slots_that_a_dead_rank_holds_hang_nobody)
{
	/* In slots of both sizes. */
	assert_int_equal(oct_fork_team(2, 1, slots_of_the_dead, &(size_t){ 2000 }), 0);
	assert_int_equal(oct_fork_team(2, 1, slots_of_the_dead, &(size_t){ 8000 }), 0);
}

/* Blocks that no slot holds, by turns of one: a team has what that needs. */
TEST_ON_RANKS(what_no_slot_holds_goes_through_one, 3)
{
	enum { RANKS = 3, BYTES = 200000 };
	static uint8_t send[RANKS][BYTES], recv[RANKS][BYTES];
	uint32_t rank = oc_team_rank(team);
	struct oc_call call = { .collective = OC_ALLTOALL,
				.send = send,
				.recv = recv,
				.bytes = BYTES };

	oct_made(team);
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

#define NEAR_BYTES 70000
/* As many as may have larger slots, and two; calls until each has one. */
#define NEAR_TEAMS 34
#define NEAR_MOST 32
#define NEAR_CALLS (OCI_LANES + 2)

/* As two ranks that share a cache and have a CPU each, on any machine. */
static struct oc_team *near_team(struct oc_team *team)
{
	oct_made(team);
	team->team.oversubscribed = team->team.mapped = false;
	team->team.common = OCI_TOPO_L3;
	return team;
}

/* A Gather, of two ranks: the one that is not the root gives, by a slot. */
struct near_gather {
	uint8_t given[NEAR_BYTES], got[2 * NEAR_BYTES];
	uint8_t value;
	bool is_root;
};

static struct oc_call near_gather(struct near_gather *g, uint32_t rank, uint32_t root,
				  unsigned int number)
{
	g->is_root = rank == root;
	g->value = (uint8_t)(number % 251);
	memset(g->given, g->is_root ? 0xff : g->value, NEAR_BYTES);
	memset(g->got, 0xff, sizeof(g->got));
	return (struct oc_call){ .collective = OC_GATHER,
				 .send = g->given,
				 .recv = g->got,
				 .bytes = NEAR_BYTES,
				 .root = root };
}

static bool near_right(const struct near_gather *g, uint32_t rank)
{
	const uint8_t *block = g->got + !rank * NEAR_BYTES;

	return !g->is_root || (block[0] == g->value && block[NEAR_BYTES / 2] == g->value &&
			       block[NEAR_BYTES - 1] == g->value);
}

/* To either rank in turns, each by a call and by a request. */
static int near_calls(struct oc_team *team, unsigned int calls)
{
	static struct near_gather g;

	for (unsigned int i = 0; i < 2 * calls; i++) {
		struct oc_call call = near_gather(&g, team->team.rank, i / 2 % 2, i);
		struct oc_request *request;

		if (i % 2			    ? oc_collective(team, &call) :
		    oc_start(team, &call, &request) ?:
						      oc_wait(request))
			return 1;
		if (!near_right(&g, team->team.rank))
			return 2;
	}
	return 0;
}

/* Which ranks have no room left when they would take a larger slot: a bit for each. */
static int larger_slots(struct oc_team *team, void *arg)
{
	unsigned int full = *(unsigned int *)arg;
	int failed;

	near_team(team);
	if (full >> team->team.rank & 1)
		fill_segment();
	failed = near_calls(team, NEAR_CALLS);
	/* Once it is known no call needs memory. */
	fill_segment();
	return failed ?: near_calls(team, 100) ?: team->team.large_slots != !full;
}

TEST(near_ranks_take_larger_slots_where_both_have_room)
{
	for (unsigned int full = 0; full < 4; full++)
		assert_int_equal(oct_fork_team(2, -1, larger_slots, &full), 0);
}

/* To rank 1: requests on all teams but one, and a call there, which rank 1 makes first. */
static int near_round(struct oc_team **teams, unsigned int called, uint32_t rank)
{
	static struct near_gather g[NEAR_TEAMS];
	struct oc_request *request[NEAR_TEAMS];
	struct oc_call call[NEAR_TEAMS];

	for (unsigned int i = 0; i < NEAR_TEAMS; i++)
		call[i] = near_gather(&g[i], rank, 1, i);
	for (unsigned int step = 0; step < 2; step++) {
		if (step != rank && oc_collective(teams[called], &call[called]))
			return 3;
		for (unsigned int i = 0; step == rank && i < NEAR_TEAMS; i++)
			if (i != called && oc_start(teams[i], &call[i], &request[i]))
				return 4;
	}
	for (unsigned int i = 0; i < NEAR_TEAMS; i++) {
		if ((i != called && oc_wait(request[i])) || !near_right(&g[i], rank))
			return 5;
	}
	return 0;
}

static int near_crosswise(struct oc_team *first, void *arg)
{
	struct oc_bootstrap bootstrap = oct_again(first);
	struct oc_team *teams[NEAR_TEAMS];
	int failed = 0;

	(void)arg;
	for (unsigned int i = 0; i < NEAR_TEAMS && !failed; i++) {
		if (oc_team_create(&teams[i], &bootstrap))
			return 1;
		failed = near_calls(near_team(teams[i]), NEAR_CALLS);
		if (teams[i]->team.large_slots != (i < NEAR_MOST))
			return 6;
	}
	fill_segment();
	for (unsigned int called = 0; called < NEAR_TEAMS && !failed; called++)
		failed = near_round(teams, called, oc_team_rank(first));
	return failed;
}

TEST(near_teams_with_larger_slots_never_wait_for_each_other)
{
	setenv("ONECOPY_SEGMENT_BYTES", "64M", 1);
	assert_int_equal(oct_fork_team(2, -1, near_crosswise, NULL), 0);
	setenv("ONECOPY_SEGMENT_BYTES", "1M", 1);
}

#define CROSSED_TEAMS 40
#define CROSSED_CALLS 4 /* outstanding of each team */
#define CROSSED_MOST 6000
/* Of a block: more than a small slot holds, or less. */
static unsigned int crossed_bytes = CROSSED_MOST;

/* Alltoallv takes a slot for its small blocks, and by shm one for its large ones; Allgather one. */
struct crossed {
	struct oc_team *team;
	struct oct_blocks blocks[CROSSED_CALLS];
	uint8_t send[CROSSED_CALLS][CROSSED_MOST], recv[CROSSED_CALLS][3 * CROSSED_MOST];
	struct oc_request *request[CROSSED_CALLS];
	int result[CROSSED_CALLS];
};

static uint8_t crossed_byte(unsigned int team, unsigned int call, uint32_t rank, unsigned int at)
{
	return (uint8_t)(team * 41 + call * 17 + rank * 101 + at + (at >> 8));
}

/* 1, or 0: it failed. */
static int crossed_start(struct crossed *c, unsigned int team, uint32_t rank, uint32_t size)
{
	for (unsigned int i = 0; i < CROSSED_CALLS; i++) {
		struct oc_call all = { .collective = OC_ALLGATHER,
				       .send = c->send[i],
				       .recv = c->recv[i],
				       .bytes = crossed_bytes };

		for (unsigned int at = 0; at < crossed_bytes; at++)
			c->send[i][at] = crossed_byte(team, i, rank, at);
		oct_blocks_make(&c->blocks[i], OC_ALLTOALLV, team * CROSSED_CALLS + i, rank, size,
				0, false);
		c->result[i] = oc_start(c->team, i % 2 ? &c->blocks[i].call : &all, &c->request[i]);
		if (c->result[i] && c->result[i] != -ENOMEM)
			return 0;
	}
	return 1;
}

static bool crossed_right(const struct crossed *c, unsigned int team, unsigned int i, uint32_t size)
{
	if (i % 2)
		return oct_blocks_right(&c->blocks[i]);
	for (uint32_t r = 0; r < size; r++) {
		for (unsigned int at = 0; at < crossed_bytes; at++) {
			if (c->recv[i][r * crossed_bytes + at] != crossed_byte(team, i, r, at))
				return false;
		}
	}
	return true;
}

/* Starts calls of all teams, in another order on each rank. How many failed, or -1. */
static int run_crossed(struct crossed *crossed, unsigned int count, uint32_t rank, uint32_t size)
{
	int failed = 0;

	for (unsigned int i = 0; i < count; i++) {
		unsigned int team = rank == 0 ? i :
				    rank == 1 ? count - 1 - i :
						(i + count / 2) % count;

		/* All ranks hold slots of other teams by then. */
		if (i == count / 2)
			oct_meet();
		if (!crossed_start(&crossed[team], team, rank, size))
			return -1;
	}
	for (unsigned int team = 0; team < count; team++) {
		struct crossed *c = &crossed[team];

		for (unsigned int i = 0; i < CROSSED_CALLS; i++) {
			if (!c->result[i])
				c->result[i] = oc_wait(c->request[i]);
			if (c->result[i] ? c->result[i] != -ENOMEM :
					   !crossed_right(c, team, i, size))
				return -1;
			failed += c->result[i] != 0;
			oct_blocks_free(&c->blocks[i]);
		}
	}
	return failed;
}

/* So many teams as there is room for. */
static unsigned int create_crossed(struct crossed *crossed, struct oc_team *first)
{
	unsigned int count = 0;

	for (; count < CROSSED_TEAMS; count++) {
		struct oc_bootstrap bootstrap = oct_again(first);
		struct oc_team *team;
		int state;

		if (oc_team_create(&team, &bootstrap))
			return 0;
		state = oct_made(team);
		crossed[count].team = team;
		if (state != 1 || oc_team_force(team, "allgather", "cico") ||
		    oc_team_force(team, "alltoallv", "pairwise"))
			break;
	}
	return count;
}

/* No room for small slots any more, so that what would lie in one takes another. */
static void leave_no_small(void)
{
	if (crossed_bytes <= OCI_SMALL_SLOT_BYTES)
		take_all(OCI_SMALL_SLOT_BYTES);
}

static int crosswise(struct oc_team *first, void *arg)
{
	static struct crossed crossed[CROSSED_TEAMS];
	unsigned int count = create_crossed(crossed, first);

	(void)arg;
	if (count < 5)
		return 1;
	leave_no_small();
	for (unsigned int round = 0; round < 3; round++) {
		if (run_crossed(crossed, count, oc_team_rank(first), oc_team_size(first)))
			return 2;
	}
	/* Who leaves gives back what it was guaranteed. */
	for (unsigned int i = 0; i <= count && i < CROSSED_TEAMS; i++) {
		if (oc_team_destroy(crossed[i].team))
			return 3;
	}
	oct_meet();
	if (create_crossed(crossed, first) != count)
		return 4;
	return run_crossed(crossed, count, oc_team_rank(first), oc_team_size(first)) ? 5 : 0;
}

TEST(no_order_of_operations_makes_teams_wait_for_each_other)
{
	for (uint32_t ranks = 2; ranks <= 3; ranks++) {
		for (int shm = 0; shm < 2; shm++) {
			/* The ranks read it. */
			if (shm)
				setenv("ONECOPY_MECHANISM", "shm", 1);
			assert_int_equal(oct_fork_team(ranks, -1, crosswise, NULL), 0);
			crossed_bytes = 2000;
			assert_int_equal(oct_fork_team(ranks, -1, crosswise, NULL), 0);
			crossed_bytes = CROSSED_MOST;
			unsetenv("ONECOPY_MECHANISM");
		}
	}
}

/* Gives how many calls failed, or -1. */
struct refused {
	int (*run)(struct crossed *crossed, unsigned int count, uint32_t rank, uint32_t size);
};

/* The kernel gives no memory for what the teams were promised. */
static int refused_memory(struct oc_team *first, void *arg)
{
	static struct crossed crossed[CROSSED_TEAMS];
	unsigned int count = create_crossed(crossed, first);
	const struct refused *refused = arg;
	uint32_t rank = oc_team_rank(first);
	struct oci_segment_id id;
	int failed;

	if (count < 20 || oci_segment_self(&id, 1) || close(id.fd))
		return 1;
	leave_no_small();
	oct_meet();
	failed = refused->run(crossed, count, rank, oc_team_size(first));
	/* Who ends before is dead for the other, which has yet to learn of the error. */
	oct_meet();
	/* A third one may have all that it needs. */
	return failed > 0 || (!failed && rank == 2) ? 0 : 2;
}

TEST(memory_that_is_refused_is_an_error)
{
	/* More than the kernel has granted when it begins. */
	setenv("ONECOPY_SEGMENT_BYTES", "4M", 1);
	assert_int_equal(oct_fork_team(2, -1, refused_memory, &(struct refused){ run_crossed }), 0);
	crossed_bytes = 2000;
	assert_int_equal(oct_fork_team(2, -1, refused_memory, &(struct refused){ run_crossed }), 0);
	crossed_bytes = CROSSED_MOST;
	setenv("ONECOPY_SEGMENT_BYTES", "1M", 1);
}

/*
 * Alltoallv in which one rank of the first two sends to the other, and that one to the third. What
 * the one does is over when its block lies in a slot, which it holds until the other, for whom a
 * slot is wanted first, has read it.
 */
struct left {
	struct oc_block send[3], recv[3];
	uint8_t sent[CROSSED_MOST], received[CROSSED_MOST];
	struct oc_request *request;
	int result;
};

static void start_left(struct left *l, struct oc_team *team, uint32_t from, uint32_t rank)
{
	struct oc_call call = { .collective = OC_ALLTOALLV,
				.send = l->sent,
				.recv = l->received,
				.send_blocks = l->send,
				.recv_blocks = l->recv };
	const struct oc_block block = { 0, crossed_bytes };

	*l = (struct left){ .request = NULL };
	memset(l->sent, 'a', crossed_bytes);
	if (rank == from)
		l->send[1 - from] = block;
	else if (rank == 1 - from)
		l->recv[from] = l->send[2] = block;
	else
		l->recv[1 - from] = block;
	l->result = oc_start(team, &call, &l->request);
}

/* Of half of the teams the one is rank 0, of the others rank 1, and each starts its own first. How
 * many failed, or -1. */
static int run_left(struct crossed *crossed, unsigned int count, uint32_t rank, uint32_t size)
{
	static struct left left[CROSSED_TEAMS];
	int failed = 0;

	(void)size;
	for (unsigned int i = 0; i < count; i++) {
		unsigned int team = (i + (rank == 1 ? count / 2 : 0)) % count;

		if (i == count / 2)
			oct_meet();
		start_left(&left[team], crossed[team].team, team >= count / 2, rank);
	}
	for (unsigned int team = 0; team < count; team++) {
		struct left *l = &left[team];
		bool receives = rank != (team >= count / 2);

		if (!l->result)
			l->result = oc_wait(l->request);
		if (l->result ? l->result != -ENOMEM :
				receives && l->received[crossed_bytes - 1] != 'a')
			return -1;
		failed += l->result != 0;
	}
	return failed;
}

/* The same where all that holds slots is over, and only peers still need it. */
TEST(memory_that_is_refused_while_peers_have_yet_to_read_is_an_error)
{
	setenv("ONECOPY_SEGMENT_BYTES", "4M", 1);
	assert_int_equal(oct_fork_team(3, -1, refused_memory, &(struct refused){ run_left }), 0);
	setenv("ONECOPY_SEGMENT_BYTES", "1M", 1);
}

int main(void)
{
	oci_slots_starved_ns = 1000000000;
	/* The smallest segment; before anything reads the options. */
	setenv("ONECOPY_SEGMENT_BYTES", "1M", 1);
	setenv("ONECOPY_LOG", "error", 1);
	return oct_test_run(NULL, NULL);
}
