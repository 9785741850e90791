/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every collective x every algorithm x sizes x roots, on real processes, byte by byte; the library
 * is driven through its public API alone.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coll/coll.h"
#include "copy/map.h"
#include "heap/arena.h"
#include "support/arena.h"
#include "support/blocks.h"
#include "support/call_bytes.h"
#include "support/fork_team.h"
#include "support/test.h"

#define GUARD 64

static const struct oc_op sum = { .apply = oct_add, .bytes = 1, .commutative = 1, .id = 1 };
static const struct oc_op composition = {
	.apply = oct_compose, .bytes = 2, .commutative = 0, .id = 2
};

struct job {
	struct oc_team *team;
	uint32_t rank, size;
	unsigned int calls;
	uint8_t *send, *recv, *want;
};

static uint8_t *guarded(uint8_t *memory, size_t bytes)
{
	memset(memory, 0xa5, GUARD);
	memset(memory + GUARD + bytes, 0xa5, GUARD);
	return memory + GUARD;
}

static int guards_hold(const uint8_t *memory, size_t bytes)
{
	for (size_t i = 0; i < GUARD; i++) {
		if (memory[i] != 0xa5 || memory[GUARD + bytes + i] != 0xa5)
			return 0;
	}
	return 1;
}

/* Over ranks 0 .. operands - 1, what they mean for rank `to`. */
static void expect_reduction(unsigned int n, const struct oc_call *call, uint32_t operands,
			     uint32_t to, uint8_t *want)
{
	size_t bytes = call->bytes;
	uint8_t *other = malloc(bytes + 1);

	oct_fill(want, n, operands - 1, to, bytes);
	for (uint32_t r = operands - 1; r-- > 0;) {
		oct_fill(other, n, r, to, bytes);
		call->op->apply(NULL, other, want, bytes / call->op->bytes);
	}
	free(other);
}

static uint32_t operands_of(const struct job *j, const struct oc_call *call)
{
	if (call->collective == OC_SCAN)
		return j->rank + 1;
	return call->collective == OC_EXSCAN ? j->rank : j->size;
}

/* Of a Reduce_scatter: as the blocks of a Reduce_scatter_block; parts_test.c has others. */
static void equal_parts(struct oc_block *parts, uint32_t size, size_t bytes)
{
	for (uint32_t r = 0; r < size; r++)
		parts[r] = (struct oc_block){ r * bytes, bytes };
}

/* Fills what this rank sends and what it must receive. */
static void prepare(struct job *j, unsigned int n, const struct oc_call *call, uint8_t *send,
		    uint8_t *want, size_t send_bytes, size_t recv_bytes)
{
	bool many = oci_sends_each(call->collective);
	size_t bytes = call->bytes;

	for (size_t at = 0; at < send_bytes; at += many ? bytes : send_bytes)
		oct_fill(send + at, n, j->rank, many ? (uint32_t)(at / bytes) : 0,
			 many ? bytes : send_bytes);
	for (size_t at = 0; at < recv_bytes; at += bytes) {
		bool of_root = call->collective == OC_BCAST || call->collective == OC_SCATTER;
		bool to_me = call->collective == OC_SCATTER || call->collective == OC_ALLTOALL;

		oct_fill(want + at, n, of_root ? call->root : (uint32_t)(at / bytes),
			 to_me ? j->rank : 0, bytes);
	}
	if (call->op && recv_bytes && operands_of(j, call))
		expect_reduction(n, call, operands_of(j, call),
				 oci_sends_each(call->collective) ? j->rank : 0, want);
}

static int complain(struct job *j, const struct oc_call *call, const char *algorithm,
		    const char *what)
{
	fprintf(stderr, "rank %u of %u: %s %s, %zu bytes, root %u, %s: %s (%s)\n", j->rank, j->size,
		oci_collective_name(call->collective), algorithm, call->bytes, call->root,
		call->send == OC_IN_PLACE || call->recv == OC_IN_PLACE ? "in place" : "two buffers",
		what, oc_team_error(j->team));
	return 1;
}

static int one_call(struct job *j, struct oc_call call, const char *algorithm, bool in_place)
{
	unsigned int n = j->calls++;
	bool root = call.root == j->rank;
	enum oc_collective c = call.collective;
	size_t send_bytes = oct_send_bytes(c, call.bytes, j->size, root);
	size_t recv_bytes = oct_recv_bytes(c, call.bytes, j->size, root);
	/* The input of a Reduce_scatter in place is longer than the result. */
	size_t recv_room = in_place && send_bytes > recv_bytes ? send_bytes : recv_bytes;
	uint8_t *send = guarded(j->send, send_bytes), *recv = guarded(j->recv, recv_room);
	struct oc_block parts[8];
	int result;

	equal_parts(parts, j->size, call.bytes);
	call.recv_blocks = parts;
	prepare(j, n, &call, send, j->want, send_bytes, recv_bytes);
	memset(recv, 0x5a, recv_room);
	call.send = send;
	call.recv = recv;
	if (c == OC_BCAST) {
		if (root)
			memcpy(recv, send, call.bytes);
		call.send = recv;
	} else if (in_place && c == OC_SCATTER && root) {
		call.recv = OC_IN_PLACE;
		recv = send + j->rank * call.bytes;
		memcpy(j->want, recv, call.bytes);
	} else if (in_place && (c == OC_ALLGATHER || (c == OC_GATHER && root))) {
		memcpy(recv + j->rank * call.bytes, send, call.bytes);
		call.send = OC_IN_PLACE;
	} else if (in_place && (c == OC_ALLTOALL || (oci_is_reduction(c) && recv_bytes))) {
		memcpy(recv, send, send_bytes);
		call.send = OC_IN_PLACE;
	}
	if (c == OC_EXSCAN && !j->rank) { /* nothing is received */
		memcpy(j->want, recv, recv_bytes);
		if (!in_place)
			call.recv = NULL;
	}
	result = oc_collective(j->team, &call);
	if (result)
		return complain(j, &call, algorithm, strerror(-result));
	if (recv_bytes && memcmp(recv, j->want, recv_bytes))
		return complain(j, &call, algorithm, "wrong bytes");
	if (!guards_hold(j->recv, recv_room) || !guards_hold(j->send, send_bytes))
		return complain(j, &call, algorithm, "wrote outside of its buffer");
	return 0;
}

