/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The v-variants on real processes, byte by byte: sizes around all thresholds, different for each
 * pair, with single copies and without; and calls whose ranks disagree.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "api/engine.h"
#include "model/model.h"
#include "support/call.h"
#include "support/fork_team.h"
#include "support/test.h"

static enum oc_collective all[OC_COLLECTIVES];
static unsigned int count_of_all;

__attribute__((constructor)) static void find_all(void)
{
	for (int c = 0; c < OC_COLLECTIVES; c++)
		if (oci_is_v((enum oc_collective)c))
			all[count_of_all++] = (enum oc_collective)c;
}

static int one_call(struct oc_team *team, unsigned int n, bool in_place)
{
	struct oct_spec spec = { .collective = all[n % count_of_all],
				 .n = n,
				 .root = n / count_of_all % oc_team_size(team),
				 .in_place = in_place };

	return oct_call_run(team, NULL, &spec);
}

/* Every algorithm in turn, and with other roots than the time before. */
static int force_one(struct oc_team *team, unsigned int n)
{
	enum oc_collective c = all[n % count_of_all];
	unsigned int count = 0;

	while (oci_algorithm(c, count))
		count++;
	return oc_team_force(
		team, oci_collective_name(c),
		oci_algorithm(c, (n / count_of_all + n / (count_of_all * 4)) % count)->name);
}

static int many_calls(struct oc_team *team, void *arg)
{
	const unsigned int *calls = arg;
	const char *mechanism = getenv("ONECOPY_MECHANISM");

	for (unsigned int n = 0; n < *calls; n++) {
		if (force_one(team, n) || one_call(team, n, false) || one_call(team, n, true))
			return 1;
	}
	/* Is it what the test is about? */
	if (oc_team_size(team) > 1 && mechanism && !strcmp(mechanism, "shm"))
		return team->team.single_copy ? 2 : 0;
	return 0;
}

static void run_all(const char *mechanism)
{
	static const uint32_t ranks[] = { 1, 2, 3, 5, OCT_BLOCKS_RANKS };

	setenv("ONECOPY_MECHANISM", mechanism, 1);
	for (unsigned int i = 0; i < sizeof(ranks) / sizeof(ranks[0]); i++) {
		unsigned int calls = ranks[i] > 5 ? 30 : 300 / OCT_ONE_IN;

		assert_int_equal(oct_fork_team(ranks[i], -1, many_calls, &calls), 0);
	}
}

TEST(v_variants_on_1_2_3_5_33_ranks)
{
	run_all("auto");
}

TEST(v_variants_without_single_copies)
{
	run_all("shm");
}

/* Rank 1 sends `more` bytes than rank 0 expects; memory behind the block must stay as it is. */
static int disagree(struct oc_team *team, void *arg)
{
	const size_t *bytes = arg; /* expected, sent */
	uint32_t me = oc_team_rank(team);
	uint8_t *send = malloc(100000), *recv = malloc(100000);
	struct oc_block blocks[2] = { { 0, 8 }, { 8, me ? 8 : bytes[0] } };
	struct oc_call call = { .collective = OC_GATHERV,
				.send = send,
				.recv = recv,
				.bytes = me ? bytes[1] : 8,
				.recv_blocks = blocks };
	int result;

	/* Calls in which they agree leave their lengths in each lane. */
	blocks[1].bytes = bytes[0];
	call.bytes = me ? bytes[0] : 8;
	for (unsigned int i = 0; i < OCI_LANES; i++)
		if (oc_collective(team, &call))
			return 4;
	blocks[1].bytes = me ? 8 : bytes[0];
	call.bytes = me ? bytes[1] : 8;
	memset(recv, 1, 100000);
	memset(send, 2, 100000);
	result = oc_collective(team, &call);
	/* Rank 1 may have gone on; rank 0 lives until its error is told. */
	oct_meet();
	for (size_t i = 8 + bytes[0]; i < 100000; i++) {
		if (recv[i] != 1)
			return 3;
	}
	free(send);
	free(recv);
	if (!me && bytes[0] <= 16384)
		return result == -EPROTO && strstr(oc_team_error(team), "mismatched gatherv") ? 0 :
												1;
	/* What lies in a slot was given when the other looks. */
	return !me || result == -EPROTO || (!result && bytes[1] < 8192) ? 0 : 2;
}

