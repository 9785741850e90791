/* SPDX-License-Identifier: BSD-3-Clause */
/* Every algorithm by ranks that are threads of one process: for ThreadSanitizer. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/engine.h"
#include "coll/coll.h"
#include "support/call.h"
#include "support/test.h"
#include "support/thread_team.h"

#define RANKS 3
#define BYTES ((size_t)70000)

static int run(struct oc_team *team)
{
	static const size_t sizes[] = { 1, 100, 3000, BYTES };
	struct oct_memory memory = { .bytes = oct_memory_bytes(BYTES, RANKS) };
	const struct oci_algorithm *a;
	unsigned int n = 0;
	size_t used = 0;
	int failed = 0;

	memory.send = malloc(memory.bytes);
	memory.recv = malloc(memory.bytes);
	for (unsigned int c = 0; c < OC_COLLECTIVES; c++) {
		for (unsigned int i = 0; (a = oci_algorithm(c, i)) != NULL && !failed; i++) {
			oc_team_force(team, oci_collective_name(c), a->name);
			for (unsigned int s = 0; s < 4 * 6 && !failed; s++, n++) {
				struct oct_spec spec = { .collective = (enum oc_collective)c,
							 .n = n,
							 .bytes = sizes[s % 4],
							 .root = n % RANKS,
							 .op = &oct_sum,
							 .in_place = oci_is_v(c) && n % 2 };

				/* What the call before has used is written over: a peer that still
				 * reads is a race. */
				memset(memory.send, 0, used);
				memset(memory.recv, 0, used);
				used = oct_memory_bytes(spec.bytes, RANKS);
				failed = oct_call_run(team, &memory, &spec);
			}
			if (failed)
				fprintf(stderr, "%s %s\n", oci_collective_name(c), a->name);
		}
	}
	oct_memory_free(&memory);
	return failed;
}

TEST(no_access_is_unordered_in_any_algorithm)
{
	assert_int_equal(oct_thread_team(RANKS, 0, run), 0);
}

TEST(nor_when_copies_fail_and_are_recovered)
{
	assert_int_equal(oct_thread_team(RANKS, 4, run), 0);
}
