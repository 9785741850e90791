/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * By which mechanism a pair copies, where the ranks reach each other in several ways: dictated, as
 * machines that have them all are rare.
 */
#include <stdlib.h>
#include <string.h>

#include "api/engine.h"
#include "support/fork_team.h"
#include "support/test.h"

enum { RANKS = 3 };

static uint32_t reaches[RANKS];
static uint32_t prober;

static uint32_t dictated(const struct oci_peer *peer, char *why, size_t why_bytes)
{
	(void)peer;
	(void)why_bytes;
	*why = '\0';
	return reaches[prober];
}

static struct oci_team *team_of(struct oc_team *team)
{
	return &team->team;
}

/* Of a team of these ranks; the model prefers kmod, or not. */
static void check(uint32_t can0, uint32_t can1, bool prefers, unsigned int mechanism,
		  unsigned int instead, bool kmod)
{
	struct oc_team *teams[RANKS];
	unsigned int ready = 0;

	reaches[0] = can0;
	reaches[1] = reaches[2] = can1;
	assert_int_equal(oct_local_begin(RANKS, teams), 0);
	for (uint32_t r = 0; r < RANKS; r++) {
		team_of(teams[r])->probe = dictated;
		team_of(teams[r])->prefers_kmod = prefers;
	}
	while (ready < RANKS) {
		ready = 0;
		for (prober = 0; prober < RANKS; prober++) {
			struct oci_team *team = team_of(teams[prober]);

			/* Each asks for itself, though all are of this process. */
			for (uint32_t r = 0; r < RANKS && team->member[r].peer; r++)
				team->member[r].peer->can = 0;
			ready += oc_team_progress(teams[prober]) == 1;
		}
	}
	for (uint32_t r = 0; r < RANKS; r++) {
		struct oci_team *team = team_of(teams[r]);

		for (uint32_t other = 0; other < RANKS; other++) {
			if (other == r || (r && other))
				continue;
			assert_int_equal(team->member[other].mechanism, mechanism);
			assert_int_equal(team->member[other].instead, instead);
		}
		assert_int_equal(team->kmod, kmod);
	}
	for (uint32_t r = 0; r < RANKS; r++)
		assert_int_equal(oc_team_destroy(teams[r]), 0);
}

#define CMA (1u << OCI_MECH_CMA)
#define KMOD (1u << OCI_MECH_KMOD)

TEST(a_pair_copies_by_the_module_where_the_model_says_so)
{
	unsetenv("ONECOPY_MECHANISM");
	check(CMA | KMOD, CMA | KMOD, false, OCI_MECH_CMA, OCI_MECH_CMA, false);
	check(CMA | KMOD, CMA | KMOD, true, OCI_MECH_KMOD, OCI_MECH_CMA, true);
	/* Where one has no device, the pair has none. */
	check(CMA, CMA | KMOD, true, OCI_MECH_CMA, OCI_MECH_CMA, false);
	check(CMA | KMOD, CMA, true, OCI_MECH_CMA, OCI_MECH_CMA, false);
	/* The kernel forbids cma. */
	check(KMOD, CMA | KMOD, false, OCI_MECH_KMOD, OCI_MECH_KMOD, true);
	check(KMOD, CMA | KMOD, true, OCI_MECH_KMOD, OCI_MECH_KMOD, true);
	check(CMA, KMOD, true, OCI_MECH_SHM, OCI_MECH_SHM, false);
}