TEST(blocks_of_different_sizes_are_an_error_not_a_crash)
{
	/* Each end thinks of another way; both of a single copy; both of a slot, which ends where
	 * what the sender has put there does. */
	static const size_t cases[][2] = { { 100, 20000 },
					   { 30000, 40000 },
					   { 8000, 1000 },
					   { 8000, 0 } };

	setenv("ONECOPY_MECHANISM", "auto", 1);
	for (unsigned int i = 0; i < 4; i++)
		assert_int_equal(oct_fork_team(2, -1, disagree, (void *)cases[i]), 0);
}

/* By the whole of a Reduce_scatter, as the call itself is, not by a rank's own part. */
static int serves(struct oc_team *team, void *arg)
{
	static const size_t parts[][2] = { { 10000, 70000 }, { 40000, 40000 }, { 100, 20000 } };
	static const struct oc_op op = { .apply = oct_add, .bytes = 1, .commutative = 1 };
	uint32_t me = oc_team_rank(team);
	uint8_t *send = calloc(1, 80000), *recv = calloc(1, 80000);

	(void)arg;
	/* What was left is remembered, and does not hold for what comes between. */
	for (unsigned int turn = 0; turn < 4 * 3; turn++) {
		unsigned int i = turn / 2 % 3;
		const struct oc_block blocks[] = { { 0, parts[i][0] },
						   { parts[i][0], parts[i][1] } };
		const struct oc_call call = { .collective = OC_REDUCE_SCATTER,
					      .send = send,
					      .recv = recv,
					      .bytes = parts[i][me],
					      .recv_blocks = blocks,
					      .op = &op };
		bool left = parts[i][0] + parts[i][1] == 80000;

		if (oc_team_serves(team, &call) == left ||
		    oc_collective(team, &call) != (left ? OC_HAND_BACK : 0))
			return 1;
		if (left && oc_team_abandon(team, &call, -ENOMEM) != OC_HAND_BACK)
			return 2;
	}
	free(send);
	free(recv);
	return 0;
}

TEST(what_a_tuning_file_leaves_to_the_mpi_is_known_before_the_call)
{
	char path[] = "/tmp/oc_blocks_XXXXXX";
	struct oci_machine machine;
	int fd = mkstemp(path), failed;

	oci_machine_self(&machine);
	dprintf(fd,
		"{\"onecopy\": \"tuning\", \"version\": 1, \"name\": \"cells\", \"machine\": "
		"{\"host\": \"*\", \"cpu\": \"%s\", \"cpus\": %u, \"page_bytes\": %zu}, "
		"\"terms\": {}, \"cells\": [{\"collective\": \"reduce_scatter\", "
		"\"bytes\": [\"64K\", \"1M\"], \"algorithm\": \"mpi\"}]}\n",
		machine.cpu, machine.cpus, machine.page_bytes);
	close(fd);
	setenv("ONECOPY_TUNING", path, 1);
	setenv("ONECOPY_MECHANISM", "auto", 1);
	failed = oct_fork_team(2, -1, serves, NULL);
	unsetenv("ONECOPY_TUNING");
	unlink(path);
	assert_int_equal(failed, 0);
}

TEST(calls_without_their_tables_are_refused)
{
	struct oc_team *team;
	uint8_t byte = 0;
	struct oc_block block = { 0, 1 };

	assert_int_equal(oct_local_teams(1, &team), 0);
	for (unsigned int i = 0; i < count_of_all; i++) {
		struct oc_call call = { .collective = all[i],
					.send = &byte,
					.recv = &byte + 1,
					.bytes = 1 };

		assert_int_equal(oc_collective(team, &call), -EINVAL);
		call.recv = OC_IN_PLACE;
		call.recv_blocks = &block;
		assert_int_equal(oc_collective(team, &call), -EINVAL);
	}
	assert_int_equal(oc_team_destroy(team), 0);
}

