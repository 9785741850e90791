/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Buffers with gaps: every collective that moves bytes x every algorithm x sizes x mechanisms, with
 * layouts that differ from rank to rank, on real processes, byte by byte.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coll/coll.h"
#include "support/call_bytes.h"
#include "support/fork_team.h"
#include "support/test.h"

#define MOST_BYTES ((size_t)400000)
#define GAP 0x77

/* A buffer of dense bytes, with gaps between its pieces or without. */
struct buffer {
	uint8_t *memory, *dense;
	struct oc_piece *pieces;
	struct oc_layout layout;
	size_t bytes;
	bool gaps;
};

static void buffer_open(struct buffer *b, uint32_t ranks)
{
	b->memory = malloc(2 * ranks * MOST_BYTES);
	b->dense = malloc(ranks * MOST_BYTES);
	b->pieces = malloc((ranks * MOST_BYTES / 100 + 2) * sizeof(*b->pieces));
}

static void buffer_close(struct buffer *b)
{
	free(b->memory);
	free(b->dense);
	free(b->pieces);
}

/* Pieces of about `piece` bytes, each followed by a gap of as much. */
static void buffer_shape(struct buffer *b, size_t bytes, size_t piece)
{
	size_t at = 0, count = 0, offset = 0;

	b->bytes = bytes;
	b->gaps = piece != 0;
	for (; b->gaps && at < bytes; count++) {
		size_t length = piece + count % 7;

		b->pieces[count] = (struct oc_piece){ at, b->memory + offset };
		at += length < bytes - at ? length : bytes - at;
		offset += length + piece;
	}
	b->pieces[count] = (struct oc_piece){ .at = bytes };
	b->layout = (struct oc_layout){ b->pieces, count };
	memset(b->memory, GAP, b->gaps ? offset : bytes);
}

/* The n-th piece, or all of a buffer without gaps; false: there is no such piece. */
static bool buffer_piece(const struct buffer *b, size_t n, struct oc_piece *piece, size_t *bytes)
{
	if (n >= (b->gaps ? b->layout.count : 1))
		return false;
	*piece = b->gaps ? b->pieces[n] : (struct oc_piece){ 0, b->memory };
	*bytes = b->gaps ? b->pieces[n + 1].at - piece->at : b->bytes;
	return true;
}

static void buffer_write(const struct buffer *b)
{
	struct oc_piece piece;
	size_t bytes;

	for (size_t n = 0; buffer_piece(b, n, &piece, &bytes); n++)
		memcpy(piece.address, b->dense + piece.at, bytes);
}

/* Is every byte right, and are the gaps as they were? */
static bool buffer_holds(const struct buffer *b)
{
	struct oc_piece piece;
	size_t bytes;

	for (size_t n = 0; buffer_piece(b, n, &piece, &bytes); n++) {
		uint8_t *gap = (uint8_t *)piece.address + bytes, *next = gap;

		if (memcmp(piece.address, b->dense + piece.at, bytes))
			return false;
		if (n + 1 < b->layout.count)
			next = b->pieces[n + 1].address;
		if (!oct_all(gap, GAP, (size_t)(next - gap)))
			return false;
	}
	return true;
}

struct job {
	struct oc_team *team;
	uint32_t rank, size;
	unsigned int calls;
	struct buffer send, recv;
};

/* The bytes of block `b` of the send or receive side. */
static uint32_t sender_of(const struct oc_call *call, uint32_t block)
{
	return call->collective == OC_BCAST || call->collective == OC_SCATTER ? call->root : block;
}

static void fill(struct job *j, unsigned int n, const struct oc_call *call, size_t send_bytes,
		 size_t recv_bytes)
{
	bool many = call->collective == OC_SCATTER || call->collective == OC_ALLTOALL;
	size_t bytes = call->bytes;

	for (uint32_t b = 0; b * bytes < send_bytes; b++)
		oct_fill(j->send.dense + b * bytes, n, j->rank, many ? b : 0, bytes);
	for (uint32_t b = 0; b * bytes < recv_bytes; b++)
		oct_fill(j->recv.dense + b * bytes, n, sender_of(call, b), many ? j->rank : 0,
			 bytes);
}

