/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rendezvous whose both ends copy (copy/chunks.h): the receiver is the front, and the sender the
 * back, as long as it has nothing better to do than to wait. The words lie in the message's line. A
 * sender that computes costs nothing.
 */
#include "copy/chunks.h"
#include "p2p/p2p.h"

static struct oci_chunks chunks_of(const struct oci_message *m, size_t wanted)
{
	return oci_chunks_of(&m->line->claim, &m->line->helped, wanted, OCI_CHUNKS_MESSAGE);
}

/* 0 or -errno. */
static int copy_chunk(struct oci_p2p *p2p, const struct oci_message *m, uint32_t peer,
		      enum oci_direction direction, uint64_t place, const struct oci_chunks *chunks,
		      uint64_t index)
{
	struct oci_transfer t = { .peer = peer,
				  .direction = direction,
				  .local = (uintptr_t)m->buffer + oci_chunk_at(chunks, index),
				  .remote = place + oci_chunk_at(chunks, index),
				  .bytes = oci_chunk_length(chunks, index),
				  .whole = chunks->bytes };
	int result = oci_p2p_copy(p2p, &t, false);

	return result < 0 ? result : 0;
}

/* ---- the receiver ---------------------------------------------------------------------------- */

void oci_share_invite(struct oci_message *m)
{
	m->shared = true;
	m->line->place = (uintptr_t)m->buffer;
	m->line->wanted = m->wanted;
	oci_store_relaxed(&m->line->claim, 0);
	oci_store_relaxed(&m->line->helped, 0);
	/* Release: the terms come first. Pairs with announced_step(). */
	oci_store_release(&m->line->state, OCI_RENDEZVOUS_HELP);
}

int oci_share_pull(struct oci_p2p *p2p, struct oci_message *m)
{
	struct oci_chunks chunks = chunks_of(m, m->wanted);
	uint64_t index;
	enum oci_chunks_state state = oci_chunks_take(&chunks, &index);

	if (state == OCI_CHUNKS_WAIT)
		return OCI_SHARE_WAITS;
	if (m->stuck) {
		size_t end = oci_chunk_at(&chunks, oci_chunks_helped_from(&chunks));

		if (end < m->wanted)
			m->wanted = end;
		return OCI_SHARE_STUCK;
	}
	if (state == OCI_CHUNKS_OVER)
		return OCI_SHARE_DONE;
	if (copy_chunk(p2p, m, m->source, OCI_PULL, m->place, &chunks, index)) {
		/* The sender will send from there on. */
		m->stuck = true;
		m->at = oci_chunk_at(&chunks, index);
		oci_chunks_stop(&chunks);
	} else {
		oci_chunks_taken(&chunks, index);
	}
	return OCI_SHARE_MOVED;
}

void oci_share_revoke(struct oci_p2p *p2p, struct oci_message *m)
{
	struct oci_chunks chunks = chunks_of(m, m->wanted);
	uint64_t none;

	oci_chunks_stop(&chunks);
	while (oci_chunks_take(&chunks, &none) == OCI_CHUNKS_WAIT &&
	       !oci_peer_dead(p2p->team->member[m->source].peer))
		oci_cpu_relax();
}

/* ---- the sender ------------------------------------------------------------------------------ */

bool oci_share_push(struct oci_p2p *p2p, struct oci_message *m)
{
	struct oci_chunks chunks = chunks_of(m, m->line->wanted);
	uint64_t index;

	if (!oci_chunks_help(&chunks, &index))
		return false;
	oci_chunks_helped(&chunks,
			  !copy_chunk(p2p, m, m->peer, OCI_PUSH, m->line->place, &chunks, index));
	return true;
}
