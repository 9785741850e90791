/* SPDX-License-Identifier: BSD-3-Clause */
/* Teams of real processes: death, disagreement, refusal, thousands of them, wrong arguments: all
 * that needs ranks that end or disagree, so more than 500 lines. */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "api/engine.h"
#include "lab/harness/clock.h"
#include "support/fork_team.h"
#include "support/process.h"
#include "support/test.h"

struct death {
	double at, least; /* until it was heard of */
};

static int rank_1_dies(struct oc_team *team, void *arg)
{
	enum { BARRIERS = 100, BARRIERS_TAKEN_OFF = 10 };
	struct death *death = arg;
	double late, waited, barrier_s;

	if (oct_barrier(team))
		return 1;
	barrier_s = now_s();
	for (int i = 0; i < BARRIERS; i++) {
		if (oct_barrier(team))
			return 1;
	}
	barrier_s = (now_s() - barrier_s) / BARRIERS;
	waited = oct_waited_s();
	if (oct_barrier(team))
		return 1;
	if (oc_team_rank(team) == 1) {
		death->at = now_s();
		raise(SIGKILL);
	}
	if (oct_barrier(team) != -EOWNERDEAD || oc_team_dead_rank(team) != 1)
		return 2;
	/* The dead rank too had to wait for a CPU, to die, and others, to tell of it. */
	late = oct_given_s(death->at, waited) - BARRIERS_TAKEN_OFF * barrier_s;
	if (late > 1.0)
		return 3;
	if (oc_team_rank(team) == 0 && late < death->least)
		death->least = late;
	/* Poisoned: the same error at once. */
	return oct_barrier(team) == -EOWNERDEAD && strstr(oc_team_error(team), "rank 1") ? 0 : 4;
}

TEST(a_dead_rank_is_named_by_all_survivors)
{
	struct death *death = mmap(NULL, sizeof(*death), PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	death->least = INFINITY;
	assert_int_equal(oct_fork_team(5, 1, rank_1_dies, death), 0);
	/* 100 ms are promised. A busy machine makes some later, not all of many. */
	for (int i = 0; i < 3 || (i < 50 && death->least > 0.1); i++)
		assert_int_equal(oct_fork_team(2, 1, rank_1_dies, death), 0);
	assert_true(death->least <= 0.1);
	munmap(death, sizeof(*death));
}

struct doomed {
	enum oci_team_state last; /* rank 1 dies in this state */
	bool is_late;		  /* when the others have heard it; else rank 0 comes after that */
	uint32_t gone, over;	  /* shared */
};

static void await(const uint32_t *word, uint32_t value)
{
	while (__atomic_load_n(word, __ATOMIC_ACQUIRE) < value)
		usleep(200);
}

/* Rank 0 looks again only when rank 1 is a zombie; rank 2 may have heard all that rank 1 said. */
static int rank_1_dies_in_creation(struct oc_team *first, void *arg)
{
	struct doomed *d = arg;
	struct oc_bootstrap bootstrap = oct_again(first);
	struct oc_team *second;
	int result = 0;

	if (oc_team_create(&second, &bootstrap) || oc_team_progress(second))
		return 1;
	if (oc_team_rank(first) == 1) {
		while (second->team.state < d->last)
			oc_team_progress(second);
		__atomic_store_n(&d->gone, 1, __ATOMIC_RELEASE);
		usleep(20000); /* rank 2 hears it */
		raise(SIGKILL);
	}
	if (oc_team_rank(first) == 0) {
		if (d->is_late)
			while (second->team.state < OCI_TEAM_HERE)
				oc_team_progress(second);
		await(&d->gone, 1);
		usleep(100000);
	}
	while (!(result = oc_team_progress(second)))
		;
	if (result == 1)
		result = oct_barrier(second) == -EOWNERDEAD && oc_team_dead_rank(second) == 1 ? 0 :
												2;
	/* The others read this rank's card and its region until then. */
	__atomic_add_fetch(&d->over, 1, __ATOMIC_ACQ_REL);
	await(&d->over, 2);
	return result;
}

TEST(a_rank_that_dies_in_creation_is_named_by_all)
{
	static const struct {
		enum oci_team_state last;
		bool is_late;
	} cases[] = { { OCI_TEAM_HELLO, false },
		      { OCI_TEAM_HERE, false },
		      { OCI_TEAM_HERE, true } };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct doomed *d = mmap(NULL, sizeof(*d), PROT_READ | PROT_WRITE,
					MAP_SHARED | MAP_ANONYMOUS, -1, 0);

		d->last = cases[i].last;
		d->is_late = cases[i].is_late;
		assert_int_equal(oct_fork_team(3, 1, rank_1_dies_in_creation, d), 0);
		munmap(d, sizeof(*d));
	}
}

