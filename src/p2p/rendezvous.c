/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rendezvous: the receiver copies the message out of the sender's memory, a piece a turn; or,
 * where the pair has no single copy or that fails in between, asks for the rest.
 *
 * From OCI_P2P_SHARE_BYTES on both ends copy (copy/chunks.h): the receiver is the front, and the
 * sender the back, as long as it has nothing better to do than to wait. The words lie in the
 * message's line. A sender that computes costs nothing.
 */
#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "copy/chunks.h"
#include "copy/copy.h"
#include "copy/layout.h"
#include "copy/memcpy.h"
#include "p2p/p2p.h"

/* Of a single copy in one turn. */
#define PIECE_BYTES ((size_t)1 << 20)

void oci_rendezvous_over(struct oci_p2p *p2p, struct oci_message *m)
{
	const struct oci_region *sender = p2p->team->member[m->source].region;
	uint64_t poison;

	/* A sender that has given up has its buffer back, and may have changed it under our copy.
	 * The bytes were read before this is. Acquire: pairs with the store in oci_team_fail(),
	 * which comes before the sender's call returns. */
	oci_loads_in_order();
	poison = oci_load_acquire(&sender->progress.poison);
	oci_layout_free(&m->foreign);
	if (poison) {
		oci_p2p_gave_up(p2p->team, m->source, poison, false);
		return;
	}
	/* Release: we have read the buffer for the last time. Pairs with announced_step(). */
	oci_store_release(&m->line->state, OCI_RENDEZVOUS_DONE);
	oci_receive_finish(m, m->source, m->tag, m->whole);
}

void oci_rendezvous_ask(struct oci_p2p *p2p, struct oci_message *m, enum oci_p2p_method method)
{
	struct oci_rendezvous *line = m->line;

	oci_layout_free(&m->foreign);
	if (method == OCI_P2P_STREAM) {
		m->cookie = ++p2p->posts;
		TAILQ_INSERT_TAIL(&p2p->in[m->source].streams, m, on);
	}
	line->method = method;
	line->at = m->at;
	line->bytes = m->wanted - m->at;
	line->cookie = m->cookie;
	/* Release: the terms come first. Pairs with announced_step(). */
	oci_store_release(&line->state, OCI_RENDEZVOUS_SEND);
}

void oci_rendezvous_ask_rest(struct oci_p2p *p2p, struct oci_message *m)
{
	m->cookie = ++p2p->posts;
	TAILQ_INSERT_TAIL(&p2p->in[m->source].streams, m, on);
	m->line->rest_at = m->at;
	m->line->rest_cookie = m->cookie;
	/* Release: the terms come first. Pairs with announced_step(). */
	oci_store_release(&m->line->state, OCI_RENDEZVOUS_REST);
}

/* "Help, if you only wait." */
static void invite(const struct oci_team *team, struct oci_message *m)
{
	if (team->any_kmod)
		oci_register((uintptr_t)m->buffer, m->wanted);
	m->shared = true;
	m->line->place = (uintptr_t)m->buffer;
	m->line->wanted = m->wanted;
	oci_store_relaxed(&m->line->claim, 0);
	oci_store_relaxed(&m->line->helped, 0);
	/* Release: the terms come first. Pairs with announced_step(). */
	oci_store_release(&m->line->state, OCI_RENDEZVOUS_HELP);
}

static bool goes_past(const struct oci_pulled *pulled)
{
	return oci_memcpy_goes_past(pulled->most, pulled->most);
}

static void set_pulled(struct oci_pulled *pulled, size_t bytes)
{
	pulled->now = bytes;
	if (!bytes || bytes > pulled->most)
		pulled->most = bytes;
}

static void tell_pulled(struct oci_p2p *p2p)
{
	uint64_t *told = &p2p->team->own->progress.p2p_streams;
	uint64_t streams = (goes_past(&p2p->pulled) ? OCI_STREAMS_ALL : 0) |
			   (goes_past(&p2p->pulled_near) ? OCI_STREAMS_NEAR : 0);

	/* Relaxed: right bytes come either way. Not written for nothing, as peers read the line. */
	if (streams != oci_load_relaxed(told))
		oci_store_relaxed(told, streams);
}

/*
 * Receives that copy at the same time fill the caches together, each with its source and its
 * destination, and DMAmin is what all of them may have: of 8 ranks of paper 001 (section 4.3), each
 * of which received 7 messages at a time, an engine was of use from 200 KiB on, where one message
 * alone had to have 1 MiB. Senders that help are told. Of benchmarks that receive all into one
 * buffer the first counts. Those from ranks that share a cache count by themselves, too, as engines
 * copy the others first: oci_exec_by_cpu().
 */
