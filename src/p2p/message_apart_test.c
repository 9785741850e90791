/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A pipe is tried by itself between two ranks that share no cache, where the kernel forbids single
 * copies, and nowhere else; and it is taken where it was quicker. Each rank forbids itself
 * process_vm_readv() before it makes its team.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "api/engine.h"
#include "copy/map.h"
#include "os/os.h"
#include "p2p/p2p.h"
#include "support/arena.h"
#include "support/fork_team.h"
#include "support/process.h"
#include "support/refuse.h"
#include "support/test.h"

#define BYTES ((size_t)200003)
#define ARENA_BYTES ((size_t)16 << 20)

/* The first one, by which the receiver learns that there is a choice; those behind it, where it is
 * to try both ways, after 32 by the ring, 16 messages each, and where it is told. */
enum { FIRST = 2, TRIED = 120, TOLD = 6 };
/* What it is told to have learned; nothing. */
enum { LEARNS, RING = OCI_LEARNED_AT_ONCE, PIPE = OCI_LEARNED_SLOTS };

static const struct setting {
	const char *name, *value;
} by_itself = { "ONECOPY_P2P", "auto" };

/* Two ranks, and whether either had a pipe in the end. */
struct pair {
	struct setting setting;
	uint8_t way;
	size_t bytes;
	bool near, allowed, in_heap, in_pieces, short_pipes;
	bool starved;  /* the receiver cannot open the first message's */
	bool had_pipe; /* the receiver, at the end */
	uint64_t mapped_bytes;
};

static uint64_t near_line(const uint64_t *word)
{
	(void)word;
	return 20;
}

static uint64_t far_line(const uint64_t *word)
{
	(void)word;
	return 120;
}

static uint8_t byte_of(size_t i, int round)
{
	return (uint8_t)(i * 7 + i / 4093 + (size_t)round * 11 + 1);
}

/* One message of this round's sender to the other rank: 0 when every byte was right. */
static int pass(struct oc_team *team, const struct pair *pair, uint8_t *buffer, int round)
{
	size_t bytes = pair->bytes, half = bytes / 2;
	struct oc_piece pieces[] = { { 0, buffer }, { half, buffer + half }, { .at = bytes } };
	struct oc_layout layout = { pieces, 2 };
	bool sends = oc_team_rank(team) == (uint32_t)round % 2;
	uint32_t peer = !oc_team_rank(team);
	int failed;

	for (size_t i = 0; i < bytes; i++)
		buffer[i] = sends ? byte_of(i, round) : 0xff;
	oct_starve(pair->starved && round < FIRST + 2 && !sends);
	if (sends && pair->in_pieces)
		failed = oc_sendv(team, peer, round, &layout);
	else
		failed = sends ? oc_send(team, peer, round, buffer, bytes) :
				 oc_recv(team, peer, round, buffer, bytes, NULL);
	oct_starve(false);
	for (size_t i = 0; i < bytes && !failed; i++)
		failed = buffer[i] != byte_of(i, round);
	return failed;
}

static int rank_of(const struct oc_bootstrap *bootstrap, void *arg)
{
	struct pair *pair = arg;
	struct oct_arena arena;
	struct oc_team *team;
	uint8_t *buffer;
	int before, held;

	setenv(pair->setting.name, pair->setting.value, 1);
	oci_near_source.by_places = oci_near_source.by_cpus = false;
	oci_near_source.line_ns = pair->near ? near_line : far_line;
	if (pair->short_pipes && !oct_use_up_pipes())
		return 1;
	if (!pair->allowed && !oct_refuse(SYS_process_vm_readv, EPERM))
		return 1;
	if (oct_arena_create(&arena, ARENA_BYTES) || oc_team_create(&team, bootstrap))
		return 2;
	buffer = pair->in_heap ? oct_arena_take(&arena, pair->bytes) : malloc(pair->bytes);
	if (oct_barrier(team))
		return 3; /* what is opened for other reasons is open */
	before = oct_pipes();
	for (int round = 0; round < FIRST + (pair->way ? TOLD : TRIED); round++) {
		struct oci_pipe_choice *choice =
			round < FIRST ? NULL : team->p2p->in[!bootstrap->rank].choice;

		if (round == FIRST && pair->way && choice)
			memset(choice->word, pair->way, sizeof(choice->word));
		if (pass(team, pair, buffer, round))
			return 4;
	}
	held = oct_pipes() - before;
	/* Its own has two ends here. */
	if (bootstrap->rank)
		pair->had_pipe = held % 2;
	pair->mapped_bytes += oci_map_moved_bytes();
	if (!pair->in_heap)
		free(buffer);
	return 0;
}

/* Did rank 0's messages to rank 1 go through a pipe? */
static bool is_piped(struct pair wanted)
{
	struct pair *pair = mmap(NULL, sizeof(*pair), PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	bool piped;

	assert_true(pair != MAP_FAILED);
	*pair = wanted;
	if (!pair->setting.name)
		pair->setting = by_itself;
	if (!pair->bytes)
		pair->bytes = BYTES;
	assert_int_equal(oct_fork_ranks(2, -1, rank_of, pair), 0);
	if (pair->in_heap)
		assert_true(pair->mapped_bytes > 0);
	piped = pair->had_pipe;
	munmap(pair, sizeof(*pair));
	return piped;
}

TEST(ranks_that_share_no_cache_and_may_not_copy_try_a_pipe)
{
	assert_true(is_piped((struct pair){ 0 }));
	assert_true(is_piped((struct pair){ .bytes = 65536 }));
}

TEST(what_was_quicker_is_taken)
{
	assert_true(is_piped((struct pair){ .way = PIPE }));
	assert_false(is_piped((struct pair){ .way = RING }));
}

TEST(ranks_that_share_a_cache_try_none)
{
	assert_false(is_piped((struct pair){ .near = true }));
	assert_false(is_piped((struct pair){ .near = true, .way = PIPE }));
}

TEST(ranks_that_may_copy_try_none)
{
	assert_false(is_piped((struct pair){ .allowed = true, .way = PIPE }));
}

TEST(who_wishes_another_way_gets_it)
{
	static const struct setting settings[] = { { "ONECOPY_MECHANISM", "shm" },
						   { "ONECOPY_MECHANISM", "cma" },
						   { "ONECOPY_P2P", "shm" },
						   { "ONECOPY_P2P", "map" },
						   { "ONECOPY_P2P", "cma" } };

	for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++)
		assert_false(is_piped((struct pair){ .setting = settings[i], .way = PIPE }));
}

TEST(little_messages_and_pieces_take_none)
{
	assert_false(is_piped((struct pair){ .bytes = 65535, .way = PIPE }));
	assert_false(is_piped((struct pair){ .in_pieces = true, .way = PIPE }));
}

TEST(what_can_be_mapped_takes_none)
{
	assert_false(is_piped((struct pair){ .in_heap = true, .way = PIPE }));
}

/* Not even when it could again. */
TEST(a_receiver_that_could_not_open_a_pipe_tries_none)
{
	assert_false(is_piped((struct pair){ .starved = true, .way = PIPE }));
}

TEST(pipes_of_a_page_are_not_taken)
{
	if (geteuid())
		oct_skip("only root can become the user who has used up pipes");
	assert_false(is_piped((struct pair){ .short_pipes = true, .way = PIPE }));
}

int main(void)
{
	return oct_test_run(NULL, NULL);
}