static int roots_that_do_not_match(struct oc_team *team, void *heard)
{
	char buffer[200] = { 0 };
	int result;

	if (oct_barrier(team))
		return 1;
	result = oct_bcast(team, buffer, sizeof(buffer), oc_team_rank(team) == 0 ? 2 : 1);
	/* Ranks 1 and 2 agree, and nobody needs rank 0 for that, but who has to wait for long hears
	 * of rank 0's failure. They live on, as MPI ranks do. */
	oct_meet();
	if (oc_team_rank(team) != 0) {
		__atomic_fetch_or((int *)heard, result == -EPROTO, __ATOMIC_RELAXED);
		return result == -EPROTO ? 0 : result;
	}
	return result == -EPROTO && strstr(oc_team_error(team), "root 2") ? 0 : 2;
}

/* In some try none of them waits for so long. */
TEST(mismatched_roots_are_an_error_not_a_hang)
{
	int *heard = mmap(NULL, sizeof(*heard), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			  -1, 0);
	int tries = 0;

	do {
		*heard = 0;
		assert_int_equal(oct_fork_team(3, -1, roots_that_do_not_match, heard), 0);
	} while (*heard && ++tries < 50);
	assert_int_equal(*heard, 0);
	munmap(heard, sizeof(*heard));
}

/* An inner rank of a tree waits before it says what it called. */
TEST_ON_RANKS(a_rank_that_has_said_nothing_yet_says_what_it_called, 4)
{
	static char buffer[65536], received[65536];
	uint32_t rank = oc_team_rank(team);
	const struct oc_call other = {
		.collective = OC_ALLGATHER,
		.bytes = sizeof(buffer) / 4,
		.send = buffer,
		.recv = received,
	};
	int result;

	if (oc_team_force(team, "bcast", "knomial:1") || oct_barrier(team))
		return 1;
	result = rank ? oct_bcast(team, buffer, sizeof(buffer), 0) : oc_collective(team, &other);
	oct_meet();
	if (rank != 2)
		return 0;
	return result == -EPROTO && strstr(oc_team_error(team), "rank 2 called bcast") ? 0 : 2;
}

/* Rank 0 gives the length `mine` where the root, rank 1, and rank 2 give `theirs`. */
static int bcast_of_two_lengths(struct oc_team *team, size_t mine, size_t theirs)
{
	static uint8_t buffer[5000];
	uint32_t rank = oc_team_rank(team);
	int result, expected = rank ? 0 : -EMSGSIZE;

	memset(buffer, rank == 1 ? 7 : 9, sizeof(buffer));
	result = oct_bcast(team, buffer, rank ? theirs : mine, 1);
	if (result != expected)
		return 1;
	if (!rank &&
	    (!strstr(oc_team_error(team), "rank 1 called bcast (root 1, ") || buffer[0] != 9))
		return 2;
	return rank && buffer[theirs - 1] != 7 ? 3 : 0;
}

