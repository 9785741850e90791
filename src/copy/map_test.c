/* SPDX-License-Identifier: BSD-3-Clause */
/* Mapped memory where things go wrong: reuse, death, limits, fork, refusal. On real processes. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/engine.h"
#include "copy/map.h"
#include "heap/arena.h"
#include "support/arena.h"
#include "support/call_bytes.h"
#include "support/fork_team.h"
#include "support/process.h"
#include "support/test.h"
#include "team/arena.h"
#include "team/learned.h"

#define BYTES ((size_t)300 << 10)
#define ARENA_BYTES ((size_t)64 << 20)

/* An arena of each rank that all know of, and a buffer in it. */
static uint8_t *begin(struct oc_team *team, struct oct_arena *arena)
{
	if (oct_arena_create(arena, ARENA_BYTES) || oct_barrier(team))
		return NULL;
	return oct_arena_take(arena, BYTES);
}

/* `value` from rank `root`: 0 when it came. */
static int round_of(struct oc_team *team, uint8_t *buffer, uint8_t value, uint32_t root)
{
	memset(buffer, oc_team_rank(team) == root ? value : 0xff, BYTES);
	if (oct_bcast(team, buffer, BYTES, root))
		return 1;
	return oct_all(buffer, value, BYTES) ? 0 : 2;
}

TEST_ON_RANKS(memory_that_was_freed_and_reused_is_never_read_stale, 2, 4)
{
	struct oct_arena arena;
	uint8_t *buffer = begin(team, &arena);

	for (uint8_t i = 0; buffer && i < 20; i++) {
		if (round_of(team, buffer, i, i % oc_team_size(team)))
			return 1;
		/* As the heap does with what is freed; a neighbour has read these pages. */
		if (i % 2 && madvise(buffer, BYTES, MADV_REMOVE))
			return 2;
	}
	return buffer && oci_map_moved_bytes() ? 0 : 3;
}

/* The team has learned that slots are quicker, so each copy is one end's; but not of what is
 * mapped. */
TEST_ON_RANKS(both_ends_share_what_is_mapped, 2)
{
	struct oct_arena arena;
	uint8_t *buffer = begin(team, &arena);
	uint8_t *way = team->team.member[0].region->card.ways;

	__atomic_store_n(way + oci_learned_index(OC_BCAST, BYTES, false), OCI_LEARNED_SLOTS,
			 __ATOMIC_RELAXED);
	for (uint8_t i = 0; buffer && i < 250; i++)
		if (round_of(team, buffer, i, 0))
			return 1;
	/* Rank 0 as the root has helped at least once. Where both share a CPU with others it may
	 * have left nothing to rank 1. */
	return buffer && (oc_team_rank(team) || oci_map_moved_bytes()) ? 0 : 2;
}

static int rank_1_dies(struct oc_team *team, void *arg)
{
	struct oct_arena arena;
	uint8_t *buffer = begin(team, &arena);
	uint64_t base;

	(void)arg;
	if (!buffer || round_of(team, buffer, 7, 1))
		return 1;
	if (oc_team_rank(team) == 1)
		raise(SIGKILL);
	if (oct_bcast(team, buffer, BYTES, 1) != -EOWNERDEAD || oc_team_dead_rank(team) != 1)
		return 2;
	/* What is mapped outlives its owner: this must not be a fault. */
	base = oci_mapping_get(team->team.member[1].peer)->base;
	return *(volatile uint8_t *)oci_map_reach(&team->team, 1, base, 1) + 1 ? 0 : 3;
}

TEST(a_rank_that_dies_while_it_is_mapped_is_named)
{
	assert_int_equal(oct_fork_team(3, 1, rank_1_dies, NULL), 0);
}

