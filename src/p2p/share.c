/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rendezvous whose both ends copy: the receiver from the front, and the sender, as long as it has
 * nothing better to do than to wait, from the back. Chunks are claimed in the message's line, as
 * src/plan/exec_share.c has it for collectives; a sender that computes costs nothing.
 *
 *   claim   low half: chunks taken from the front, high half: from the back
 *   helped  chunks that the sender has copied; with HELP_FAILED: it cannot, and takes no more
 */
#include <errno.h>

#include "p2p/p2p.h"

#define HELP_FAILED (1ull << 63)
/* An even number, so that two ends which take as long end together; a copy of less is mostly its
 * start, one of more leaves its end to one core alone. AMD EPYC of family 25, two threads of a
 * core, 2026-11-22, us: 64 KiB in 2 chunks 5.8, in 4 9.0; 256 KiB in 4 14.0, in 5 17.0, in 8 17.6;
 * 1 MiB 44.5, 53.5, 48.3. onecopy-pingpong --bytes 65536,262144,1048576 --cpus 0,1 --seconds 0.1
 * --token-ns 0:60 */
#define CHUNK_LEAST ((size_t)32 << 10)
#define CHUNK_MOST ((size_t)512 << 10)

static size_t chunk_of(size_t bytes)
{
	size_t chunk = (bytes / 4 + 4095) & ~(size_t)4095;

	if (chunk < CHUNK_LEAST)
		return CHUNK_LEAST;
	return chunk < CHUNK_MOST ? chunk : CHUNK_MOST;
}

static uint64_t chunks_in(size_t bytes)
{
	return (bytes + chunk_of(bytes) - 1) / chunk_of(bytes);
}

/* All of a chunk: 0 or -errno. */
static int copy_chunk(struct oci_p2p *p2p, uint32_t peer, enum oci_direction direction,
		      uint8_t *local, uint64_t remote, size_t bytes, size_t whole)
{
	for (size_t at = 0; at < bytes;) {
		struct iovec mine = { local + at, bytes - at };
		struct iovec theirs = { (void *)(uintptr_t)(remote + at), bytes - at };
		ssize_t moved = oci_p2p_copy(p2p, peer, direction, &mine, 1, &theirs, 1, whole);

		if (moved == -EINTR)
			continue;
		if (moved <= 0)
			return moved ? (int)moved : -EFAULT;
		at += (size_t)moved;
	}
	return 0;
}

static size_t chunk_length(size_t bytes, uint64_t index)
{
	size_t from = index * chunk_of(bytes);

	return bytes - from < chunk_of(bytes) ? bytes - from : chunk_of(bytes);
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

static int pull_chunk(struct oci_p2p *p2p, const struct oci_message *m, uint64_t index)
{
	size_t at = index * chunk_of(m->wanted);

	return copy_chunk(p2p, m->source, OCI_PULL, (uint8_t *)m->buffer + at, m->place + at,
			  chunk_length(m->wanted, index), m->wanted);
}

/* Our copy of a chunk failed: the sender takes no more, and will send from there on. */
static void give_up(struct oci_message *m, uint64_t index)
{
	uint64_t seen = oci_load_relaxed(&m->line->claim), count = chunks_in(m->wanted);

	m->stuck = true;
	m->at = index * chunk_of(m->wanted);
	while (!oci_compare_exchange(&m->line->claim, &seen,
				     (seen & ~(uint64_t)UINT32_MAX) | (count - (seen >> 32))))
		;
}

int oci_share_pull(struct oci_p2p *p2p, struct oci_message *m)
{
	uint64_t count = chunks_in(m->wanted), before, helped, taken, index;

	if (!m->stuck && oci_claim_chunk(&m->line->claim, 1, count, &before)) {
		if (pull_chunk(p2p, m, before & UINT32_MAX))
			give_up(m, before & UINT32_MAX);
		return OCI_SHARE_MOVED;
	}
	/* Acquire: the sender's bytes are in place. Pairs with oci_share_push(). */
	helped = oci_load_acquire(&m->line->helped);
	taken = oci_load_relaxed(&m->line->claim) >> 32;
	index = count - (helped & ~HELP_FAILED);
	if ((helped & ~HELP_FAILED) < taken && !(helped & HELP_FAILED))
		return OCI_SHARE_WAITS;
	if (m->stuck) {
		m->wanted = index * chunk_of(m->wanted) < m->wanted ? index * chunk_of(m->wanted) :
								      m->wanted;
		return OCI_SHARE_STUCK;
	}
	if ((helped & ~HELP_FAILED) >= taken)
		return OCI_SHARE_DONE;
	/* The one chunk that the sender took and cannot copy; it has left the word for good. */
	if (pull_chunk(p2p, m, index - 1)) {
		give_up(m, index - 1);
		return OCI_SHARE_MOVED;
	}
	oci_store_relaxed(&m->line->helped, helped + 1);
	return OCI_SHARE_MOVED;
}

void oci_share_revoke(struct oci_p2p *p2p, struct oci_message *m)
{
	const struct oci_rendezvous *line = m->line;
	uint64_t helped, taken;

	if (!m->stuck)
		give_up(m, 0);
	do {
		/* Acquire: pairs with oci_share_push(). */
		helped = oci_load_acquire(&line->helped);
		taken = oci_load_relaxed(&line->claim) >> 32;
		oci_cpu_relax();
	} while (!(helped & HELP_FAILED) && helped < taken &&
		 !oci_peer_dead(p2p->team->member[m->source].peer));
}

/* ---- the sender ------------------------------------------------------------------------------ */

bool oci_share_push(struct oci_p2p *p2p, struct oci_message *m)
{
	size_t wanted = m->line->wanted, at;
	uint64_t before, index, helped;

	if (m->stuck || !oci_claim_chunk(&m->line->claim, 1ull << 32, chunks_in(wanted), &before))
		return false;
	index = chunks_in(wanted) - 1 - (before >> 32);
	at = index * chunk_of(wanted);
	helped = oci_load_relaxed(&m->line->helped);
	m->stuck = copy_chunk(p2p, m->peer, OCI_PUSH, (uint8_t *)m->buffer + at,
			      m->line->place + at, chunk_length(wanted, index), wanted);
	/* Release: the copy comes first. Pairs with the acquire in oci_share_pull(). */
	oci_store_release(&m->line->helped, m->stuck ? helped | HELP_FAILED : helped + 1);
	return true;
}