static void pull_from_now(struct oci_p2p *p2p, struct oci_message *m)
{
	const struct oci_message *last = TAILQ_LAST(&p2p->pulling, oci_messages);

	m->counted = m->wanted;
	if (last && last->buffer == m->buffer && !m->layout.pieces)
		m->counted = 0;
	TAILQ_INSERT_TAIL(&p2p->pulling, m, on);
	set_pulled(&p2p->pulled, p2p->pulled.now + m->counted);
	if (oci_near_peer(p2p->team, m->source))
		set_pulled(&p2p->pulled_near, p2p->pulled_near.now + m->counted);
	tell_pulled(p2p);
}

static void pull_no_more(struct oci_p2p *p2p, struct oci_message *m)
{
	TAILQ_REMOVE(&p2p->pulling, m, on);
	set_pulled(&p2p->pulled, p2p->pulled.now - m->counted);
	if (oci_near_peer(p2p->team, m->source))
		set_pulled(&p2p->pulled_near, p2p->pulled_near.now - m->counted);
	tell_pulled(p2p);
}

void oci_rendezvous_begin(struct oci_p2p *p2p, struct oci_message *m)
{
	m->wanted = m->whole < m->bytes ? m->whole : m->bytes;
	m->at = 0;
	m->cookie = 0;
	m->turn = 0;
	m->shared = m->stuck = false;
	if (!m->wanted) {
		oci_rendezvous_over(p2p, m);
	} else if (m->method == OCI_P2P_COPY) {
		if (m->wanted >= OCI_P2P_SHARE_BYTES && !m->sender.pieces && !m->layout.pieces)
			invite(p2p->team, m);
		pull_from_now(p2p, m);
	} else if (!(oci_p2p_is_piped(m->method) || oci_pipe_choose(&p2p->in[m->source], m)) ||
		   !oci_pipe_begin(p2p, m)) {
		oci_rendezvous_ask(p2p, m, OCI_P2P_STREAM);
	}
}

/* ---- the copy -------------------------------------------------------------------------------- */

static size_t larger(size_t a, size_t b)
{
	return a > b ? a : b;
}

/* Alone, as the other end may be elsewhere, and as far as the limits allow. */
static struct oci_transfer transfer_of(const struct oci_p2p *p2p, uint32_t peer,
				       enum oci_direction direction, size_t whole)
{
	bool near = oci_near_peer(p2p->team, peer);
	size_t by_cpu = whole;
	uint64_t told;

	/* The last of many into one buffer: not counted, when the first is over. */
	if (direction == OCI_PULL) {
		by_cpu = larger(whole, near ? p2p->pulled_near.most : p2p->pulled.most);
		whole = larger(whole, p2p->pulled.most);
	} else {
		told = oci_load_relaxed(&p2p->team->member[peer].region->progress.p2p_streams);
		if (told & (near ? OCI_STREAMS_NEAR : OCI_STREAMS_ALL))
			by_cpu = SIZE_MAX;
		if (told & OCI_STREAMS_ALL)
			whole = SIZE_MAX;
	}
	return (struct oci_transfer){ .peer = peer,
				      .direction = direction,
				      .whole = whole,
				      .by_cpu = by_cpu,
				      .alone = true,
				      .never_mapped = p2p->limits.never_mapped,
				      .never_by_pair = p2p->limits.never_by_pair };
}

/* The next piece: as many pieces of buffers with gaps as one call takes. */
static int pull_piece(struct oci_p2p *p2p, struct oci_message *m)
{
	struct oci_transfer t = transfer_of(p2p, m->source, OCI_PULL, m->wanted);
	size_t rest = m->wanted - m->at;
	int result;

	if (rest > PIECE_BYTES)
		rest = PIECE_BYTES;
	if (m->sender.pieces && !m->foreign.pieces) {
		result = oci_layout_fetch(p2p->team, &t, m->sender.place, m->sender.pieces,
					  &m->foreign);
		if (result)
			return result;
	}
	t.bytes = rest;
	t.mine = m->layout.pieces ? &m->layout : NULL;
	t.local = t.mine ? m->at : (uintptr_t)m->buffer + m->at;
	t.theirs = m->sender.pieces ? &m->foreign : NULL;
	t.remote = t.theirs ? m->at : m->sender.place + m->at;
	result = oci_transfer_run(p2p->team, &t, true);
	m->at += rest - t.bytes;
	return result < 0 ? result : 0;
}

static struct oci_chunks chunks_of(const struct oci_message *m, size_t wanted)
{
	return oci_chunks_of(&m->line->claim, &m->line->helped, wanted, OCI_CHUNKS_MESSAGE);
}

