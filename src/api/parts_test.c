/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reduce_scatter with parts of different sizes, on real processes, byte by byte: by every
 * algorithm, blocking and as a request, in place and not; and the tables that are refused.
 */
#include <errno.h>

#include "coll/coll.h"
#include "support/call.h"
#include "support/fork_team.h"
#include "support/test.h"

TEST_ON_RANKS(parts_of_all_sizes_by_every_algorithm, 1, 2, 3, 5)
{
	static const size_t units[] = { 0, 2, 124, 498, 8192, 16386, 300002 };
	struct oct_memory memory = { 0 };
	const struct oci_algorithm *a;
	unsigned int n = 0;

	for (unsigned int i = 0; (a = oci_algorithm(OC_REDUCE_SCATTER, i)) != NULL; i++) {
		if (oc_team_force(team, "reduce_scatter", a->name))
			return 1;
		for (unsigned int k = 0; k < 7 * 4; k++, n++) {
			struct oct_spec spec = { .collective = OC_REDUCE_SCATTER,
						 .n = n,
						 .bytes = units[k / 4],
						 .op = k & 1 ? &oct_composition : &oct_sum,
						 .in_place = k & 2,
						 .uneven = true,
						 .by_request = n % 3 == 2 };

			if (oct_call_run(team, &memory, &spec))
				return 2;
		}
	}
	oct_memory_free(&memory);
	return 0;
}

TEST_ON_RANKS(tables_with_gaps_or_halves_of_elements_are_refused, 2)
{
	static uint8_t send[64], recv[64];
	struct oc_block gap[] = { { 0, 8 }, { 10, 8 } }, half[] = { { 0, 8 }, { 8, 7 } };
	struct oc_block huge[] = { { 0, SIZE_MAX - 1 }, { SIZE_MAX - 1, 8 } };
	struct oc_block right[] = { { 0, 8 }, { 8, 8 } };
	const struct oc_block *const wrong[] = { NULL, gap, half, huge };
	struct oc_call call = { .collective = OC_REDUCE_SCATTER,
				.send = send,
				.recv = recv,
				.op = &oct_composition };

	for (unsigned int i = 0; i < 4; i++) {
		call.recv_blocks = wrong[i];
		if (oc_collective(team, &call) != -EINVAL)
			return 1;
	}
	/* Nothing was sent: the team goes on. */
	call.recv_blocks = right;
	return oc_collective(team, &call) != 0;
}
