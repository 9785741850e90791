/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sender's side. Sends to one rank leave in the order in which they were started: eagerly,
 * chunk by chunk as the ring has room, or by one cell that announces them. An announced message is
 * its receiver's affair until that writes "done", or "please send", into the message's line.
 */
#include <errno.h>
#include <string.h>

#include "copy/kmod.h"
#include "copy/layout.h"
#include "p2p/p2p.h"

/* Where the payload of a cell goes. */
static uint8_t *payload_of(const struct oci_outbound *out, struct oci_cell *cell, bool is_inline)
{
	return is_inline ? cell->inline_bytes :
			   out->channel->ring + cell->chunk.position % OCI_P2P_RING_BYTES;
}

/* Writes a chunk of the message from m->at on. False: no room. */
static bool put_chunk(struct oci_outbound *out, struct oci_message *m, enum oci_cell_kind kind,
		      size_t end, size_t most)
{
	size_t bytes = end - m->at < most ? end - m->at : most;
	bool is_inline = oci_cell_is_inline(kind, m->bytes);
	struct oci_cell *cell = is_inline ? oci_cell_next(out) : oci_cell_chunk(out, bytes);

	if (!cell)
		return false;
	oci_message_gather(payload_of(out, cell, is_inline), m, m->at, bytes);
	cell->kind = kind;
	cell->tag = m->tag;
	cell->bytes = kind == OCI_CELL_EAGER ? m->bytes : bytes;
	if (!is_inline)
		cell->chunk.cookie = m->cookie;
	oci_cell_publish(out, cell);
	m->at += bytes;
	return true;
}

/* Does the receiver get the choice between the ring and a pipe? What lies in a shared heap it may
 * map, and pieces would be copied twice by a pipe, too. */
static bool has_choice(const struct oci_p2p *p2p, const struct oci_outbound *out,
		       const struct oci_message *m)
{
	return out->pipes && m->bytes >= p2p->limits.pipe_bytes && !m->layout.pieces &&
	       !oci_arena_holds((uintptr_t)m->buffer);
}

static bool announce(struct oci_p2p *p2p, struct oci_outbound *out, struct oci_message *m)
{
	struct oci_cell *cell = oci_cell_next(out);
	bool choice;

	if (!cell)
		return false;
	if (p2p->team->any_kmod && m->layout.pieces)
		oci_register_layout(&m->layout);
	else if (p2p->team->any_kmod)
		oci_register((uintptr_t)m->buffer, m->bytes);
	cell->kind = OCI_CELL_RENDEZVOUS;
	cell->tag = m->tag;
	cell->bytes = m->bytes;
	choice = has_choice(p2p, out, m);
	m->method = choice ? OCI_P2P_STREAM : p2p->limits.method;
	if (choice || oci_p2p_is_piped(m->method))
		m->sender.pipe = oci_pipe_offer(out);
	cell->rendezvous = (struct oci_announcement){
		.place = (uintptr_t)(m->layout.pieces ? (void *)m->layout.pieces : m->buffer),
		.pieces = m->layout.pieces ? m->layout.count : 0,
		.line = oci_line_offset(m->line),
		.method = m->method,
		.pipe = m->sender.pipe,
	};
	oci_cell_publish(out, cell);
	return true;
}

enum send_state { SEND_BLOCKED, SEND_OVER, SEND_ANNOUNCED };

static enum send_state send_step(struct oci_p2p *p2p, struct oci_outbound *out,
				 struct oci_message *m)
{
	if (m->line)
		return announce(p2p, out, m) ? SEND_ANNOUNCED : SEND_BLOCKED;
	do {
		if (!put_chunk(out, m, m->at ? OCI_CELL_MORE : OCI_CELL_EAGER, m->bytes,
			       OCI_P2P_EAGER_CHUNK_BYTES))
			return SEND_BLOCKED;
	} while (m->at < m->bytes);
	return SEND_OVER;
}

/*
 * Of a message from there on. Whether the receiver can map our heap only it knows: we take it from
 * whether we can map its. In a pair without single copies we try, as the message would be announced
 * for nothing; another pair has its mechanism all the same.
 */
