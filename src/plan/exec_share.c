/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Both ends copy at once: meet in the middle.
 *
 * The range of a SHARE is cut into chunks. The SHARE end takes them from the front, the HELP end
 * from the back, each by one compare-and-swap of the claim word in the SHARE end's auxiliary line,
 * so a late end costs nothing and an idle one helps. The helper counts what it has copied in
 * `helped`; the SHARE end is through when the chunks that the helper took are in that count.
 *
 *   claim   low half: chunks taken from the front, high half: from the back
 *   helped  chunks copied by the helper; with OCI_HELP_FAILED: and the one after that failed, it
 *           takes no more, the SHARE end copies what the helper took and did not copy
 */
#include <errno.h>

#include "copy/layout.h"
#include "copy/map.h"
#include "plan/exec.h"

struct chunks {
	size_t bytes; /* of a chunk; the last may be shorter */
	uint64_t count;
};

static struct chunks chunks_of(size_t bytes)
{
	size_t size = oci_share_chunk(bytes);

	return (struct chunks){ size, (bytes + size - 1) / size };
}

static size_t chunk_length(const struct chunks *chunks, size_t bytes, uint64_t index)
{
	size_t from = index * chunks->bytes;

	return bytes - from < chunks->bytes ? bytes - from : chunks->bytes;
}

/* What the helper took and will not copy: [from, to), to be copied here. */
static bool abandoned(const struct oci_exec *x, uint64_t count, uint64_t *next)
{
	/* Acquire: pairs with the helper's release in help_one(). */
	uint64_t helped = oci_load_acquire(&x->lane->aux.helped);
	uint64_t taken = oci_load_relaxed(&x->lane->aux.claim) >> 32;

	if (!(helped & OCI_HELP_FAILED) || (helped & ~OCI_HELP_FAILED) >= taken)
		return false;
	*next = count - 1 - (helped & ~OCI_HELP_FAILED);
	return true;
}

/* Is all that the helper took copied? Else sets what to wait for. */
static bool help_complete(struct oci_exec *x, uint32_t peer)
{
	uint64_t *helped = &x->lane->aux.helped;
	uint64_t taken = oci_load_relaxed(&x->lane->aux.claim) >> 32;

	/* Acquire: the helper's bytes are in place. Pairs with the release in help_one(). */
	if ((oci_load_acquire(helped) & ~OCI_HELP_FAILED) >= taken)
		return true;
	x->awaited = (struct oci_awaited){ .word = helped, .target = taken, .peer = peer };
	return false;
}

int oci_exec_share(struct oci_exec *x, const struct oci_op *op)
{
	uint32_t peer = oci_rank_of(&x->params, op->peer);
	enum oci_direction direction = op->push ? OCI_PUSH : OCI_PULL;
	uint64_t before, next, remote = 0;
	struct chunks chunks;
	size_t bytes;
	uint8_t *local = oci_exec_local(x, &op->local, &bytes);
	int result;

	if (!bytes)
		return 1;
	result = oci_exec_remote(x, peer, &op->remote, bytes, &remote);
	if (result)
		return result;
	chunks = chunks_of(bytes);
	for (;;) {
		if (!x->in_transfer) {
			if (oci_claim_chunk(&x->lane->aux.claim, 1, chunks.count, &before))
				x->share_chunk = before & UINT32_MAX;
			else if (abandoned(x, chunks.count, &next))
				x->share_chunk = next;
			else
				break;
		}
		result = oci_exec_transfer(x, peer, direction,
					   local + x->share_chunk * chunks.bytes,
					   remote + x->share_chunk * chunks.bytes,
					   chunk_length(&chunks, bytes, x->share_chunk), bytes);
		if (result <= 0)
			return result;
		/* An abandoned chunk is counted for the helper, which has left the word for good.
		 */
		if (oci_load_relaxed(&x->lane->aux.helped) & OCI_HELP_FAILED &&
		    x->share_chunk >= chunks.count - (oci_load_relaxed(&x->lane->aux.claim) >> 32))
			oci_store_relaxed(&x->lane->aux.helped,
					  oci_load_relaxed(&x->lane->aux.helped) + 1);
	}
	return help_complete(x, peer) ? 1 : 0;
}

/* Copies one chunk for a peer. 1 copied, 0 nothing left for us, -errno the team has failed. */
static int help_one(struct oci_exec *x, const struct oci_op *op, uint32_t peer)
{
	struct oci_lane *lane = oci_team_lane(x->team, peer, x->seq);
	const struct oci_copy *copy = oci_copy_mechanism(x->team->member[peer].mechanism);
	struct oci_transfer t = { .seq = x->seq,
				  .peer = peer,
				  .direction = op->push ? OCI_PULL : OCI_PUSH };
	enum oci_mechanism by;
	uint64_t before, remote, helped = oci_load_relaxed(&lane->aux.helped);
	struct oci_range range = op->local;
	struct chunks chunks;
	size_t bytes, length;
	uint64_t index;
	uint8_t *local;
	ssize_t moved = 0;
	int result;

	if (op->by_peer)
		range.block = peer;
	local = oci_exec_local(x, &range, &bytes);
	if (!bytes || helped & OCI_HELP_FAILED)
		return 0;
	result = oci_exec_remote(x, peer, &op->remote, bytes, &remote);
	if (result)
		return result;
	/* Who can copy nothing takes nothing. Pieces of a layout are not looked at here: if they
	 * are out of reach, what was taken is given back below. */
	if (!copy->pull && !oci_is_laid_out(remote) && !oci_map_reach(x->team, peer, remote, bytes))
		return 0;
	chunks = chunks_of(bytes);
	if (!oci_claim_chunk(&lane->aux.claim, 1ull << 32, chunks.count, &before))
		return 0;
	index = chunks.count - 1 - (before >> 32);
	length = chunk_length(&chunks, bytes, index);
	t.local = (uintptr_t)local + index * chunks.bytes;
	t.remote = remote + index * chunks.bytes;
	t.foreign = oci_exec_foreign(x, remote);
	t.whole = bytes;
	for (size_t at = 0; at < length; at += (size_t)moved) {
		moved = oci_copy_places(x->team, &t, length - at, &by);
		if (moved <= 0)
			break;
		x->moved |= oci_exec_moved_by(1u << by);
		t.local += (uint64_t)moved;
		t.remote += (uint64_t)moved;
	}
	/* Release: our bytes come before the count. Pairs with the acquire at the SHARE end. */
	oci_store_release(&lane->aux.helped, moved > 0 ? helped + 1 : helped | OCI_HELP_FAILED);
	return moved == -ECANCELED ? oci_exec_gave_up(x, peer) : 1;
}

int oci_exec_help(struct oci_exec *x, const struct oci_op *op)
{
	uint32_t polls = x->polls;
	bool waiting, copied;

	do {
		waiting = copied = false;
		for (uint32_t i = 0; i < op->peers; i++) {
			uint32_t v = op->peer + i;
			uint32_t peer = oci_rank_of(&x->params,
						    v >= x->params.size ? v - x->params.size : v);
			int result;

			/* One look each: whoever has posted is helped first. */
			x->polls = 1;
			result = oci_exec_posted(x, peer, 1);
			x->polls = polls;
			if (result < 0)
				return result;
			if (!result) {
				waiting = true;
				continue;
			}
			result = help_one(x, op, peer);
			if (result < 0)
				return result;
			copied |= result;
		}
	} while (copied);
	return waiting ? 0 : 1;
}
