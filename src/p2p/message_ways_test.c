/* SPDX-License-Identifier: BSD-3-Clause */
/* ONECOPY_P2P=cma and map: what a rank copies itself goes that way alone, whatever its peer's does.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "api/engine.h"
#include "copy/map.h"
#include "support/arena.h"
#include "support/fork_team.h"
#include "support/test.h"

#define ARENA_BYTES ((size_t)64 << 20)
#define BYTES ((size_t)3000001)

enum { ROUNDS = 8 };

/* Two ranks' ways, and what they saw: bytes that each copied in mapped memory. */
struct seen {
	const char *way[2];
	bool in_heap;
	size_t bytes;
	uint64_t mapped[2];
	bool single_copy;
};

static uint8_t byte_of(size_t i, int round)
{
	return (uint8_t)(i * 7 + i / 4093 + (size_t)round);
}

/* Rank 0 sends, rank 1 receives: 0, or what went wrong. */
static int rank_of(const struct oc_bootstrap *bootstrap, void *arg)
{
	struct seen *seen = arg;
	uint32_t rank = bootstrap->rank;
	size_t bytes = seen->bytes;
	struct oct_arena arena;
	struct oc_team *team;
	struct oc_status status;
	uint8_t *buffer;

	setenv("ONECOPY_P2P", seen->way[rank], 1);
	if (oct_arena_create(&arena, ARENA_BYTES) || oc_team_create(&team, bootstrap))
		return 1;
	buffer = seen->in_heap ? oct_arena_take(&arena, bytes) : malloc(bytes);
	for (int round = 0; round < ROUNDS; round++) {
		for (size_t i = 0; i < bytes; i++)
			buffer[i] = rank ? 0xff : byte_of(i, round);
		if (rank ? oc_recv(team, 0, round, buffer, bytes, &status) :
			   oc_send(team, 1, round, buffer, bytes))
			return 2;
		for (size_t i = 0; i < bytes; i++)
			if (buffer[i] != byte_of(i, round))
				return 3;
	}
	seen->mapped[rank] = oci_map_moved_bytes();
	if (rank)
		seen->single_copy = team->team.member[0].mechanism != OCI_MECH_SHM;
	if (!seen->in_heap)
		free(buffer);
	return 0;
}

static struct seen run_bytes(const char *sender, const char *receiver, bool in_heap, size_t bytes)
{
	struct seen result, *seen = mmap(NULL, sizeof(*seen), PROT_READ | PROT_WRITE,
					 MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_true(seen != MAP_FAILED);
	*seen = (struct seen){ .way = { sender, receiver }, .in_heap = in_heap, .bytes = bytes };
	assert_int_equal(oct_fork_ranks(2, -1, rank_of, seen), 0);
	result = *seen;
	munmap(seen, sizeof(*seen));
	return result;
}

static struct seen run(const char *sender, const char *receiver, bool in_heap)
{
	return run_bytes(sender, receiver, in_heap, BYTES);
}

TEST(map_moves_all_of_it_by_mapped_memory)
{
	struct seen seen = run("map", "map", true);

	assert_int_equal(seen.mapped[0] + seen.mapped[1], ROUNDS * BYTES);
}

TEST(cma_maps_nothing)
{
	struct seen seen = run("cma", "cma", true);

	assert_int_equal(seen.mapped[0] + seen.mapped[1], 0);
}

TEST(what_is_not_in_a_heap_is_sent_with_map)
{
	struct seen seen = run("map", "map", false);

	assert_int_equal(seen.mapped[0] + seen.mapped[1], 0);
}

TEST(ranks_that_disagree_copy_each_its_way)
{
	struct seen seen = run("cma", "map", true);

	assert_int_equal(seen.mapped[0], 0);
	if (!seen.single_copy) /* the sender cannot help, or both could not */
		assert_int_equal(seen.mapped[1], ROUNDS * BYTES);
	else
		assert_true(seen.mapped[1] > 0);
	seen = run("map", "cma", true);
	assert_int_equal(seen.mapped[1], 0);
	seen = run("shm", "map", true);
	assert_int_equal(seen.mapped[0] + seen.mapped[1], 0);
}

/* Out of a heap the eager limit is lower: nothing has to be copied twice, or by the kernel. */
TEST(little_of_a_heap_is_read_there)
{
	struct seen seen = run_bytes("auto", "auto", true, 2048);

	assert_int_equal(seen.mapped[0], 0);
	assert_true(seen.mapped[1] > 0);
	seen = run_bytes("auto", "auto", true, 1024);
	assert_int_equal(seen.mapped[0] + seen.mapped[1], 0);
	seen = run_bytes("auto", "cma", true, 2048);
	assert_int_equal(seen.mapped[0] + seen.mapped[1], 0);
	seen = run_bytes("shm", "auto", true, 2048);
	assert_int_equal(seen.mapped[0] + seen.mapped[1], 0);
	seen = run_bytes("cma", "cma", true, 2048);
	assert_int_equal(seen.mapped[0] + seen.mapped[1], 0);
}
