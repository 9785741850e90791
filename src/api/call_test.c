/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every collective x every algorithm x sizes x roots, on real processes, byte by byte; the library
 * is driven through its public API alone.
 */
#include <stdio.h>
#include <stdlib.h>

#include "coll/coll.h"
#include "copy/map.h"
#include "heap/arena.h"
#include "support/arena.h"
#include "support/call.h"
#include "support/fork_team.h"
#include "support/test.h"

static int complain(struct oc_team *team, const char *algorithm, const char *what)
{
	fprintf(stderr, "rank %u: algorithm %s: %s\n", oc_team_rank(team), algorithm, what);
	return 1;
}

static int all_calls(struct oc_team *team, struct oct_memory *memory, enum oc_collective c,
		     size_t bytes)
{
	static unsigned int calls;
	uint32_t size = oc_team_size(team);
	const uint32_t roots[] = { 0, size / 2, size - 1 };
	bool reduces = oci_is_reduction(c);

	for (unsigned int i = 0; i < (oci_is_rooted(c) ? 3 : 1); i++) {
		for (int variant = 0; variant < (reduces ? 4 : 2); variant++) {
			struct oct_spec spec = { .collective = c,
						 .n = calls++,
						 .bytes = bytes,
						 .root = oci_is_rooted(c) ? roots[i] : 0,
						 .in_place = variant & 1 };

			if (reduces)
				spec.op = variant & 2 ? &oct_composition : &oct_sum;
			if (reduces && variant & 2)
				spec.bytes &= ~(size_t)1;
			if (oct_call_run(team, memory, &spec))
				return 1;
		}
	}
	return 0;
}

static const size_t sizes[] = { 0, 1, 4, 124, 496, 497, 1000, 4096, 16385, 65536, 65537, 300001 };
#define SIZES (sizeof(sizes) / sizeof(sizes[0]))
#define FIRST_POSTED 8 /* what is forced posts addresses at any size: the larger ones tell more */

/* Which ranks have their buffers in an arena that the others may map. */
enum where { NOBODY, EVERYBODY, ODD_RANKS };

static int every_algorithm(struct oc_team *team, void *arg)
{
	enum where where = *(enum where *)arg;
	uint32_t rank = oc_team_rank(team), size = oc_team_size(team);
	struct oct_memory memory = { .bytes = oct_memory_bytes(sizes[SIZES - 1], size) };
	bool is_odd = where == ODD_RANKS && rank % 2, maps;
	const struct oci_algorithm *a;
	struct oct_arena arena;

	if ((where == EVERYBODY || is_odd) &&
	    oct_arena_create(&arena, 4 * (memory.bytes + OCI_ARENA_FIRST)))
		return complain(team, "", "no arena");
	memory.send = where == EVERYBODY || is_odd ? oct_arena_take(&arena, memory.bytes) :
						     malloc(memory.bytes);
	memory.recv = where == EVERYBODY || is_odd ? oct_arena_take(&arena, memory.bytes) :
						     malloc(memory.bytes);
	for (unsigned int c = 0; c < OC_COLLECTIVES; c++) {
		if (oci_is_v((enum oc_collective)c))
			continue; /* blocks_test.c */
		for (unsigned int i = 0; (a = oci_algorithm(c, i)) != NULL; i++) {
			if (oc_team_force(team, oci_collective_name(c), a->name))
				return complain(team, a->name, "not accepted");
			for (unsigned int s =
				     (where == NOBODY ? 0 : FIRST_POSTED) + (c + i) % OCT_ONE_IN;
			     s < SIZES; s += OCT_ONE_IN)
				if (all_calls(team, &memory, c, sizes[s]))
					return complain(team, a->name, "failed");
		}
	}
	/* Of three ranks the odd one has nobody to map. */
	maps = where == EVERYBODY || (where == ODD_RANKS && rank % 2 == 0);
	if ((oci_map_moved_bytes() > 0) != maps)
		return complain(team, "", "mapped memory is used wrongly");
	if (where == NOBODY || (where == ODD_RANKS && !is_odd)) {
		free(memory.send);
		free(memory.recv);
	}
	return 0;
}

static void run(uint32_t ranks, enum where where)
{
	assert_int_equal(oct_fork_team(ranks, -1, every_algorithm, &where), 0);
}

TEST(every_collective_algorithm_size_and_root_on_1_2_3_5_ranks)
{
	run(1, NOBODY);
	run(2, NOBODY);
	run(3, NOBODY);
	run(5, NOBODY);
}

TEST(the_same_in_mapped_memory_on_2_and_5_ranks)
{
	run(2, EVERYBODY);
	run(5, EVERYBODY);
}

TEST(the_same_where_some_ranks_have_mapped_memory_and_some_not)
{
	run(3, ODD_RANKS);
}