static int nothing_is_mapped(struct oc_team *team, void *arg)
{
	static uint8_t elsewhere[BYTES];
	struct oct_arena arena;
	uint8_t *buffer;

	/* What calls keep, such as plans, is allocated before there is no more room. The other
	 * rank's call is over before an arena is there that it might map. */
	if (round_of(team, elsewhere, 7, 0) || round_of(team, elsewhere, 8, 1) || oct_barrier(team))
		return 1;
	buffer = begin(team, &arena);
	if (!buffer)
		return 1;
	if (arg) {
		/* Room for what is there and no more, or for little beside the peer's. */
		size_t most = *(size_t *)arg;

		if (most > ARENA_BYTES ? oct_limit_address_space(most) : oct_limit(RLIMIT_AS, most))
			return 2;
		oct_may_leak = true; /* there is no room to look */
	}
	if (round_of(team, buffer, 9, 0) || round_of(team, buffer, 10, 1))
		return 3;
	return !oci_map_moved_bytes() && !oci_mapping_counts().made ? 0 : 4;
}

TEST(without_address_space_the_bytes_go_another_way)
{
	size_t limits[] = { ARENA_BYTES, ARENA_BYTES * 3 / 2 };

	assert_int_equal(oct_fork_team(2, -1, nothing_is_mapped, &limits[0]), 0);
	assert_int_equal(oct_fork_team(2, -1, nothing_is_mapped, &limits[1]), 0);
	setenv("ONECOPY_MAP_BYTES", "63M", 1);
	assert_int_equal(oct_fork_team(2, -1, nothing_is_mapped, NULL), 0);
	unsetenv("ONECOPY_MAP_BYTES");
}

static int only_mapped(struct oc_team *team, void *arg)
{
	uint8_t *stack = alloca(BYTES);
	struct oct_arena arena;
	uint8_t *buffer = begin(team, &arena);

	if (!buffer || round_of(team, buffer, 9, 0) || round_of(team, buffer, 8, 1))
		return 1;
	/* Of two ends that share a copy, one may have done it all. */
	if (!arg && !oci_map_moved_bytes())
		return 2;
	/* Out of reach: the owner helps. */
	return round_of(team, stack, 10, 0);
}

TEST(without_single_copies_the_arena_is_still_mapped)
{
	bool shared = true;

	setenv("ONECOPY_MECHANISM", "map", 1);
	setenv("ONECOPY_BCAST", "direct-read", 1);
	assert_int_equal(oct_fork_team(3, -1, only_mapped, NULL), 0);
	setenv("ONECOPY_BCAST", "cooperative", 1);
	assert_int_equal(oct_fork_team(2, -1, only_mapped, &shared), 0);
	assert_int_equal(oct_fork_team(3, -1, only_mapped, &shared), 0);
	unsetenv("ONECOPY_BCAST");
	unsetenv("ONECOPY_MECHANISM");
}

TEST_ON_RANKS(a_child_has_no_mapping_of_the_peers, 2)
{
	struct oct_arena arena;
	uint8_t *buffer = begin(team, &arena), *theirs;
	unsigned char resident;
	int status;
	pid_t pid;

	if (!buffer || round_of(team, buffer, 9, 0))
		return 1;
	theirs = oci_mapping_get(team->team.member[!oc_team_rank(team)].peer)->at;
	pid = fork();
	if (!pid)
		_exit(mincore(theirs, 4096, &resident) && errno == ENOMEM &&
				      !oci_arena_published() ?
			      0 :
			      1);
	if (waitpid(pid, &status, 0) != pid || status)
		return 2;
	return round_of(team, buffer, 10, 1);
}

static int the_file_is_another(struct oc_team *team, void *arg)
{
	struct oct_arena arena;
	uint8_t *buffer;

	/* The nonce that the peers were told is not what they will find; or the file is short. */
	if (oct_arena_create(&arena, ARENA_BYTES))
		return 1;
	memset(arena.base, 0, 16);
	if (arg && ftruncate(arena.fd, 4096))
		return 2;
	buffer = arg ? malloc(BYTES) : oct_arena_take(&arena, BYTES);
	if (oct_barrier(team) || round_of(team, buffer, 9, 0) || round_of(team, buffer, 10, 1))
		return 3;
	for (uint32_t r = 0; r < oc_team_size(team); r++)
		if (r != oc_team_rank(team) &&
		    oci_map_reach(&team->team, r, (uintptr_t)arena.base, 16))
			return 4;
	if (arg)
		free(buffer);
	return oci_map_moved_bytes() ? 5 : 0;
}

