/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Offers: blocks of different sizes, each by the way that its size says (plan/plan.h).
 *
 * The owner fills its payload and slot before the POST, whose release comes after all of it; a peer
 * reads them after it has acquired that POST. Payload and slot are the operation's until all ranks
 * have finished it, so nobody is waited for but the readers of LARGE blocks.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "plan/exec.h"

/* Of which so many bytes are used, for blocks of `block`. 1; 0: no slot is free now; or -errno: the
 * team has failed. */
static int need_slot(struct oci_exec *x, size_t bytes, size_t block)
{
	if (x->slot)
		return 1;
	x->slot_room = (uint32_t)bytes;
	x->slot_offset = oci_slot_acquire(x->team, x->seq, bytes, block);
	if (x->slot_offset < 0)
		return oci_exec_no_slot(x, (int)x->slot_offset);
	x->slot = (uint8_t *)oci_segment_base() + x->slot_offset;
	((struct oci_offer_head *)x->lane->post.inline_bytes)->slot = (uint64_t)x->slot_offset;
	return 1;
}

/* Where the word is that says of 64 cells whether they are LARGE. */
static uint64_t *large_word(const struct oci_offer *offer, uint8_t *payload, uint8_t *slot,
			    uint32_t cell)
{
	if (offer->in_slot)
		return (uint64_t *)slot + cell / 64;
	return &((struct oci_offer_head *)payload)->large;
}

static void used_slot(struct oci_exec *x, size_t end)
{
	x->moved |= OCI_MOVED_SLOT;
	if (end > x->slot_used)
		x->slot_used = (uint32_t)end;
}

static int offer_cell(struct oci_exec *x, const struct oci_op *op, uint32_t cell)
{
	const struct oci_offer *offer = &op->offer;
	struct oci_range range = oci_exec_block_of(op, oci_exec_peer(x, op, cell));
	size_t bytes, at = offer->first + (size_t)cell * offer->cell_bytes;
	const uint8_t *from = oci_exec_local(x, &range, &bytes);
	uint8_t *payload = x->lane->post.inline_bytes;
	uint8_t *to = (offer->in_slot ? x->slot : payload) + at;
	struct oci_offered offered = { .address = (uintptr_t)from, .bytes = bytes };
	size_t in_cell = bytes;
	int result;

	/* Of no length, where a small one of an earlier operation may have left its own. */
	if (!bytes && !op->address && !offer->in_slot)
		memcpy(to, &offered.bytes, sizeof(offered.bytes));
	if (!bytes || (op->address && bytes <= op->limit))
		return 1;
	if (bytes > op->limit) {
		in_cell = sizeof(offered);
		memcpy(to, &offered, in_cell);
		*large_word(offer, payload, x->slot, cell) |= 1ull << cell % 64;
	} else if (bytes <= offer->cell_bytes) {
		oci_exec_copy_bytes(x, to, from, bytes);
		x->moved |= offer->in_slot ? 0 : OCI_MOVED_INLINE;
	} else {
		result = need_slot(x, op->peers == 1 ? bytes : OCI_SLOT_BYTES, bytes);
		if (result != 1)
			return result;
		memcpy(to, &offered.bytes, sizeof(offered.bytes));
		in_cell = sizeof(offered.bytes);
		oci_exec_copy_bytes(x, x->slot + (size_t)cell * offer->small_bytes, from, bytes);
		used_slot(x, (size_t)cell * offer->small_bytes + bytes);
	}
	if (offer->in_slot)
		used_slot(x, at + in_cell);
	else if (at + in_cell > x->payload)
		x->payload = (uint32_t)(at + in_cell);
	return 1;
}

int oci_exec_offer(struct oci_exec *x, const struct oci_op *op)
{
	struct oci_offer_head *head = (struct oci_offer_head *)x->lane->post.inline_bytes;
	int result;

	if (!x->at) {
		x->slot = NULL;
		*head = (struct oci_offer_head){ 0 };
		x->payload = sizeof(*head);
		if (op->offer.in_slot) {
			result = need_slot(x, OCI_SLOT_BYTES, OCI_SLOT_BYTES);
			if (result != 1)
				return result;
			memset(x->slot, 0, op->offer.first);
		}
	}
	for (; x->at < op->peers; x->at++) {
		result = offer_cell(x, op, x->at);
		if (result != 1)
			return result;
	}
	x->at = 0;
	return 1;
}