/* More often than there are lanes: the histories of the calls stay alike, too. */
TEST_ON_RANKS(reader_of_another_length_than_the_root_fails_alone, 3)
{
	static const struct {
		const char *name;
		size_t bytes[2];
	} algorithms[] = { { "inline", { 4, 40 } }, { "cico", { 600, 5000 } } };
	int wrong = 0;

	for (size_t a = 0; a < sizeof(algorithms) / sizeof(algorithms[0]); a++) {
		const size_t *bytes = algorithms[a].bytes;

		if (oc_team_force(team, "bcast", algorithms[a].name))
			return 4;
		for (int i = 0; i < 3 * OCI_LANES && !wrong; i++)
			wrong = bcast_of_two_lengths(team, bytes[i % 2], bytes[1 - i % 2]);
		for (int i = 0; i < 3 * OCI_LANES && !wrong; i++)
			wrong = oct_barrier(team);
	}
	return wrong;
}

TEST_ON_RANKS(request_of_another_length_than_the_root_fails_alone, 2)
{
	char buffer[40] = { 0 };
	struct oc_call call = { .collective = OC_BCAST,
				.send = buffer,
				.bytes = oc_team_rank(team) ? 40 : 4 };
	struct oc_request *request;

	if (oc_team_force(team, "bcast", "inline") || oc_start(team, &call, &request))
		return 1;
	if (oc_wait(request) != (oc_team_rank(team) ? -EMSGSIZE : 0))
		return 2;
	return oct_barrier(team);
}

TEST_ON_RANKS(algorithm_that_cannot_run_on_so_many_ranks_is_refused, 4)
{
	int value = (int)oc_team_rank(team), all[4] = { 0 };
	struct oc_call call = { .collective = OC_ALLGATHER,
				.send = &value,
				.recv = all,
				.bytes = sizeof(value) };

	if (oc_team_force(team, "allgather", "ring-neighbor:2") != -EINVAL ||
	    !strstr(oc_team_error(team), "no divisor in common with the number of ranks"))
		return 1;
	if (oc_team_force(team, "allgather", "ring-neighbor:3") || oct_barrier(team) ||
	    oc_collective(team, &call))
		return 2;
	return all[0] == 0 && all[1] == 1 && all[2] == 2 && all[3] == 3 ? 0 : 3;
}

TEST_ON_RANKS(different_collectives_are_an_error_that_names_both, 2)
{
	int value = 0;
	struct oc_call call = { .collective = OC_ALLGATHER,
				.send = &value,
				.recv = (int[2]){ 0 },
				.bytes = sizeof(value) };
	int result = oc_team_rank(team) == 0 ? oct_barrier(team) : oc_collective(team, &call);

	if (result != -EPROTO)
		return 1;
	return strstr(oc_team_error(team), "barrier") || strstr(oc_team_error(team), "gave up") ?
		       0 :
		       2;
}

/* Rank 1 destroys its second team and lives on; the others call once more. */
TEST_ON_RANKS(a_rank_that_has_left_is_an_error_not_a_hang, 2, 3)
{
	struct oc_bootstrap bootstrap = oct_again(team);
	struct oc_team *second;
	int result = 0;

	if (oc_team_create(&second, &bootstrap) || oct_barrier(second))
		return 1;
	if (oc_team_rank(team) != 1) {
		/* Who hears of it from another rank says whose calls differ. */
		if (oct_barrier(second) != -EPROTO)
			result = 2;
		else if (!strstr(oc_team_error(second), "rank 1 has left the team") &&
			 !strstr(oc_team_error(second), "the calls of ranks"))
			result = 3;
	}
	oc_team_destroy(second);
	return oct_barrier(team) ? 4 : result;
}

/* Both only post and look at nobody; the histories of their calls tell a few calls later. */
TEST_ON_RANKS(two_roots_of_one_bcast_are_an_error_soon, 2)
{
	char buffer[200] = { 0 };
	int result;

	if (oct_barrier(team) || oct_bcast(team, buffer, sizeof(buffer), oc_team_rank(team)))
		return 1;
	for (int i = 0; i < 3 * OCI_LANES; i++) {
		result = oct_barrier(team);
		if (!result)
			continue;
		oct_meet();
		return result == -EPROTO ? 0 : 2;
	}
	return 3;
}

