/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rendezvous as its receiver sees it: it copies the message out of the sender's memory, a piece a
 * turn; or, where the pair has no single copy or that fails in between, asks for the rest.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "copy/copy.h"
#include "copy/layout.h"
#include "p2p/p2p.h"

static void foreign_free(struct oci_message *m)
{
	free((void *)(uintptr_t)m->foreign.pieces);
	m->foreign.pieces = NULL;
}

static void tell_done(struct oci_message *m)
{
	foreign_free(m);
	/* Release: we have read the buffer for the last time. Pairs with announced_step(). */
	oci_store_release(&m->line->state, OCI_RENDEZVOUS_DONE);
}

void oci_rendezvous_over(struct oci_p2p *p2p, struct oci_message *m)
{
	const struct oci_region *sender = p2p->team->member[m->source].region;
	uint64_t poison;

	/* A sender that has given up has its buffer back, and may have changed it under our copy.
	 * The bytes were read before this is. Acquire: pairs with the store in oci_team_fail(),
	 * which comes before the sender's call returns. */
	oci_loads_in_order();
	poison = oci_load_acquire(&sender->progress.poison);
	if (poison) {
		foreign_free(m);
		oci_p2p_gave_up(p2p, m->source, poison);
		return;
	}
	tell_done(m);
	oci_receive_finish(m, m->source, m->tag, m->whole);
}

void oci_rendezvous_ask(struct oci_p2p *p2p, struct oci_message *m, enum oci_p2p_method method)
{
	struct oci_rendezvous *line = m->line;

	foreign_free(m);
	if (method == OCI_P2P_STREAM) {
		m->cookie = ++p2p->posts;
		oci_list_add(&p2p->in[m->source].streams, m);
	}
	line->method = method;
	line->at = m->at;
	line->bytes = m->wanted - m->at;
	line->cookie = m->cookie;
	/* Release: the terms come first. Pairs with announced_step(). */
	oci_store_release(&line->state, OCI_RENDEZVOUS_SEND);
}

void oci_rendezvous_begin(struct oci_p2p *p2p, struct oci_message *m)
{
	m->wanted = m->whole < m->bytes ? m->whole : m->bytes;
	m->at = 0;
	m->cookie = 0;
	m->shared = m->stuck = false;
	if (!m->wanted) {
		oci_rendezvous_over(p2p, m);
	} else if (m->method == OCI_P2P_COPY) {
		if (m->wanted >= p2p->limits.share_bytes && !m->pieces && !m->layout.pieces)
			oci_share_invite(m);
		oci_list_add(&p2p->pulling, m);
	} else if (!oci_p2p_is_piped(m->method) || !oci_pipe_begin(p2p, m)) {
		oci_rendezvous_ask(p2p, m, OCI_P2P_STREAM);
	}
}

int oci_p2p_copy(struct oci_p2p *p2p, struct oci_transfer *t, bool polled)
{
	t->alone = true;
	t->never_mapped = p2p->limits.never_mapped;
	t->never_by_pair = p2p->limits.never_by_kernel;
	return oci_transfer_run(p2p->team, t, polled);
}

/* The sender's list of pieces, copied here. 0 or -errno. */
static int foreign_get(struct oci_p2p *p2p, struct oci_message *m)
{
	size_t bytes = (m->pieces + 1) * sizeof(struct oc_piece);
	struct oc_piece *pieces = malloc(bytes);
	struct oci_transfer t = { .peer = m->source,
				  .direction = OCI_PULL,
				  .local = (uintptr_t)pieces,
				  .remote = m->place,
				  .bytes = bytes,
				  .whole = bytes };
	int result = pieces ? oci_p2p_copy(p2p, &t, false) : -ENOMEM;

	if (result < 0) {
		free(pieces);
		return result;
	}
	m->foreign = (struct oc_layout){ pieces, m->pieces };
	return 0;
}

/* The next piece: as many pieces of buffers with gaps as one call takes. */
static int pull(struct oci_p2p *p2p, struct oci_message *m)
{
	size_t rest = m->wanted - m->at, most = p2p->limits.piece_bytes;
	struct oci_transfer t = { .peer = m->source,
				  .direction = OCI_PULL,
				  .local = (uintptr_t)m->buffer + m->at,
				  .remote = m->place + m->at,
				  .bytes = rest < most ? rest : most,
				  .whole = m->wanted };
	int result;

	if (m->pieces && !m->foreign.pieces) {
		result = foreign_get(p2p, m);
		if (result)
			return result;
	}
	if (m->layout.pieces) {
		t.mine = &m->layout;
		t.local = m->at;
	}
	if (m->pieces) {
		t.theirs = &m->foreign;
		t.remote = m->at;
	}
	rest = t.bytes;
	result = oci_p2p_copy(p2p, &t, true);
	m->at += rest - t.bytes;
	return result < 0 ? result : 0;
}

enum pull_result { PULL_NOTHING, PULL_MOVED, PULL_DONE, PULL_STUCK };

static enum pull_result pull_piece(struct oci_p2p *p2p, struct oci_message *m)
{
	int error = pull(p2p, m);

	if (error) {
		/* Not mapped, and no single copy was agreed on. Otherwise the failure is this
		 * buffer's (a page that the kernel does not read for us) or came later. */
		oci_debug("single copy from rank %u failed (%s): it sends the rest", m->source,
			  strerror(-error));
		return PULL_STUCK;
	}
	return m->at < m->wanted ? PULL_MOVED : PULL_DONE;
}

static enum pull_result pull_shared(struct oci_p2p *p2p, struct oci_message *m)
{
	switch (oci_share_pull(p2p, m)) {
	case OCI_SHARE_WAITS:
		return PULL_NOTHING;
	case OCI_SHARE_MOVED:
		return PULL_MOVED;
	case OCI_SHARE_DONE:
		return PULL_DONE;
	default:
		oci_debug("single copy from rank %u failed: it sends the rest", m->source);
		return PULL_STUCK;
	}
}

unsigned int oci_rendezvous_progress(struct oci_p2p *p2p)
{
	struct oci_message *m, *next;
	unsigned int moved = 0;

	for (m = p2p->pulling.first; m; m = next) {
		enum pull_result result = m->shared ? pull_shared(p2p, m) : pull_piece(p2p, m);

		next = m->next;
		moved += result != PULL_NOTHING;
		if (result < PULL_DONE)
			continue;
		oci_list_remove(&p2p->pulling, m);
		if (result == PULL_STUCK) {
			oci_rendezvous_ask(p2p, m, OCI_P2P_STREAM);
			continue;
		}
		oci_rendezvous_over(p2p, m);
	}
	return moved;
}

void oci_p2p_abandon(struct oci_p2p *p2p)
{
	for (struct oci_message *m = p2p->pulling.first; m; m = m->next) {
		if (m->shared)
			oci_share_revoke(p2p, m);
		foreign_free(m);
	}
	oci_list_init(&p2p->pulling);
}