/* The ranks disagree on the size of a block. */
static int differ(struct oci_exec *x, uint32_t peer, size_t mine, bool large, uint64_t theirs)
{
	uint32_t me = oci_team_name(x->team, x->team->rank), other = oci_team_name(x->team, peer);
	char text[64];

	if (large)
		snprintf(text, sizeof(text), "%llu bytes", (unsigned long long)theirs);
	else
		snprintf(text, sizeof(text), "another number of bytes");
	return oci_team_fail(x->team, -EPROTO, (int)peer,
			     "mismatched %s: the block between ranks %u and %u has %zu bytes on "
			     "rank %u and %s on rank %u; what one sends must be as long as what "
			     "the other expects",
			     oci_collective_name(x->record.collective), me, other, mine, me, text,
			     other);
}

/* The offset of a peer's slot; 0: it needed none. */
static uint64_t slot_of(const struct oci_exec *x, uint32_t peer)
{
	const uint8_t *payload = oci_team_lane(x->team, peer, x->seq)->post.inline_bytes;

	return ((const struct oci_offer_head *)payload)->slot;
}

/* A peer's offer: its slot, and the cell that is for me. 1, or -errno: it is of another size. */
static int find_cell(struct oci_exec *x, const struct oci_op *op, uint32_t peer, size_t bytes,
		     uint8_t **slot, const uint8_t **cell)
{
	const struct oci_offer *offer = &op->offer;
	uint8_t *payload = oci_team_lane(x->team, peer, x->seq)->post.inline_bytes;
	size_t at = offer->first + (size_t)offer->cell * offer->cell_bytes;
	bool large;

	*slot = x->team->member[peer].peer->base + slot_of(x, peer);
	*cell = (offer->in_slot ? *slot : payload) + at;
	large = *large_word(offer, payload, *slot, offer->cell) >> offer->cell % 64 & 1;
	return large == (bytes > op->limit) ? 1 : differ(x, peer, bytes, false, 0);
}

int oci_exec_offered_at(struct oci_exec *x, const struct oci_op *op, uint32_t peer, size_t bytes,
			uint64_t *address)
{
	struct oci_offered offered;
	const uint8_t *cell;
	uint8_t *slot;
	int result = find_cell(x, op, peer, bytes, &slot, &cell);

	if (result != 1)
		return result;
	memcpy(&offered, cell, sizeof(offered));
	if (offered.bytes != bytes)
		return differ(x, peer, bytes, true, offered.bytes);
	*address = offered.address;
	return 1;
}

int oci_exec_offered(struct oci_exec *x, const struct oci_op *op)
{
	const struct oci_offer *offer = &op->offer;
	uint32_t peer = oci_exec_peer(x, op, 0);
	size_t bytes;
	uint8_t *slot, *local = oci_exec_local(x, &op->local, &bytes);
	const uint8_t *cell;
	uint64_t address = 0;
	int result;

	/* Its POST was not awaited then: the payload may still be another operation's. */
	if (!bytes || !oci_when_holds(op->when, bytes, op->limit))
		return 1;
	if (bytes > op->limit) {
		result = oci_exec_offered_at(x, op, peer, bytes, &address);
		if (result != 1)
			return result;
		return oci_exec_transfer(x, peer, op->code == OCI_OP_TAKE ? OCI_PULL : OCI_PUSH,
					 local, address, bytes, bytes);
	}
	result = find_cell(x, op, peer, bytes, &slot, &cell);
	if (result != 1)
		return result;
	if (bytes > offer->cell_bytes) {
		uint64_t theirs;

		/* Behind what the peer needs its slot may end, and the segment too. Of a tiny block
		 * these are its own bytes; if they happen to be this number, and another cell has
		 * taken the slot, it is a whole one: old bytes are read, but none beyond. */
		memcpy(&theirs, cell, sizeof(theirs));
		if (theirs != bytes || !slot_of(x, peer))
			return differ(x, peer, bytes, false, 0);
		cell = slot + (size_t)offer->cell * offer->small_bytes;
	}
	oci_exec_copy_bytes(x, local, cell, bytes);
	x->moved |= offer->in_slot || bytes > offer->cell_bytes ? OCI_MOVED_SLOT : OCI_MOVED_INLINE;
	return 1;
}
