/* SPDX-License-Identifier: BSD-3-Clause */
/* Which way a team takes: what is measured decides, for all; and real ranks on both ways. */
#include <string.h>

#include "api/engine.h"
#include "base/options.h"
#include "support/call_bytes.h"
#include "support/fork_team.h"
#include "support/test.h"
#include "team/learned.h"

#define BYTES ((size_t)300 << 10)
#define LENGTH oci_learned_length(BYTES)

struct machine {
	uint8_t word;
	unsigned int length;
	bool gaps;
	uint64_t seq;
	struct oci_learned rank[2];
	uint64_t ns[2];		/* that a copy takes at once, and through slots */
	unsigned int copies[2]; /* by these ways */
};

/* A copy on both ranks, of an operation that comes `step` ones later. */
static bool copy(struct machine *m, uint64_t step)
{
	bool way[2], tries[2];

	m->seq += step;
	for (int r = 0; r < 2; r++)
		way[r] = oci_learned_way(&m->rank[r], &m->word, m->length, m->seq, m->gaps,
					 &tries[r]);
	/* But for the operation in which one of them begins anew. */
	if (tries[0] == tries[1])
		assert_int_equal(way[0], way[1]);
	for (int r = 0; r < 2; r++)
		if (tries[r])
			oci_learned_tell(&m->rank[r], &m->word, m->length, way[r], BYTES,
					 m->ns[way[r]]);
	m->copies[way[0]]++;
	return tries[0];
}

/* How many are settled before. */
static unsigned int copies_until_trying(struct machine *m)
{
	unsigned int settled = 0;

	while (!copy(m, 1) && settled < 10000)
		settled++;
	return settled;
}

/* The one that was the first to try, and those after it. */
static unsigned int copies_until_decided(struct machine *m, uint64_t step)
{
	unsigned int count = 1;

	while (copy(m, step) && count < 1000)
		count++;
	return count;
}

/* Before anything was measured. */
TEST(first_copies_go_as_is_set)
{
	static const struct {
		uint8_t word;
		bool gaps, slots;
	} set[] = { { 0, false, false },
		    { 0, true, true },
		    { OCI_LEARNED_SLOTS, false, true },
		    { OCI_LEARNED_AT_ONCE, true, false } };

	for (unsigned int i = 0; i < sizeof(set) / sizeof(set[0]); i++) {
		struct machine m = { .word = set[i].word,
				     .gaps = set[i].gaps,
				     .length = LENGTH,
				     .ns = { 100000, 200000 } };

		for (int n = 0; n < 31; n++)
			assert_false(copy(&m, 1));
		assert_int_equal(m.copies[set[i].slots], 31);
		assert_in_range(copies_until_trying(&m), 0, 1);
	}
}

/* Whatever other operations lie in between, and the quicker way is the one that is taken. */
TEST(quicker_way_is_taken)
{
	for (uint64_t step = 1; step <= 16; step++) {
		for (int slots = 0; slots < 2; slots++) {
			struct machine m = { .length = LENGTH,
					     .ns = { slots ? 200000 : 100000,
						     slots ? 100000 : 200000 } };
			bool tries;

			copies_until_trying(&m);
			assert_in_range(copies_until_decided(&m, step), 9, 80);
			assert_int_equal(oci_learned_way(&m.rank[1], &m.word, LENGTH, m.seq + 1,
							 false, &tries),
					 slots);
		}
	}
}

/* A longer copy is advised the way that a shorter one was found to be quicker by. */
TEST(what_was_found_is_advice)
{
	for (int slots = 0; slots < 2; slots++) {
		struct machine m = { .length = OCI_LEARNED_EMPTIES - 1,
				     .ns = { slots ? 200000 : 100000, slots ? 100000 : 200000 } },
			       longer = { .length = OCI_LEARNED_EMPTIES };

		assert_int_equal(oci_learned_advice(&m.rank[0]), 0);
		copies_until_trying(&m);
		assert_int_equal(oci_learned_advice(&m.rank[0]), 0);
		copies_until_decided(&m, 1);
		/* Who has decided for all, and knows it. */
		longer.word = oci_learned_advice(&m.rank[0]) ?: oci_learned_advice(&m.rank[1]);
		assert_int_equal(longer.word, slots ? OCI_LEARNED_SLOTS : OCI_LEARNED_AT_ONCE);
		assert_int_equal(oci_learned_look(&longer.word, longer.length, 1, false), slots);
	}
}

