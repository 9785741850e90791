/* SPDX-License-Identifier: BSD-3-Clause */
/* The checker's v-variants: which bytes go where, and where they lie. */
#include "lab/check/check_world.h"

/* Bytes that a call means rank `from` to send to rank `to`. */
static size_t bytes_of(const struct oci_world *w, const struct oci_check_call *call, uint32_t from,
		       uint32_t to)
{
	/* All get the same block of a rank. */
	if (!oci_sends_each(call->collective) && !oci_is_rooted(call->collective))
		to = 0;
	if (call->in_place && oci_trades(call->collective) && from > to)
		return bytes_of(w, call, to, from);
	return call->from_to[(size_t)from * w->check->size + to];
}

size_t oci_blocks_mine(const struct oci_world *w, const struct oci_check_call *call, uint32_t rank)
{
	if (!oci_counts_received(call->collective))
		return bytes_of(w, call, call->root, rank);
	return oci_counts_sent(call->collective) ? 0 : bytes_of(w, call, rank, call->root);
}

/* The n-th block in memory. */
static uint32_t in_order(const struct oci_world *w, uint32_t rank, uint32_t n)
{
	return rank % 2 ? w->check->size - 1 - n : n;
}

size_t oci_blocks_place(const struct oci_world *w, const struct oci_check_call *call, uint32_t rank,
			bool sends, struct oc_block *blocks)
{
	size_t at = 0;

	for (uint32_t n = 0; n < w->check->size; n++) {
		uint32_t other = in_order(w, rank, n);
		size_t bytes = sends ? bytes_of(w, call, rank, other) :
				       bytes_of(w, call, other, rank);

		at += call->gap;
		blocks[other] = (struct oc_block){ .offset = at, .bytes = bytes };
		at += bytes;
	}
	return at + call->gap;
}

/* Where in its SEND rank `from` has what it sends to `to`. */
static size_t sent_from(const struct oci_world *w, const struct oci_check_call *call, uint32_t from,
			uint32_t to)
{
	size_t at = 0;

	if (!oci_counts_sent(call->collective))
		return 0;
	for (uint32_t n = 0; n < w->check->size; n++) {
		uint32_t other = in_order(w, from, n);

		at += call->gap;
		if (other == to)
			break;
		at += bytes_of(w, call, from, other);
	}
	return at;
}

static int check_block(struct oci_world *w, const struct oci_actor *a, const struct oci_view *recv,
		       size_t at, uint32_t from, size_t bytes)
{
	const struct oci_check_call *call = oci_world_call(w, a->call);

	return oci_symbol_block(w, a, recv, at, from, sent_from(w, call, from, a->rank), bytes);
}

/* As the user left it, who fills all of what is SEND too. */
static int check_gap(struct oci_world *w, const struct oci_actor *a, const struct oci_view *recv,
		     size_t at, size_t end)
{
	uint64_t owner = oci_symbol_owner(w, a->call, a->rank);

	for (size_t i = at; i < end; i++) {
		uint64_t before = a->plan->key.in_place ?
					  oci_symbol_user(owner, i) :
					  oci_memory_left(recv->region, recv->base + i);

		if (recv->region->cells[recv->base + i].value != before)
			return oci_world_fail(w, a, "RECV[%zu], between blocks, was changed", i);
	}
	return 0;
}

int oci_blocks_check(struct oci_world *w, const struct oci_actor *a, const struct oci_view *recv)
{
	const struct oci_check_call *call = oci_world_call(w, a->call);
	const struct oc_block *blocks = oci_world_place(w, a->call, a->rank)->recv_blocks;
	size_t at = 0;
	int rc = 0;

	if (!oci_counts_received(call->collective))
		return check_block(w, a, recv, 0, call->root, recv->bytes);
	for (uint32_t n = 0; n < w->check->size && !rc; n++) {
		uint32_t from = in_order(w, a->rank, n);
		size_t offset = blocks[from].offset;

		rc = check_gap(w, a, recv, at, offset);
		if (!rc)
			rc = check_block(w, a, recv, offset, from,
					 bytes_of(w, call, from, a->rank));
		at = offset + blocks[from].bytes;
	}
	return rc ? rc : check_gap(w, a, recv, at, recv->bytes);
}
