/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What ranks find that they share: by their places on the machines of tests/topologies; where these
 * tell nothing, by dictated times of lines, of which all ranks make the same.
 */
#include <stdio.h>

#include "api/engine.h"
#include "lab/topo/machine.h"
#include "support/fork_team.h"
#include "support/test.h"
#include "team/creation.h"

#define MOST 160

static unsigned int looks;

/* Ranks on each `apart`th CPU; `untold`: the last one does not know who shares its caches. */
static enum oci_topo_level on_machine(const char *name, uint32_t ranks, unsigned int apart,
				      bool untold)
{
	static struct oci_region region;
	struct oci_member member[MOST] = { 0 };
	/* Mapped: no two ranks need larger slots. */
	struct oci_team team = { .size = ranks, .member = member, .mapped = true };
	struct oci_topo *topo;
	char path[512];

	snprintf(path, sizeof(path), "%s/tests/topologies/%s.xml", OC_SOURCE_DIR, name);
	assert_int_equal(oci_topo_load(&topo, path), 0);
	for (uint32_t rank = 0; rank < ranks; rank++) {
		uint64_t mask[8] = { 0 };

		mask[rank * apart / 64] |= (uint64_t)1 << (rank * apart % 64);
		oci_topo_place(topo, mask, 8, &member[rank].place);
		member[rank].is_told = !untold || rank + 1 < ranks;
		member[rank].region = &region;
	}
	oci_topo_destroy(topo);
	for (int why = 0; untold && why < 2; why++) {
		unsigned int looked = looks;

		team.may_part = why == 0;
		team.oversubscribed = why == 1;
		assert_int_equal(oci_near_find(&team), OCI_TOPO_MACHINE);
		assert_int_equal(looks, looked);
		team.common = OCI_TOPO_MACHINE;
		assert_false(oci_apart_peer(&team, ranks - 1));
	}
	team.may_part = team.oversubscribed = false;
	team.common = oci_near_find(&team);
	/* Two that share a cache do, whatever the others share. */
	if (!untold && ranks > 1)
		assert_int_equal(
			oci_near_peer(&team, 1),
			oci_topo_near(oci_topo_common(&member[0].place, &member[1].place)));
	if (!untold)
		assert_int_equal(oci_apart_peer(&team, ranks - 1),
				 oci_topo_apart(&member[0].place, &member[ranks - 1].place));
	return team.common;
}

/* The clock's own part is left out: a line of our own cache takes less than one of another's. */
TEST(a_line_that_is_here_takes_no_time)
{
	uint64_t word = 0, least = UINT64_MAX;

	for (int i = 0; i < 1000; i++) {
		uint64_t ns = oci_near_source.line_ns(&word);

		least = ns < least ? ns : least;
	}
	assert_true(least < OCI_NEAR_NS);
}

static uint64_t far_line(const uint64_t *word)
{
	(void)word;
	looks++;
	return 120;
}

static uint64_t near_line(const uint64_t *word)
{
	(void)word;
	/* A few lines are late: most of them count. */
	return ++looks % OCI_LANES < 3 ? 5000 : 20;
}

TEST(places_say_what_all_ranks_share)
{
	static const struct {
		const char *name;
		unsigned int ranks, apart;
		enum oci_topo_level common;
	} row[] = {
		{ "ig-8x6", 6, 1, OCI_TOPO_L3 },
		{ "ig-8x6", 7, 1, OCI_TOPO_MACHINE },
		{ "broadwell-2x14", 14, 1, OCI_TOPO_L3 },
		{ "broadwell-2x14", 28, 1, OCI_TOPO_MACHINE },
		{ "power8-2x10", 8, 1, OCI_TOPO_CORE },
		{ "power8-2x10", 160, 1, OCI_TOPO_MACHINE },
		{ "knl-68", 2, 4, OCI_TOPO_L2 },
		{ "epyc-nps4-2x64", 8, 1, OCI_TOPO_L3 },
		{ "epyc-nps4-2x64", 16, 1, OCI_TOPO_NUMA },
		{ "epyc-nps4-2x64", 64, 1, OCI_TOPO_PACKAGE },
		{ "epyc-nps4-2x64", 128, 1, OCI_TOPO_MACHINE },
		{ "epyc-nps4-2x64", 1, 1, OCI_TOPO_CORE },
	};

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		oci_near_source.line_ns = near_line;
		assert_int_equal(on_machine(row[i].name, row[i].ranks, row[i].apart, false),
				 row[i].common);
		if (row[i].ranks == 1)
			continue;
		/* One that is not told has all ranks look. */
		assert_int_equal(on_machine(row[i].name, row[i].ranks, row[i].apart, true),
				 OCI_TOPO_L3);
		oci_near_source.line_ns = far_line;
		assert_int_equal(on_machine(row[i].name, row[i].ranks, row[i].apart, true),
				 OCI_TOPO_MACHINE);
	}
}

/* Which ranks find the next one near: a bit for each. */
static int agree(struct oc_team *team, void *arg)
{
	unsigned int near = *(unsigned int *)arg, all = (1u << team->team.size) - 1;

	oci_near_source.by_places = oci_near_source.by_cpus = false;
	oci_near_source.line_ns = near >> team->team.rank & 1 ? near_line : far_line;
	oct_made(team);
	/* Of more than two it is not told which of them are far. */
	return team->team.common != (near == all ? OCI_TOPO_L3 : OCI_TOPO_MACHINE) ||
	       oci_near_peer(&team->team, 0) != (near == all) ||
	       oci_apart_peer(&team->team, !team->team.rank) !=
		       (near != all && team->team.size == 2);
}

TEST(one_rank_that_is_far_is_enough)
{
	for (uint32_t size = 2; size <= 5; size++) {
		for (unsigned int near = 0; near<1u << size; near += size> 3 ? 5 : 1)
			assert_int_equal(oct_fork_team(size, -1, agree, &near), 0);
		assert_int_equal(
			oct_fork_team(size, -1, agree, &(unsigned int){ (1u << size) - 1 }), 0);
	}
}

/* Two ranks that may use `cpus`; each is bound to a core, or to none. */
static bool may_part(uint64_t first, uint64_t second, bool bound)
{
	static struct oci_region regions[2];
	struct oci_member member[2] = { { .region = &regions[0] }, { .region = &regions[1] } };
	struct oci_team team = { .size = 2, .member = member };

	for (unsigned int r = 0; r < 2; r++) {
		struct oci_card *card = &regions[r].card;

		card->cpus[0] = r ? second : first;
		card->place.cpus = (uint32_t)__builtin_popcountll(card->cpus[0]);
		card->place.core = bound ? r : OCI_TOPO_NOWHERE;
		card->cpus_online = 64;
		card->node_ranks = 2;
	}
	oci_cards_count_cpus(&team);
	assert_int_equal(team.oversubscribed, __builtin_popcountll(first | second) < 2);
	return team.may_part;
}

TEST(ranks_that_may_part_are_not_measured)
{
	assert_false(may_part(1, 2, false));
	assert_false(may_part(3, 3, false)); /* a CPU for each, whichever it is */
	assert_false(may_part(3, 12, true)); /* two threads of a core each */
	assert_true(may_part(3, 12, false));
	assert_true(may_part(15, 15, false));
	assert_false(may_part(1, 1, false));
	assert_true(may_part(1, 14, false));
}