/* Of either end, whose buffers are dense. 0 or -errno. */
static int copy_chunk(struct oci_p2p *p2p, const struct oci_message *m, uint32_t peer,
		      enum oci_direction direction, uint64_t place, const struct oci_chunks *chunks,
		      uint64_t index)
{
	struct oci_transfer t = transfer_of(p2p, peer, direction, chunks->bytes);
	int result;

	t.bytes = oci_chunk_length(chunks, index);
	t.local = (uintptr_t)m->buffer + oci_chunk_at(chunks, index);
	t.remote = place + oci_chunk_at(chunks, index);
	result = oci_transfer_run(p2p->team, &t, false);
	return result < 0 ? result : 0;
}

bool oci_rendezvous_help(struct oci_p2p *p2p, struct oci_message *m)
{
	struct oci_chunks chunks = chunks_of(m, m->line->wanted);
	uint64_t index;

	if (!oci_chunks_help(&chunks, &index))
		return false;
	oci_chunks_helped(&chunks,
			  !copy_chunk(p2p, m, m->peer, OCI_PUSH, m->line->place, &chunks, index));
	return true;
}

enum pull_result { PULL_WAITS, PULL_MOVED, PULL_DONE, PULL_STUCK };

/* Not mapped, and no single copy was agreed on; otherwise the failure is this buffer's (a page that
 * the kernel does not read for us) or came later. */
static void say_stuck(const struct oci_message *m, int error)
{
	oci_debug("single copy from rank %u failed (%s): it sends the rest", m->source,
		  strerror(-error));
}

/* PULL_STUCK: the bytes from m->at up to m->wanted must be sent. */
static enum pull_result pull(struct oci_p2p *p2p, struct oci_message *m)
{
	int error = pull_piece(p2p, m);

	if (error) {
		say_stuck(m, error);
		return PULL_STUCK;
	}
	return m->at < m->wanted ? PULL_MOVED : PULL_DONE;
}

static enum pull_result pull_shared(struct oci_p2p *p2p, struct oci_message *m)
{
	struct oci_chunks chunks = chunks_of(m, m->wanted);
	uint64_t index;
	enum oci_chunks_state state = oci_chunks_take(&chunks, &index);
	int error;

	if (state == OCI_CHUNKS_WAIT)
		return PULL_WAITS; /* for the sender's last chunk */
	if (m->stuck) {
		size_t end = oci_chunk_at(&chunks, oci_chunks_helped_from(&chunks));

		if (end < m->wanted)
			m->wanted = end;
		return PULL_STUCK;
	}
	if (state == OCI_CHUNKS_OVER)
		return PULL_DONE;
	error = copy_chunk(p2p, m, m->source, OCI_PULL, m->sender.place, &chunks, index);
	if (error) {
		say_stuck(m, error);
		/* The sender will send from there on. */
		m->stuck = true;
		m->at = oci_chunk_at(&chunks, index);
		oci_chunks_stop(&chunks);
	} else {
		oci_chunks_taken(&chunks, index);
	}
	return PULL_MOVED;
}

unsigned int oci_rendezvous_progress(struct oci_p2p *p2p)
{
	struct oci_message *m, *next;
	unsigned int moved = 0;

	for (m = TAILQ_FIRST(&p2p->pulling); m; m = next) {
		enum pull_result result = m->shared ? pull_shared(p2p, m) : pull(p2p, m);

		next = TAILQ_NEXT(m, on);
		moved += result != PULL_WAITS;
		if (result < PULL_DONE)
			continue;
		pull_no_more(p2p, m);
		if (result == PULL_STUCK)
			oci_rendezvous_ask(p2p, m, OCI_P2P_STREAM);
		else
			oci_rendezvous_over(p2p, m);
	}
	return moved;
}

/* The receiver's team has failed: the sender writes no more when this returns. */
static void take_back(struct oci_p2p *p2p, struct oci_message *m)
{
	struct oci_chunks chunks = chunks_of(m, m->wanted);
	uint64_t none;

	oci_chunks_stop(&chunks);
	while (oci_chunks_take(&chunks, &none) == OCI_CHUNKS_WAIT &&
	       !oci_peer_dead(p2p->team->member[m->source].peer))
		oci_cpu_relax();
}

void oci_p2p_abandon(struct oci_p2p *p2p)
{
	struct oci_message *m;

	TAILQ_FOREACH(m, &p2p->pulling, on)
	{
		if (m->shared)
			take_back(p2p, m);
		oci_layout_free(&m->foreign);
	}
	TAILQ_INIT(&p2p->pulling);
	set_pulled(&p2p->pulled, 0);
	set_pulled(&p2p->pulled_near, 0);
	tell_pulled(p2p);
}