TEST(what_is_not_the_arena_is_not_used)
{
	bool short_file = true;

	assert_int_equal(oct_fork_team(2, -1, the_file_is_another, NULL), 0);
	assert_int_equal(oct_fork_team(2, -1, the_file_is_another, &short_file), 0);
}

/* Two thirds of the pieces lie in the arena, the others in private memory. */
static int pieces_lie_here_and_there(struct oc_team *team, void *arg)
{
	enum { PIECES = 200, PIECE = 1000 };
	struct oct_arena arena;
	uint8_t *buffer = begin(team, &arena), *private = calloc(2 * PIECES, PIECE);
	struct oc_piece pieces[PIECES + 1];
	struct oc_layout layout = { .count = PIECES, .pieces = pieces };
	struct oc_call call = { .collective = OC_BCAST,
				.send = buffer,
				.send_layout = &layout,
				.bytes = PIECES * PIECE };

	if (!buffer || !private)
		return 1;
	for (size_t i = 0; i <= PIECES; i++) {
		uint8_t *half = i % 3 == 1 ? private : buffer;

		pieces[i] = (struct oc_piece){ .address = half + i * PIECE, .at = i * PIECE };
		if (i < PIECES)
			memset(half + i * PIECE, oc_team_rank(team) ? 0xff : (int)(i % 250), PIECE);
	}
	if (oc_collective(team, &call))
		return 2;
	for (size_t i = 0; i < PIECES; i++)
		if (!oct_all(pieces[i].address, (uint8_t)(i % 250), PIECE))
			return 3;
	free(private);
	/* Where single copies are forbidden, the list itself is out of reach: it is private. */
	return oc_team_rank(team) && !arg && !oci_map_moved_bytes() ? 4 : 0;
}

TEST(pieces_of_a_layout_go_each_its_way)
{
	bool no_cma = true;

	setenv("ONECOPY_BCAST", "direct-read", 1);
	assert_int_equal(oct_fork_team(3, -1, pieces_lie_here_and_there, NULL), 0);
	setenv("ONECOPY_MECHANISM", "map", 1);
	assert_int_equal(oct_fork_team(3, -1, pieces_lie_here_and_there, &no_cma), 0);
	unsetenv("ONECOPY_BCAST");
	unsetenv("ONECOPY_MECHANISM");
}

static int mapping_goes_with_the_last_team(struct oc_team *team, void *arg)
{
	struct oc_bootstrap bootstrap = oct_again(team);
	struct oct_arena arena;
	struct oc_team *second;
	uint8_t *buffer;

	(void)arg;
	if (oct_arena_create(&arena, ARENA_BYTES) || oct_barrier(team) ||
	    oc_team_create(&second, &bootstrap) || oct_barrier(second))
		return 1;
	buffer = oct_arena_take(&arena, BYTES);
	if (round_of(second, buffer, 3, 0) || round_of(second, buffer, 4, 1) || oct_barrier(second))
		return 2;
	oc_team_destroy(second);
	/* The first team has the same peers, which stay mapped. */
	if (round_of(team, buffer, 5, 1))
		return 3;
	return oci_mapping_counts().bytes == ARENA_BYTES && oci_mapping_counts().made == 1 ? 0 : 4;
}

TEST(a_peer_is_mapped_once_for_all_teams)
{
	setenv("ONECOPY_BCAST", "direct-read", 1);
	assert_int_equal(oct_fork_team(2, -1, mapping_goes_with_the_last_team, NULL), 0);
	unsetenv("ONECOPY_BCAST");
}