static size_t eager_limit(const struct oci_p2p *p2p, const struct oci_outbound *out,
			  const void *buffer)
{
	const struct oci_member *member = &p2p->team->member[out->peer];
	bool streams = member->mechanism == OCI_MECH_SHM;

	if (p2p->limits.mapped_eager_bytes != SIZE_MAX && oci_arena_holds((uintptr_t)buffer) &&
	    (streams ? oci_mapping_get(member->peer) != NULL : !oci_mapping_refused(member->peer)))
		return p2p->limits.mapped_eager_bytes;
	return out->eager_bytes;
}

/* Eager, as far as size and credit go; else it gets a line, and 0; or -ENOMEM. */
static int decide(struct oci_p2p *p2p, struct oci_outbound *out, struct oci_message *m)
{
	if (m->bytes <= eager_limit(p2p, out, m->buffer) && oci_outbound_credit(out, m->bytes))
		return 0;
	m->line = oci_line_get(p2p);
	return m->line ? 0 : -ENOMEM;
}

static void make_busy(struct oci_p2p *p2p, struct oci_outbound *out)
{
	if (out->busy)
		return;
	out->busy = true;
	out->busy_next = p2p->busy;
	p2p->busy = out;
}

/* A send to ourselves: into the receive that is posted, kept, or waiting for its receive. */
static int send_self(struct oci_p2p *p2p, struct oci_message *m)
{
	struct oci_message *r = oci_match_posted(p2p, p2p->team->rank, m->tag);
	uint64_t cost = p2p->self_cost + oci_p2p_cost(m->bytes);
	bool keep = m->bytes <= p2p->limits.stream_eager_bytes && cost <= OCI_P2P_CREDIT_BYTES;
	struct oci_unexpected *entry;

	if (r) {
		oci_message_move(r, m);
		oci_receive_finish(r, p2p->team->rank, m->tag, m->bytes);
		m->result = 1;
		return 0;
	}
	entry = oci_unexpected_add(p2p, p2p->team->rank, m->tag, keep ? m->bytes : 0);
	if (!entry)
		return -ENOMEM;
	entry->bytes = m->bytes;
	if (!keep) {
		entry->self = m;
		return 0;
	}
	p2p->self_cost = cost;
	oci_message_gather(entry->payload, m, 0, m->bytes);
	entry->at = m->bytes;
	m->result = 1;
	return 0;
}

int oci_p2p_send(struct oci_p2p *p2p, struct oci_message *m)
{
	struct oci_outbound *out;
	enum send_state state = SEND_BLOCKED;
	int error = 0;

	m->result = 0;
	m->at = 0;
	m->line = NULL;
	m->sending = 0;
	m->cookie = 0;
	m->sender.pipe = 0;
	m->stuck = false;
	if (m->peer == p2p->team->rank)
		return send_self(p2p, m);
	out = oci_outbound_get(p2p, m->peer, &error);
	if (!out)
		return error;
	error = decide(p2p, out, m);
	if (error)
		return error;
	if (!TAILQ_FIRST(&out->queue))
		state = send_step(p2p, out, m);
	if (state == SEND_OVER) {
		m->result = 1;
		return 0;
	}
	TAILQ_INSERT_TAIL(state == SEND_ANNOUNCED ? &out->announced : &out->queue, m, on);
	make_busy(p2p, out);
	return 0;
}

int oci_p2p_send_now(struct oci_p2p *p2p, uint32_t peer, int32_t tag, const void *buffer,
		     size_t bytes)
{
	struct oci_outbound *out = p2p->out[peer];
	bool is_inline = bytes <= OCI_P2P_INLINE_BYTES;
	struct oci_cell *cell;

	if (!out || TAILQ_FIRST(&out->queue) || bytes > OCI_P2P_EAGER_CHUNK_BYTES ||
	    bytes > eager_limit(p2p, out, buffer) || !oci_outbound_credit(out, bytes))
		return 0;
	cell = is_inline ? oci_cell_next(out) : oci_cell_chunk(out, bytes);
	if (!cell) {
		oci_outbound_no_credit(out, bytes);
		return 0;
	}
	cell->kind = OCI_CELL_EAGER;
	cell->tag = tag;
	cell->bytes = bytes;
	if (bytes)
		memcpy(payload_of(out, cell, is_inline), buffer, bytes);
	oci_cell_publish(out, cell);
	return 1;
}

