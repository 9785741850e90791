/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Algorithms by hierarchy on real processes, some of which sit in one of two packages, whatever
 * this machine has. Every root; right bytes; and the ranks did see a hierarchy.
 */
#include <pthread.h>
#include <stdlib.h>

#include "api/engine.h"
#include "support/call.h"
#include "support/fork_team.h"
#include "support/test.h"

/* Of the next child: its rank, as ranks are forked in order. */
static uint32_t next_rank;

static void before_fork(void)
{
	next_rank++;
}

/* In place of oci_topo_self(): ranks 0, 1, 3, 4 of six sit in packages 0, 1, 1, 0; the others may
 * run anywhere. */
bool __wrap_oci_topo_self(struct oci_topo_place *place, uint32_t ranks);
bool __wrap_oci_topo_self(struct oci_topo_place *place, uint32_t ranks)
{
	static const uint32_t packages[] = { 0, 1, OCI_TOPO_NOWHERE, 1, 0, OCI_TOPO_NOWHERE };
	uint32_t package = packages[(next_rank - 1) % 6];

	(void)ranks;
	*place = (struct oci_topo_place){ package, package, package, package, package, 1 };
	return true;
}

static int every_root(struct oc_team *team, void *arg)
{
	static const struct {
		enum oc_collective collective;
		const char *algorithm;
	} all[] = {
		{ OC_BARRIER, "tree" },
		{ OC_BCAST, "hierarchical:4096" },
		{ OC_BCAST, "scatter-ring-near" },
		{ OC_REDUCE, "hierarchical:4096" },
		{ OC_ALLREDUCE, "hierarchical:4096" },
		{ OC_ALLGATHER, "gather-hierarchical:4096" },
		{ OC_ALLGATHER, "ring-near" },
	};
	static const size_t sizes[] = { 4, 0, 12000, 200000 };
	struct oct_memory memory = { 0 };
	uint32_t size = oc_team_size(team);
	unsigned int n = 0;

	(void)arg;
	for (unsigned int c = 0; c < sizeof(all) / sizeof(all[0]); c++) {
		enum oc_collective collective = all[c].collective;
		bool reduces = oci_is_reduction(collective);
		unsigned int kinds = reduces ? 2 : 1;

		if (oc_team_force(team, oci_collective_name(collective), all[c].algorithm))
			return 3;
		for (unsigned int i = 0; i < 4 * 2 * kinds * size; i++, n++) {
			struct oct_spec spec = {
				.collective = collective,
				.n = n,
				.bytes = sizes[i % 4],
				.op = i / 8 % 2 ? &oct_composition : &oct_sum,
				.root = oci_is_rooted(collective) ? i / 8 / kinds % size : 0,
				.in_place = reduces && n % 2,
			};

			if (oct_call_run(team, &memory, &spec))
				return 1;
		}
	}
	oct_memory_free(&memory);
	/* Is it what the test is about? */
	return !team->team.hierarchy || team->team.hierarchy->in_order ? 2 : 0;
}

static void run(const char *mechanism)
{
	setenv("ONECOPY_MECHANISM", mechanism, 1);
	for (uint32_t ranks = 7; ranks >= 4; ranks -= OCT_ONE_IN) {
		next_rank = 0;
		assert_int_equal(oct_fork_team(ranks, -1, every_root, NULL), 0);
	}
}

TEST(ranks_of_two_packages_by_single_copies)
{
	run("auto");
}

TEST(ranks_of_two_packages_through_shared_memory)
{
	run("shm");
}

int main(void)
{
	pthread_atfork(before_fork, NULL, NULL);
	return oct_test_run(NULL, NULL);
}
