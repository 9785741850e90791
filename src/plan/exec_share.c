/* SPDX-License-Identifier: BSD-3-Clause */
/* Both ends copy at once (copy/chunks.h): the SHARE end is the front, the HELP end the back. */
#include <errno.h>

#include "copy/chunks.h"
#include "copy/layout.h"
#include "copy/map.h"
#include "plan/exec.h"

/* What this end copies next: a chunk, or, through slots, all that the other end has not taken. */
static enum oci_chunks_state take(struct oci_exec *x, const struct oci_chunks *chunks,
				  size_t *bytes)
{
	uint64_t count = x->way.slots ? oci_chunks_take_rest(chunks, &x->share_chunk) : 0;
	enum oci_chunks_state state;

	if (count) {
		*bytes = oci_chunk_lengths(chunks, x->share_chunk, count);
		return OCI_CHUNKS_TAKEN;
	}
	state = oci_chunks_take(chunks, &x->share_chunk);
	if (state == OCI_CHUNKS_TAKEN)
		*bytes = oci_chunk_length(chunks, x->share_chunk);
	return state;
}

int oci_exec_share(struct oci_exec *x, const struct oci_op *op)
{
	uint32_t peer = oci_exec_peer(x, op, 0);
	struct oci_aux_line *aux = &x->lane->aux;
	struct oci_chunks chunks;
	uint64_t remote = 0;
	size_t bytes, next = 0;
	uint8_t *local = oci_exec_local(x, &op->local, &bytes);
	int result;

	if (!bytes)
		return 1;
	result = oci_exec_remote(x, peer, &op->remote, bytes, &remote);
	if (result)
		return result;
	chunks = oci_chunks_of(&aux->claim, &aux->helped, bytes, OCI_CHUNKS_SHARE);
	if (!x->in_share)
		oci_exec_way_choose(x, peer, remote, bytes);
	x->in_share = true;
	for (;;) {
		if (!x->in_transfer) {
			switch (take(x, &chunks, &next)) {
			case OCI_CHUNKS_OVER:
				x->in_share = false;
				return 1;
			case OCI_CHUNKS_WAIT:
				x->awaited = (struct oci_awaited){ .word = &aux->helped,
								   .target = x->share_chunk,
								   .peer = peer };
				return 0;
			default:
				break;
			}
		}
		result = oci_exec_transfer(x, peer, op->push ? OCI_PUSH : OCI_PULL,
					   local + oci_chunk_at(&chunks, x->share_chunk),
					   remote + oci_chunk_at(&chunks, x->share_chunk), next,
					   bytes);
		if (result <= 0)
			return result;
		oci_chunks_taken(&chunks, x->share_chunk);
	}
}

/* Copies one chunk for a peer. 1 copied, 0 nothing left for us, -errno the team has failed. */
static int help_one(struct oci_exec *x, const struct oci_op *op, uint32_t peer)
{
	struct oci_aux_line *aux = &oci_team_lane(x->team, peer, x->seq)->aux;
	struct oci_transfer t = { .seq = x->seq,
				  .peer = peer,
				  .direction = op->push ? OCI_PULL : OCI_PUSH,
				  .alone = true };
	struct oci_range range = oci_exec_block_of(op, peer);
	struct oci_chunks chunks;
	uint64_t index, remote;
	size_t bytes;
	uint8_t *local;
	int result;

	local = oci_exec_local(x, &range, &bytes);
	if (!bytes)
		return 0;
	result = oci_exec_remote(x, peer, &op->remote, bytes, &remote);
	if (result)
		return result;
	/* It asks for help by a slot, in any wait. */
	if (oci_exec_way_by_slots(x, peer, (uintptr_t)local, remote, bytes))
		return 0;
	/* Who can copy nothing takes nothing. Pieces of a layout are not looked at here: if they
	 * are out of reach, what was taken is given back below. */
	if (!oci_copy_mechanism(x->team->member[peer].mechanism)->pull &&
	    !oci_is_laid_out(remote) && !oci_map_reach(x->team, peer, remote, bytes))
		return 0;
	chunks = oci_chunks_of(&aux->claim, &aux->helped, bytes, OCI_CHUNKS_SHARE);
	if (!oci_chunks_help(&chunks, &index))
		return 0;
	t.local = (uintptr_t)local + oci_chunk_at(&chunks, index);
	t.remote = remote + oci_chunk_at(&chunks, index);
	t.bytes = oci_chunk_length(&chunks, index);
	t.whole = bytes;
	t.by_cpu = oci_exec_by_cpu(x, peer, bytes);
	t.foreign = oci_exec_foreign(x, remote);
	result = oci_transfer_run(x->team, &t, false);
	x->moved |= oci_exec_moved_by(t.moved_by);
	oci_chunks_helped(&chunks, result == OCI_TRANSFER_DONE);
	return result == -ECANCELED ? oci_exec_gave_up(x, peer) : 1;
}

int oci_exec_help(struct oci_exec *x, const struct oci_op *op)
{
	uint32_t polls = x->polls;
	bool waiting, copied;

	do {
		waiting = copied = false;
		for (uint32_t i = 0; i < op->peers; i++) {
			uint32_t peer = oci_exec_peer(x, op, i);
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