static int all_calls(struct job *j, enum oc_collective c, const char *algorithm, size_t bytes)
{
	static const uint32_t no_root[] = { 0 };
	uint32_t roots[] = { 0, j->size / 2, j->size - 1 };
	bool rooted = c == OC_BCAST || c == OC_SCATTER || c == OC_GATHER || c == OC_REDUCE;
	const uint32_t *root = rooted ? roots : no_root;
	bool reduces = oci_is_reduction(c);
	struct oc_call call = { .collective = (enum oc_collective)c, .bytes = bytes };

	for (unsigned int i = 0; i < (rooted ? 3 : 1); i++) {
		for (int variant = 0; variant < (reduces ? 4 : 2); variant++) {
			call.root = root[i];
			call.op = NULL;
			if (reduces)
				call.op = variant & 2 ? &composition : &sum;
			call.bytes = call.op == &composition ? bytes & ~(size_t)1 : bytes;
			if (one_call(j, call, algorithm, variant & 1))
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

/* A buffer of this rank, in its arena if it has one; never given back then. */
static uint8_t *buffer_get(struct oct_arena *arena, size_t bytes)
{
	return arena->base ? oct_arena_take(arena, bytes) : malloc(bytes);
}

static void buffer_put(const struct oct_arena *arena, uint8_t *buffer)
{
	if (!arena->base)
		free(buffer);
}

static int every_algorithm(struct oc_team *team, void *arg)
{
	enum where where = *(enum where *)arg;
	struct oct_arena arena = { .base = NULL };
	struct job j = { .team = team, .rank = oc_team_rank(team), .size = oc_team_size(team) };
	size_t most = j.size * sizes[SIZES - 1] + 2 * GUARD;
	const struct oci_algorithm *a;
	int failed = 0;
	bool maps;

	if ((where == EVERYBODY || (where == ODD_RANKS && j.rank % 2)) &&
	    oct_arena_create(&arena, 4 * (most + OCI_ARENA_FIRST)))
		return complain(&j, &(struct oc_call){ 0 }, "", "no arena");
	j.send = buffer_get(&arena, most);
	j.recv = buffer_get(&arena, most);
	j.want = malloc(most);
	for (unsigned int c = 0; c < OC_COLLECTIVES && !failed; c++) {
		if (oci_is_v((enum oc_collective)c))
			continue; /* blocks_test.c */
		for (unsigned int i = 0; (a = oci_algorithm(c, i)) != NULL && !failed; i++) {
			if (oc_team_force(team, oci_collective_name(c), a->name))
				return complain(&j, &(struct oc_call){ 0 }, a->name,
						"not accepted");
			for (unsigned int s = where == NOBODY ? 0 : FIRST_POSTED;
			     s < SIZES && !failed; s++)
				failed = all_calls(&j, c, a->name, sizes[s]);
		}
	}
	buffer_put(&arena, j.send);
	buffer_put(&arena, j.recv);
	free(j.want);
	/* Of three ranks the odd one has nobody to map. */
	maps = where == EVERYBODY || (where == ODD_RANKS && j.rank % 2 == 0);
	if (!failed && (oci_map_moved_bytes() > 0) != maps)
		return complain(&j, &(struct oc_call){ 0 }, "", "mapped memory is used wrongly");
	return failed;
}

TEST(every_collective_algorithm_size_and_root_on_1_2_3_5_ranks)
{
	static const uint32_t ranks[] = { 1, 2, 3, 5 };

	enum where where = NOBODY;

	for (unsigned int i = 0; i < sizeof(ranks) / sizeof(ranks[0]); i++)
		assert_int_equal(oct_fork_team(ranks[i], -1, every_algorithm, &where), 0);
}

TEST(the_same_in_mapped_memory_on_2_and_5_ranks)
{
	enum where where = EVERYBODY;

	assert_int_equal(oct_fork_team(2, -1, every_algorithm, &where), 0);
	assert_int_equal(oct_fork_team(5, -1, every_algorithm, &where), 0);
}

TEST(the_same_where_some_ranks_have_mapped_memory_and_some_not)
{
	enum where where = ODD_RANKS;

	assert_int_equal(oct_fork_team(3, -1, every_algorithm, &where), 0);
}