/* A small difference is looked at for longer than a large one. */
TEST(doubtful_case_takes_more_copies)
{
	struct machine clear = { .length = LENGTH, .ns = { 200000, 100000 } },
		       doubtful = { .length = LENGTH, .ns = { 120000, 100000 } };
	unsigned int few;

	copies_until_trying(&clear);
	copies_until_trying(&doubtful);
	few = copies_until_decided(&clear, 16);
	assert_in_range(copies_until_decided(&doubtful, 16), few + 5, 112);
}

/* Of the first hundred copies of megabytes most go the quicker way. */
TEST(large_copies_are_settled_within_few_calls)
{
	for (int slots = 0; slots < 2; slots++) {
		struct machine m = { .length = OCI_LEARNED_EMPTIES,
				     .ns = { slots ? 200000 : 100000, slots ? 100000 : 200000 } };

		for (int n = 0; n < 110; n++)
			copy(&m, 1);
		assert_in_range(m.copies[!slots], 2, slots ? 28 : 12);
	}
}

TEST(slots_are_to_gain_a_fifth)
{
	struct machine m = { .length = LENGTH, .ns = { 100000, 85000 } };
	bool tries;

	copies_until_trying(&m);
	copies_until_decided(&m, 1);
	assert_false(oci_learned_way(&m.rank[0], &m.word, LENGTH, m.seq + 1, false, &tries));
	assert_false(tries);
}

/* Soon at first, as nothing was warm; later after thousands of copies, as ranks may be moved. */
TEST(what_was_found_is_looked_at_again)
{
	static const unsigned int after[] = { 32, 256, 2048, 4096, 4096 };
	struct machine m = { .length = LENGTH, .ns = { 100000, 50000 } };

	for (unsigned int n = 0; n < 5; n++) {
		assert_in_range(copies_until_trying(&m), after[n] - 2, after[n]);
		copies_until_decided(&m, 1);
	}
	/* So often that their number begins anew. */
	for (unsigned int n = 5; n < 64; n++) {
		copies_until_trying(&m);
		copies_until_decided(&m, 1);
	}
	assert_in_range(copies_until_trying(&m), 256 - 2, 256);
	m.ns[true] = 300000;
	copies_until_decided(&m, 1);
	memset(m.copies, 0, sizeof(m.copies));
	for (int i = 0; i < 1000; i++)
		copy(&m, 1);
	assert_int_equal(m.copies[true], 0);
}

static int started(struct oc_team *team, const struct oc_call *call)
{
	struct oc_request *request;

	return oc_start(team, call, &request) ?: oc_wait(request);
}

/* Ranks that share a CPU try nothing, and a pair without cma has no choice. */
static bool has_choice(const struct oc_team *team)
{
	return !team->team.oversubscribed &&
	       team->team.member[!oc_team_rank(team)].mechanism == OCI_MECH_CMA &&
	       oci_options()->mechanism == OCI_WAY_AUTO;
}

static uint8_t *word_of(struct oc_team *team, enum oc_collective collective, bool nonblocking)
{
	return &team->team.member[0]
			.region->card.ways[oci_learned_index(collective, BYTES, nonblocking)];
}

/* Real ranks: each byte is right while they try, and when they have found out. */
static int tried_out(struct oc_team *team, enum oc_collective collective, bool nonblocking)
{
	static uint8_t send[2 * BYTES], recv[2 * BYTES];
	uint32_t rank = oc_team_rank(team);
	bool by_both = collective == OC_BCAST;
	struct oc_call call = { .collective = collective,
				.send = by_both && rank ? recv : send,
				.recv = recv,
				.bytes = BYTES };

	for (unsigned int n = 0; n < 150; n++) {
		for (uint32_t to = 0; to < 2; to++)
			oct_fill(send + to * BYTES, n, rank, to, BYTES);
		memset(recv, 0, sizeof(recv));
		if (nonblocking ? started(team, &call) : oc_collective(team, &call))
			return 1;
		for (uint32_t from = 0; from < (by_both ? rank : 2); from++)
			if (!oct_filled(recv + from * BYTES, n, from, by_both ? 0 : rank, BYTES))
				return 2;
	}
	/* They have looked. */
	return !has_choice(team) || __atomic_load_n(word_of(team, collective, nonblocking),
						    __ATOMIC_RELAXED) > OCI_LEARNED_SLOTS ?
		       0 :
		       3;
}

TEST_ON_RANKS(both_ways_bring_the_same_bytes, 2)
{
	return tried_out(team, OC_ALLTOALL, false);
}

TEST_ON_RANKS(both_ways_bring_the_same_bytes_when_both_ends_copy, 2)
{
	return tried_out(team, OC_BCAST, false);
}

TEST_ON_RANKS(nonblocking_calls_try_both_ways, 2)
{
	return tried_out(team, OC_ALLTOALL, true) ?: tried_out(team, OC_BCAST, true);
}