/* What another rank than the root gives for the side that is the root's alone says nothing. */
static int in_place_beside_the_root(struct oc_team *team, void *arg)
{
	uint32_t me = oc_team_rank(team);
	struct oc_block blocks[2] = { { 0, 8 }, { 8, 8 } };
	uint8_t all[16] = { 0 }, mine[8] = { 0 };
	struct oc_call call = { .collective = OC_GATHERV, .send = mine, .bytes = 8 };

	(void)arg;
	memset(mine, (int)me + 1, 8);
	call.recv = me ? OC_IN_PLACE : all;
	call.recv_blocks = me ? NULL : blocks;
	if (oc_collective(team, &call) || (!me && (all[7] != 1 || all[8] != 2)))
		return 1;
	call = (struct oc_call){ .collective = OC_SCATTERV, .recv = mine, .bytes = 8 };
	call.send = me ? OC_IN_PLACE : all;
	call.send_blocks = me ? NULL : blocks;
	memset(mine, 0, 8);
	return oc_collective(team, &call) || mine[7] != me + 1;
}

TEST(in_place_counts_for_the_root_alone)
{
	assert_int_equal(oct_fork_team(2, -1, in_place_beside_the_root, NULL), 0);
}

TEST(a_collective_that_does_not_exist_is_answered_with_those_that_do)
{
	struct oc_team *team;

	assert_int_equal(oct_local_teams(1, &team), 0);
	assert_int_equal(oc_team_force(team, "nonsense", "auto"), -EINVAL);
	for (unsigned int c = 0; c < OC_COLLECTIVES; c++)
		assert_non_null(strstr(oc_team_error(team), oci_collective_name(c)));
	assert_int_equal(oc_team_destroy(team), 0);
}

/*
 * Ranks 0 and 1 are neighbors, and 2 is nobody's: they make as many calls as there are lanes before
 * it makes its first, and take what each other gives, whichever way the blocks go.
 */
static int neighbors_alone(struct oc_team *team, void *arg)
{
	volatile unsigned int *over = arg; /* ranks 0 and 1 are through; shared */
	uint32_t me = oc_team_rank(team);
	uint8_t *send = malloc(100000), *recv = malloc(100000);
	struct oc_block none[3] = { { 0, 0 } }, blocks[3] = { { 0, 0 } };
	struct oc_call call = { .collective = OC_BARRIER };
	int failed = oc_collective(team, &call);

	call = (struct oc_call){ .collective = OC_NEIGHBOR_ALLTOALLV,
				 .send = send,
				 .recv = recv,
				 .send_blocks = me < 2 ? blocks : none,
				 .recv_blocks = me < 2 ? blocks : none };
	while (me == 2 && __atomic_load_n(over, __ATOMIC_ACQUIRE) < 2)
		usleep(100);
	for (unsigned int n = 0; n < OCI_LANES - 1 && !failed; n++) {
		blocks[1 - me % 2].bytes = (size_t[]){ 8, 3000, 90000 }[n % 3];
		memset(send, (int)(16 * n + me), 100000);
		failed = oc_collective(team, &call) ||
			 (me < 2 &&
			  !oct_all(recv, (uint8_t)(16 * n + 1 - me), blocks[1 - me].bytes));
	}
	if (me < 2)
		__atomic_fetch_add(over, 1, __ATOMIC_RELEASE);
	oct_meet();
	free(send);
	free(recv);
	return failed;
}

TEST(neighbors_do_not_wait_for_who_is_none)
{
	unsigned int *over =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	setenv("ONECOPY_MECHANISM", "auto", 1);
	assert_int_equal(oct_fork_team(3, -1, neighbors_alone, over), 0);
	munmap(over, 4096);
}