/* Again and again, through slots that near ranks reuse early. */
TEST_ON_RANKS(two_roots_among_near_ranks_are_an_error_soon, 2)
{
	static char buffer[1000];

	oct_made(team);
	team->team.common = OCI_TOPO_L3;
	for (int i = 0; i < 4 * OCI_LANES; i++) {
		int result = oct_bcast(team, buffer, sizeof(buffer), oc_team_rank(team)) ?:
				     oct_barrier(team);

		if (!result)
			continue;
		oct_meet();
		return result == -EPROTO ? 0 : 2;
	}
	return 3;
}

/* Made and left in a loop, with a collective in each; memory and descriptors come back. */
TEST_ON_RANKS(memory_and_files_of_left_teams_come_back, 3)
{
	unsigned int files = 0;
	size_t bytes = 0;

	/* Brings it up: what it maps and keeps is there from now on. */
	if (oct_barrier(team))
		return 1;
	for (int i = 0; i < 500; i++) {
		struct oc_bootstrap bootstrap = oct_again(team);
		struct oc_team *next;

		if (oc_team_create(&next, &bootstrap) || oct_barrier(next) || oc_team_destroy(next))
			return 1;
		/* The others may be one next behind, never more: their barrier was needed. */
		if (i == 10) {
			files = oct_descriptors();
			bytes = oci_segment_live_bytes();
		}
	}
	if (oct_barrier(team))
		return 2;
	oci_team_collect();
	if (oci_segment_live_bytes() > bytes + sizeof(struct oci_region)) {
		fprintf(stderr, "%zu bytes, were %zu\n", oci_segment_live_bytes(), bytes);
		return 3;
	}
	return oct_descriptors() == files ? 0 : 4;
}

TEST_ON_RANKS(a_thousand_teams_live_at_once_and_share_slots, 2)
{
	static struct oc_team *teams[1000];

	for (unsigned int i = 0; i < 1000; i++) {
		struct oc_bootstrap bootstrap = oct_again(team);

		if (oc_team_create(&teams[i], &bootstrap) || oct_barrier(teams[i]))
			return 1;
	}
	for (unsigned int i = 0; i < 1000; i++) {
		char block[8192] = { 0 };

		if (oct_bcast(teams[i], block, sizeof(block), i % 2))
			return 2;
	}
	return 0;
}

static void add_int(void *context, const void *in, void *inout, size_t count)
{
	(void)context;
	for (size_t i = 0; i < count; i++)
		((int *)inout)[i] += ((const int *)in)[i];
}

static int add_ranks(struct oc_team *team, void *arg)
{
	struct oc_op op = { .apply = add_int, .bytes = sizeof(int), .commutative = 1 };
	int mine = 1 << oc_team_rank(team), sum = 0;
	struct oc_call call = { .collective = OC_ALLREDUCE,
				.send = &mine,
				.recv = &sum,
				.bytes = sizeof(int),
				.op = &op };

	(void)arg;
	for (int i = 0; i < 100; i++) {
		if (oc_collective(team, &call) || sum != (1 << oc_team_size(team)) - 1)
			return 1;
	}
	return 0;
}

TEST(children_of_a_process_with_teams_make_their_own)
{
	struct oc_team *team;

	assert_int_equal(oct_local_teams(1, &team), 0);
	/* Forked from here: the segment, slots and peers of this process are not theirs. */
	assert_int_equal(oct_fork_team(3, -1, add_ranks, NULL), 0);
	assert_int_equal(oct_barrier(team), 0);
	assert_int_equal(oc_team_destroy(team), 0);
}

static unsigned int released;

static void count_release(void *context)
{
	(void)context;
	released++;
}

