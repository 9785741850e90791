/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Creations within this process, whose steps come in random order. Teams that one rank must refuse
 * are refused by all, and whoever comes late finds the refused one's region used for another team.
 */
#include <errno.h>

#include "api/engine.h"
#include "support/fork_team.h"
#include "support/test.h"
#include "team/creation.h"

enum { RANKS = 5, TEAMS = 6, RUNS = 400 };

/* What goes wrong in one rank's creation of a team. */
enum fault { NOTHING, NO_MEMORY, NOT_GATHERED, CANNOT_MAP, OTHER_MODEL, FAULTS };

struct member {
	struct oct_board *board;
	uint32_t rank;
	unsigned int made; /* teams that have come to their end here */
	struct oc_team *team, *kept;
	enum fault fault; /* of its creation */
	struct oc_bootstrap inner;
	struct oci_hello hello, *hellos;
	int result[TEAMS];
};

static unsigned int seed;

static unsigned int dice(unsigned int sides)
{
	seed = seed * 1103515245 + 12345;
	return (seed >> 16) % sides;
}

static int gather_start(void *context, const void *send, size_t bytes, void *recv)
{
	struct member *m = context;

	assert_int_equal(bytes, sizeof(m->hello));
	m->hello = *(const struct oci_hello *)send;
	m->hellos = recv;
	if (m->fault == NO_MEMORY)
		m->hello.error = -ENOMEM;
	return m->inner.allgather_start(m->inner.context, &m->hello, bytes, recv);
}

static int gather_test(void *context)
{
	struct member *m = context;
	int done = m->inner.allgather_test(m->inner.context);

	if (done == 1 && m->fault == NOT_GATHERED)
		return -EIO;
	if (done == 1 && m->fault == CANNOT_MAP)
		m->hellos[dice(m->inner.size)].segment.nonce[0]++;
	return done;
}

static void create(struct member *m)
{
	struct oc_bootstrap bootstrap = m->inner = oct_bootstrap(m->board, m->rank);

	bootstrap.context = m;
	bootstrap.allgather_start = gather_start;
	bootstrap.allgather_test = gather_test;
	assert_int_equal(oc_team_create(&m->team, &bootstrap), 0);
	if (m->fault == OTHER_MODEL)
		m->team->team.model_hash++;
}

static void step(struct member *m)
{
	struct oc_team *before;
	int result;

	if (!m->team)
		create(m);
	result = oc_team_progress(m->team);
	if (!result)
		return;
	m->result[m->made++] = result;
	/* Some keep it for a while. */
	before = m->kept;
	m->kept = dice(2) ? m->team : NULL;
	if (before)
		assert_int_equal(oc_team_destroy(before), 0);
	if (!m->kept)
		assert_int_equal(oc_team_destroy(m->team), 0);
	m->team = NULL;
}

static void run(uint32_t ranks)
{
	struct oct_board *board = oct_board_create(ranks);
	struct member member[RANKS] = { 0 };
	enum fault fault[TEAMS];
	uint32_t faulty[TEAMS], over = 0;

	for (int t = 0; t < TEAMS; t++) {
		fault[t] = dice(FAULTS);
		faulty[t] = dice(ranks);
	}
	for (uint32_t r = 0; r < ranks; r++)
		member[r] = (struct member){ .board = board, .rank = r };
	while (over < ranks) {
		struct member *m = &member[dice(ranks)];

		if (m->made == TEAMS)
			continue;
		m->fault = faulty[m->made] == m->rank ? fault[m->made] : NOTHING;
		step(m);
		over += m->made == TEAMS;
	}
	for (uint32_t r = 0; r < ranks; r++)
		for (int t = 0; t < TEAMS; t++)
			assert_int_equal(member[r].result[t] == 1, fault[t] == NOTHING);
	for (uint32_t r = 0; r < ranks; r++)
		if (member[r].kept)
			assert_int_equal(oc_team_destroy(member[r].kept), 0);
	oci_team_collect();
	oct_board_destroy(board);
}

TEST(all_ranks_come_to_the_same_end)
{
	for (seed = 1; seed <= RUNS; seed += 7)
		for (uint32_t ranks = 2; ranks <= RANKS; ranks++) {
			unsigned int before = seed;

			run(ranks);
			seed = before;
		}
}

/* Regions and slots come back, of refused teams too. */
TEST(memory_comes_back)
{
	size_t bytes;

	seed = 1;
	run(RANKS);
	bytes = oci_segment_live_bytes();
	for (int i = 0; i < 50; i++)
		run(RANKS);
	assert_in_range(oci_segment_live_bytes(), 0, bytes + RANKS * oci_region_bytes(RANKS));
}
