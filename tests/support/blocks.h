/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls of the v-variants for tests: sizes that differ for each pair of ranks and are drawn around
 * those where the way of a block changes, blocks in either order with gaps, offsets that wrap.
 */
#ifndef OC_TEST_BLOCKS_H
#define OC_TEST_BLOCKS_H

#include <onecopy/collectives.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "support/call_bytes.h"

#define OCT_BLOCKS_RANKS 33
#define OCT_BLOCKS_GAP 7
#define OCT_BLOCKS_GARBAGE 0x5a

struct oct_blocks {
	struct oc_call call;
	unsigned int n; /* of the call: all ranks number alike */
	uint32_t rank, size;
	bool in_place;
	struct oc_block send[OCT_BLOCKS_RANKS], recv[OCT_BLOCKS_RANKS];
	uint8_t *send_memory, *recv_memory;
	size_t send_bytes, recv_bytes;
};

/* Does each rank give the same block to all? */
static inline bool oct_blocks_shared(const struct oct_blocks *b)
{
	return !oci_sends_each(b->call.collective) && !oci_is_rooted(b->call.collective);
}

/* Bytes from one rank to another in call n. */
static inline size_t oct_blocks_bytes(const struct oct_blocks *b, uint32_t from, uint32_t to)
{
	static const size_t sizes[] = { 0, 1,	 4,    100,   120,   240,   241,   480,	  481,
					0, 1000, 9000, 16384, 16385, 21824, 21825, 33333, 70001 };
	uint32_t x = b->n * 2654435761u + 17;

	if (oct_blocks_shared(b))
		to = 0;
	/* In place, what I send to a rank is as long as what I get from it. */
	if (oci_trades(b->call.collective) && b->in_place && from > to)
		return oct_blocks_bytes(b, to, from);
	x = (x ^ (x >> 15) ^ from * 40503u) * 2246822519u;
	x = (x ^ (x >> 13) ^ to * 30011u) * 3266489917u;
	return sizes[(x ^ (x >> 16)) % (sizeof(sizes) / sizeof(sizes[0]))];
}

/* Lays a table out from byte `at` of memory on; its offsets are from `base`. How far it reaches. */
static inline size_t oct_blocks_lay(const struct oct_blocks *b, bool sends, size_t base,
				    struct oc_block *blocks)
{
	size_t at = OCT_BLOCKS_GAP;

	for (uint32_t i = 0; i < b->size; i++) {
		uint32_t other = b->rank % 2 ? b->size - 1 - i : i;
		size_t bytes = sends ? oct_blocks_bytes(b, b->rank, other) :
				       oct_blocks_bytes(b, other, b->rank);

		blocks[other] = (struct oc_block){ .offset = at - base, .bytes = bytes };
		at += bytes + OCT_BLOCKS_GAP;
	}
	return at;
}

static inline void oct_blocks_fill(const struct oct_blocks *b, uint8_t *to, uint32_t from,
				   uint32_t target)
{
	oct_fill(to, b->n, from, oct_blocks_shared(b) ? 0 : target,
		 oct_blocks_bytes(b, from, target));
}

/* What rank b->rank passes: oc_call in b->call. Collective, n, rank, size, root are set. */
static inline void oct_blocks_make(struct oct_blocks *b, enum oc_collective c, unsigned int n,
				   uint32_t rank, uint32_t size, uint32_t root, bool in_place)
{
	const size_t base = 1000; /* beyond some blocks, so that their offsets wrap */
	bool one_sends = !oci_sends_each(c), one_receives = !oci_receives_each(c);
	bool aside = oci_is_rooted(c) && rank != root;
	struct oc_call *call = &b->call;

	*b = (struct oct_blocks){ .n = n, .rank = rank, .size = size };
	b->in_place = in_place && oci_has_in_place(c) && !aside;
	*call = (struct oc_call){ .collective = c };
	call->root = oci_is_rooted(c) ? root : 0;
	b->send_bytes = oct_blocks_lay(b, true, base, b->send);
	b->recv_bytes = oct_blocks_lay(b, false, base, b->recv);
	if (one_receives)
		call->bytes = oct_blocks_bytes(b, root, rank);
	else if (one_sends)
		call->bytes = oct_blocks_bytes(b, rank, call->root);
	b->send_memory = malloc(b->send_bytes + call->bytes + base);
	b->recv_memory = malloc(b->recv_bytes + call->bytes + base);
	memset(b->recv_memory, OCT_BLOCKS_GARBAGE, b->recv_bytes + call->bytes + base);
	for (uint32_t r = 0; r < size && !one_sends; r++)
		oct_blocks_fill(b, b->send_memory + (base + b->send[r].offset), rank, r);
	if (one_sends)
		oct_blocks_fill(b, b->send_memory, rank, call->root);
	call->send = b->send_memory + (one_sends ? 0 : base);
	call->recv = b->recv_memory + (one_receives ? 0 : base);
	call->send_blocks = one_sends || (aside && one_receives) ? NULL : b->send;
	call->recv_blocks = one_receives || (aside && one_sends) ? NULL : b->recv;
	if (!b->in_place)
		return;
	if (one_receives) {
		call->recv = OC_IN_PLACE;
		return;
	}
	call->send = OC_IN_PLACE;
	if (one_sends)
		oct_blocks_fill(b, b->recv_memory + (base + b->recv[rank].offset), rank,
				call->root);
	for (uint32_t r = 0; r < size && oci_trades(c); r++)
		oct_blocks_fill(b, b->recv_memory + (base + b->recv[r].offset), rank, r);
}

static inline bool oct_blocks_are(const struct oct_blocks *b, const uint8_t *got, uint32_t from)
{
	return oct_filled(got, b->n, from, oct_blocks_shared(b) ? 0 : b->rank,
			  oct_blocks_bytes(b, from, b->rank));
}

/* Every block is right, what is between them as it was. */
static inline bool oct_blocks_right(const struct oct_blocks *b)
{
	bool one_receives = !oci_receives_each(b->call.collective);
	const uint8_t *memory = b->recv_memory;
	size_t at = 0;

	if (one_receives && b->in_place)
		return oct_blocks_are(b, b->send_memory + (1000 + b->send[b->rank].offset),
				      b->call.root);
	if (one_receives)
		return oct_blocks_are(b, memory, b->call.root) &&
		       memory[b->call.bytes] == OCT_BLOCKS_GARBAGE;
	for (uint32_t i = 0; i < b->size && b->call.recv_blocks; i++) {
		uint32_t from = b->rank % 2 ? b->size - 1 - i : i;

		for (size_t j = 0; j < OCT_BLOCKS_GAP; j++) {
			if (memory[at++] != OCT_BLOCKS_GARBAGE)
				return false;
		}
		if (!oct_blocks_are(b, memory + at, from))
			return false;
		at += b->recv[from].bytes;
	}
	return memory[at] == OCT_BLOCKS_GARBAGE;
}

static inline void oct_blocks_free(struct oct_blocks *b)
{
	free(b->send_memory);
	free(b->recv_memory);
}

#endif