/* The others need its message, and its card. */
TEST(a_team_under_creation_is_not_destroyed)
{
	struct oct_board *board = oct_board_create(2);
	struct oc_team *teams[2];

	for (uint32_t r = 0; r < 2; r++) {
		struct oc_bootstrap bootstrap = oct_bootstrap(board, r);

		bootstrap.release = count_release;
		assert_int_equal(oc_team_create(&teams[r], &bootstrap), 0);
		assert_int_equal(oc_team_progress(teams[r]), 0);
	}
	assert_int_equal(oc_team_destroy(teams[0]), -EBUSY);
	for (int i = 0; i < 10; i++)
		for (uint32_t r = 0; r < 2; r++)
			assert_true(oc_team_progress(teams[r]) >= 0);
	for (uint32_t r = 0; r < 2; r++) {
		assert_int_equal(oc_team_progress(teams[r]), 1);
		assert_int_equal(oc_team_destroy(teams[r]), 0);
	}
	assert_int_equal(released, 2);
	oct_board_destroy(board);
}

TEST(wrong_arguments_are_refused_and_change_nothing)
{
	struct oct_board *board = oct_board_create(1);
	struct oc_bootstrap bootstrap = oct_bootstrap(board, 0), bad = bootstrap;
	struct oc_op op = { .bytes = 3, .commutative = 1 };
	struct oc_block block = { .bytes = 4 };
	struct oc_team *team = NULL;
	int value = 7;

	bad.size = 0;
	assert_int_equal(oc_team_create(&team, &bad), -EINVAL);
	bad = bootstrap;
	bad.rank = 1;
	assert_int_equal(oc_team_create(&team, &bad), -EINVAL);
	assert_int_equal(oc_team_create(&team, NULL), -EINVAL);
	assert_null(team);
	assert_int_equal(oc_team_create(&team, &bootstrap), 0);
	assert_int_equal(oc_collective(team, &(struct oc_call){ .collective = 99 }), -EINVAL);
	assert_int_equal(
		oc_collective(team, &(struct oc_call){ .collective = 99, .recv_blocks = &block }),
		-EINVAL);
	assert_int_equal(oc_collective(team, &(struct oc_call){ .collective = OC_BCAST,
								.root = 1,
								.send = &value,
								.bytes = 4 }),
			 -EINVAL);
	assert_non_null(strstr(oc_team_error(team), "root 1"));
	assert_int_equal(
		oc_collective(team, &(struct oc_call){ .collective = OC_BCAST, .bytes = 4 }),
		-EINVAL);
	assert_int_equal(oc_collective(team, &(struct oc_call){ .collective = OC_ALLREDUCE,
								.send = &value,
								.recv = &value,
								.bytes = 4,
								.op = &op }),
			 -EINVAL);
	assert_int_equal(oc_team_force(team, "bcast", "knomial:0"), -EINVAL);
	assert_int_equal(oc_team_force(team, "bcast", "fastest"), -EINVAL);
	assert_non_null(strstr(oc_team_error(team), "scatter-allgather"));
	assert_int_equal(oc_team_force(team, "scattergather", "auto"), -EINVAL);
	assert_int_equal(oc_team_force(team, "bcast", "knomial:3"), 0);
	assert_int_equal(value, 7);
	assert_int_equal(oct_barrier(team), 0);
	assert_int_equal(oc_team_destroy(team), 0);
	oct_board_destroy(board);
}

/* Ranks with different tuning files would choose differently: no team, and all are told why. */
TEST(ranks_that_go_by_different_models_form_no_team)
{
	struct oc_team *teams[2];
	int result[2] = { 0, 0 };

	assert_int_equal(oct_local_begin(2, teams), 0);
	assert_int_equal(teams[0]->team.model_hash, teams[1]->team.model_hash);
	teams[1]->team.model_hash++;
	for (int turn = 0; turn < 100 && !(result[0] && result[1]); turn++) {
		for (uint32_t r = 0; r < 2; r++) {
			if (!result[r])
				result[r] = oc_team_progress(teams[r]);
		}
	}
	for (uint32_t r = 0; r < 2; r++) {
		assert_int_equal(result[r], -EPROTO);
		assert_non_null(strstr(oc_team_error(teams[r]),
				       "rank 1 goes by another cost model than rank 0"));
	}
	assert_int_equal(oct_local_end(2, teams), 0);
}