/* Of which ways the calls were that this rank has counted. */
static unsigned int ways_gone(const struct oc_team *team)
{
	unsigned int ways = 0;

	for (unsigned int i = 0; i < team->counts.used; i++)
		ways |= team->counts.count[i].key >> 16 & 0xff;
	return ways;
}

/* Before the first look: a block of one piece is copied at once, one of many through slots. */
TEST_ON_RANKS(what_has_gaps_goes_through_slots_at_first, 2)
{
	enum { PIECES = 100, PIECE = BYTES / PIECES };
	static uint8_t memory[2 * BYTES];
	static struct oc_piece pieces[PIECES + 1];
	const struct oc_layout layout = { pieces, PIECES };
	struct oc_call call = { .collective = OC_BCAST,
				.send = memory,
				.recv = memory,
				.bytes = PIECES * PIECE };
	uint32_t rank = oc_team_rank(team);

	for (unsigned int i = 0; i <= PIECES; i++)
		pieces[i] = (struct oc_piece){ (size_t)i * PIECE, memory + (size_t)2 * i * PIECE };
	if (oc_collective(team, &call))
		return 1;
	if (has_choice(team) && ways_gone(team) & OCI_MOVED_SHM)
		return 2;
	/* Rank 0's alone. */
	if (!rank)
		call.send_layout = call.recv_layout = &layout;
	for (unsigned int i = 0; !rank && i < PIECES; i++)
		oct_fill((uint8_t *)pieces[i].address, i, 0, 0, PIECE);
	if (oc_collective(team, &call))
		return 3;
	if (rank && has_choice(team) && !(ways_gone(team) & OCI_MOVED_SHM))
		return 4;
	for (unsigned int i = 0; rank && i < PIECES; i++)
		if (!oct_filled(memory + (size_t)i * PIECE, i, 0, 0, PIECE))
			return 5;
	return 0;
}

static uint8_t buffer[BYTES];
static const struct oc_call broadcast = {
	.collective = OC_BCAST, .send = buffer, .recv = buffer, .bytes = BYTES
};

/* Makes the team. As is decided: what is copied goes through slots, where there is a choice. */
static int choose_slots(struct oc_team *team)
{
	if (oc_collective(team, &broadcast))
		return 1;
	if (has_choice(team))
		__atomic_store_n(word_of(team, OC_BCAST, true), OCI_LEARNED_SLOTS,
				 __ATOMIC_RELAXED);
	return 0;
}

/* Who computes between the start of a call and its end cannot help: the other one copies alone. */
TEST_ON_RANKS(owner_who_is_away_holds_nobody_up, 2)
{
	uint32_t rank = oc_team_rank(team);
	struct oc_request *request;

	if (choose_slots(team))
		return 1;
	for (unsigned int n = 0; n < 3; n++) {
		if (!rank)
			oct_fill(buffer, n, 0, 0, BYTES);
		/* The others come when the root is away: while it is in oc_start() they may ask it.
		 */
		if (rank)
			oct_meet();
		if (oc_start(team, &broadcast, &request))
			return 1;
		if (!rank) {
			oct_meet();
			oct_meet();
		}
		if (oc_wait(request) || !oct_filled(buffer, n, 0, 0, BYTES))
			return 2;
		if (rank)
			oct_meet();
	}
	return 0;
}

static uint64_t newest_request(const struct oc_team *team)
{
	uint64_t newest = 0, request;

	for (uint64_t lane = 0; lane < OCI_LANES; lane++) {
		request = oci_load_relaxed(&oci_team_lane(&team->team, 1, lane)->ack.request);
		newest = request > newest ? request : newest;
	}
	return newest;
}

/* Who has been asked for help, and computes then, is not waited for: the request is withdrawn. */
TEST_ON_RANKS(owner_who_leaves_when_asked_holds_nobody_up, 2)
{
	uint32_t rank = oc_team_rank(team);
	struct oc_request *request;
	uint64_t before;
	int done;

	if (choose_slots(team))
		return 1;
	for (unsigned int n = 0; n < 20; n++) {
		if (!rank)
			oct_fill(buffer, n, 0, 0, BYTES);
		before = newest_request(team);
		done = 0;
		oct_meet();
		if (oc_start(team, &broadcast, &request))
			return 1;
		if (!rank) {
			while (newest_request(team) == before && !done)
				done = oc_test(request);
			oct_meet();
		}
		if (done ? done < 0 : oc_wait(request))
			return 1;
		if (!oct_filled(buffer, n, 0, 0, BYTES))
			return 2;
		if (rank)
			oct_meet();
	}
	return 0;
}