static size_t piece_of(const struct job *j, unsigned int n, unsigned int side)
{
	static const size_t lengths[] = { 0, 100, 3000, 5000, 70000 };

	return lengths[(n + 3 * j->rank + side) % 5];
}

static int one_call(struct job *j, struct oc_call call, const char *algorithm)
{
	unsigned int n = j->calls++;
	enum oc_collective c = call.collective;
	bool root = call.root == j->rank;
	size_t send_bytes = oct_send_bytes(c, call.bytes, j->size, root);
	size_t recv_bytes = oct_recv_bytes(c, call.bytes, j->size, root);
	struct buffer *result = c == OC_BCAST ? &j->send : &j->recv;
	int error;

	fill(j, n, &call, send_bytes, recv_bytes);
	buffer_shape(&j->send, send_bytes, piece_of(j, n, 0));
	buffer_shape(&j->recv, recv_bytes, piece_of(j, n, 1));
	if (c == OC_BCAST)
		memcpy(j->send.dense, j->recv.dense, recv_bytes);
	if (c != OC_BCAST || root)
		buffer_write(&j->send);
	call.send = j->send.memory;
	call.recv = j->recv.memory;
	if (j->send.gaps)
		call.send_layout = &j->send.layout;
	if (j->recv.gaps)
		call.recv_layout = &j->recv.layout;
	if (n % 3 == 0 && (c == OC_ALLTOALL || c == OC_ALLGATHER)) {
		uint8_t *keep = j->recv.dense;
		size_t own = c == OC_ALLGATHER ? j->rank * call.bytes : 0;

		/* In place: what it sends is in the receive buffer. */
		j->recv.dense = calloc(1, recv_bytes + 1);
		memcpy(j->recv.dense + own, j->send.dense, send_bytes);
		buffer_write(&j->recv);
		free(j->recv.dense);
		j->recv.dense = keep;
		call.send = OC_IN_PLACE;
	}
	error = oc_collective(j->team, &call);
	if (error) {
		fprintf(stderr, "%s %s of %zu bytes: %d, %s\n", oci_collective_name(c), algorithm,
			call.bytes, error, oc_team_error(j->team));
		return 1;
	}
	if ((recv_bytes || c == OC_BCAST) && !buffer_holds(result)) {
		fprintf(stderr, "rank %u of %u: %s %s of %zu bytes, call %u: wrong bytes\n",
			j->rank, j->size, oci_collective_name(c), algorithm, call.bytes, n);
		return 1;
	}
	return 0;
}

static int every_algorithm(struct oc_team *team, void *arg)
{
	static const size_t sizes[] = { 8, 300, 5000, 40000, 300001 };
	static const enum oc_collective moving[] = { OC_BCAST, OC_SCATTER, OC_GATHER, OC_ALLGATHER,
						     OC_ALLTOALL };
	struct job j = { .team = team, .rank = oc_team_rank(team), .size = oc_team_size(team) };
	const struct oci_algorithm *a;
	int failed = 0;

	(void)arg;
	buffer_open(&j.send, j.size);
	buffer_open(&j.recv, j.size);
	for (unsigned int m = 0; m < 5 && !failed; m++) {
		enum oc_collective c = moving[m];

		for (unsigned int i = 0; (a = oci_algorithm(c, i)) != NULL && !failed; i++) {
			failed = oc_team_force(team, oci_collective_name(c), a->name);
			for (unsigned int s = 0; s < 15 && !failed; s++)
				failed = one_call(
					&j,
					(struct oc_call){ .collective = (enum oc_collective)c,
							  .bytes = sizes[s % 5],
							  .root = s % j.size },
					a->name);
		}
	}
	buffer_close(&j.send);
	buffer_close(&j.recv);
	return failed;
}

static void run(const char *mechanism, uint32_t ranks)
{
	setenv("ONECOPY_MECHANISM", mechanism, 1);
	assert_int_equal(oct_fork_team(ranks, -1, every_algorithm, NULL), 0);
}

TEST(layouts_of_any_rank_by_every_algorithm_on_2_3_5_ranks)
{
	run("auto", 2);
	run("auto", 3);
	run("auto", 5);
}

TEST(layouts_through_shared_memory_alone)
{
	run("shm", 3);
}