/* Looks at an announced message; sends a chunk of it, if asked to. True when it is over. */
static bool announced_step(struct oci_p2p *p2p, struct oci_outbound *out, struct oci_message *m,
			   unsigned int *moved)
{
	/* Acquire: what the receiver did with our buffer comes before "done", its terms before
	 * "send" or "help". Pairs with the releases in rendezvous.c. */
	uint64_t state = oci_load_acquire(&m->line->state);

	if (!m->sending) {
		if (state == OCI_RENDEZVOUS_OPEN)
			return false;
		if (state == OCI_RENDEZVOUS_HELP) {
			*moved += oci_rendezvous_help(p2p, m);
			return false;
		}
		++*moved;
		if (state == OCI_RENDEZVOUS_DONE)
			return true;
		m->at = m->line->at;
		m->sending = m->line->at + m->line->bytes;
		m->cookie = m->line->cookie;
		m->method = (enum oci_p2p_method)m->line->method;
	}
	if (oci_p2p_is_piped(m->method) && state == OCI_RENDEZVOUS_REST) {
		oci_pipe_lose(out, m);
		m->at = m->line->rest_at;
		m->cookie = m->line->rest_cookie;
		m->method = OCI_P2P_STREAM;
	}
	if (oci_p2p_is_piped(m->method)) {
		*moved += oci_pipe_feed(p2p, out, m);
		return state == OCI_RENDEZVOUS_DONE;
	}
	*moved += put_chunk(out, m, OCI_CELL_STREAM, m->sending, OCI_P2P_CHUNK_BYTES);
	return m->at == m->sending;
}

static unsigned int announced_progress(struct oci_p2p *p2p, struct oci_outbound *out)
{
	struct oci_message *m, *next;
	unsigned int moved = 0;

	for (m = TAILQ_FIRST(&out->announced); m; m = next) {
		next = TAILQ_NEXT(m, on);
		if (!announced_step(p2p, out, m, &moved))
			continue;
		TAILQ_REMOVE(&out->announced, m, on);
		oci_line_put(p2p, m->line);
		oci_message_finish(m, 1);
	}
	return moved;
}

static unsigned int queue_progress(struct oci_p2p *p2p, struct oci_outbound *out)
{
	unsigned int moved = 0;
	struct oci_message *m;

	while ((m = TAILQ_FIRST(&out->queue))) {
		size_t before = m->at;
		enum send_state state = send_step(p2p, out, m);

		moved += m->at != before;
		if (state == SEND_BLOCKED)
			break;
		moved++;
		TAILQ_REMOVE(&out->queue, m, on);
		if (state == SEND_ANNOUNCED)
			TAILQ_INSERT_TAIL(&out->announced, m, on);
		else
			oci_message_finish(m, 1);
	}
	return moved;
}

/* Chunks of large messages may come between those of an eager one: their kinds differ. Where the
 * ring is the bottleneck the two take turns, so that neither waits for the other's end. */
static unsigned int outbound_progress(struct oci_p2p *p2p, struct oci_outbound *out)
{
	unsigned int moved = 0;

	out->streams_first = !out->streams_first;
	if (out->streams_first)
		moved += announced_progress(p2p, out);
	moved += queue_progress(p2p, out);
	if (!out->streams_first)
		moved += announced_progress(p2p, out);
	return moved;
}

unsigned int oci_send_progress(struct oci_p2p *p2p)
{
	unsigned int moved = 0;

	for (struct oci_outbound **at = &p2p->busy, *out; (out = *at);) {
		moved += outbound_progress(p2p, out);
		if (TAILQ_FIRST(&out->queue) || TAILQ_FIRST(&out->announced)) {
			at = &out->busy_next;
			continue;
		}
		out->busy = false;
		*at = out->busy_next;
	}
	return moved;
}

void oci_p2p_withdraw_send(struct oci_p2p *p2p, const struct oci_message *m)
{
	struct oci_unexpected *entry;

	TAILQ_FOREACH(entry, &p2p->in[p2p->team->rank].unexpected, of_source)
	{
		if (entry->self == m) {
			oci_unexpected_unlink(p2p, entry);
			oci_unexpected_free(p2p, entry);
			return;
		}
	}
}
