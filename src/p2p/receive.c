/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The receiver's side: empties the channels into receives, or keeps what nobody waits for yet.
 *
 * A channel is always emptied: what is kept of it is bounded by its sender's credit (channel.h) and
 * by the requests that its sender has under way.
 */
#include <errno.h>
#include <string.h>

#include "p2p/p2p.h"

/* Cells of one channel in a turn: others come next. */
#define CELLS_PER_TURN 32

static const uint8_t *payload_of(const struct oci_inbound *in, const struct oci_cell *cell,
				 size_t *bytes)
{
	if (oci_cell_is_inline(cell->kind, cell->bytes)) {
		*bytes = cell->bytes;
		return cell->inline_bytes;
	}
	*bytes = cell->chunk.bytes;
	return in->channel->ring + cell->chunk.position % OCI_P2P_RING_BYTES;
}

static bool take_eager(struct oci_p2p *p2p, uint32_t source, struct oci_inbound *in,
		       const struct oci_cell *cell)
{
	struct oci_message *m = oci_match_posted(p2p, source, cell->tag);
	struct oci_unexpected *entry;
	size_t bytes;
	const uint8_t *payload = payload_of(in, cell, &bytes);

	if (m) {
		oci_message_scatter(m, 0, payload, bytes);
		oci_inbound_matched(in, cell->bytes);
		m->at = bytes;
		m->whole = cell->bytes;
		in->filling_tag = cell->tag;
		if (bytes < cell->bytes)
			in->filling = m;
		else
			oci_receive_finish(m, source, cell->tag, cell->bytes);
		return true;
	}
	entry = oci_unexpected_add(p2p, source, cell->tag, cell->bytes);
	if (!entry)
		return false;
	memcpy(entry->payload, payload, bytes);
	entry->at = bytes;
	if (bytes < cell->bytes)
		in->unfinished = entry;
	return true;
}

static void take_more(struct oci_p2p *p2p, uint32_t source, struct oci_inbound *in,
		      const struct oci_cell *cell)
{
	struct oci_unexpected *entry = in->unfinished;
	struct oci_message *m = in->filling;
	size_t bytes;
	const uint8_t *payload = payload_of(in, cell, &bytes);

	if (m) {
		oci_message_scatter(m, m->at, payload, bytes);
		m->at += bytes;
		if (m->at < m->whole)
			return;
		in->filling = NULL;
		oci_receive_finish(m, source, in->filling_tag, m->whole);
		return;
	}
	memcpy(entry->payload + entry->at, payload, bytes);
	entry->at += bytes;
	if (entry->at < entry->bytes)
		return;
	in->unfinished = NULL;
	m = entry->claimed;
	if (!m)
		return;
	oci_message_scatter(m, 0, entry->payload, entry->bytes);
	oci_receive_finish(m, source, entry->tag, entry->bytes);
	oci_unexpected_free(p2p, entry);
}

/* The receive has its source. */
static void begin_rendezvous(struct oci_p2p *p2p, struct oci_message *m, int32_t tag, size_t bytes,
			     const struct oci_announcement *sender)
{
	m->tag = tag;
	m->whole = bytes;
	m->sender = *sender;
	m->method = (enum oci_p2p_method)sender->method;
	m->line = (struct oci_rendezvous *)(p2p->team->member[m->source].peer->base + sender->line);
	oci_rendezvous_begin(p2p, m);
}

static bool take_rendezvous(struct oci_p2p *p2p, uint32_t source, const struct oci_cell *cell)
{
	struct oci_message *m = oci_match_posted(p2p, source, cell->tag);
	struct oci_unexpected *entry;

	if (m) {
		begin_rendezvous(p2p, m, cell->tag, cell->bytes, &cell->rendezvous);
		return true;
	}
	entry = oci_unexpected_add(p2p, source, cell->tag, 0);
	if (!entry)
		return false;
	entry->bytes = cell->bytes;
	entry->is_rendezvous = true;
	entry->sender = cell->rendezvous;
	return true;
}

static void take_stream(struct oci_inbound *in, const struct oci_cell *cell)
{
	struct oci_message *m;
	size_t bytes;
	const uint8_t *payload = payload_of(in, cell, &bytes);

	TAILQ_FOREACH(m, &in->streams, on)
	{
		if (m->cookie == cell->chunk.cookie)
			break;
	}
	if (!m)
		return;
	oci_message_scatter(m, m->at, payload, bytes);
	m->at += bytes;
	if (m->at < m->wanted)
		return;
	TAILQ_REMOVE(&in->streams, m, on);
	oci_pipe_came(in, m);
	oci_receive_finish(m, m->source, m->tag, m->whole);
}

/* The bytes of the ring that a cell holds. */
static size_t ring_bytes(const struct oci_cell *cell)
{
	return cell->kind == OCI_CELL_RENDEZVOUS || oci_cell_is_inline(cell->kind, cell->bytes) ?
		       0 :
		       cell->chunk.bytes;
}

static unsigned int inbound_progress(struct oci_p2p *p2p, uint32_t source)
{
	struct oci_inbound *in = &p2p->in[source];
	const struct oci_cell *cell;
	unsigned int taken = 0;

	while (taken < CELLS_PER_TURN && (cell = oci_inbound_cell(in))) {
		bool ok = true;

		oci_inbound_tells(in, cell);
		if (cell->kind == OCI_CELL_EAGER)
			ok = take_eager(p2p, source, in, cell);
		else if (cell->kind == OCI_CELL_MORE)
			take_more(p2p, source, in, cell);
		else if (cell->kind == OCI_CELL_RENDEZVOUS)
			ok = take_rendezvous(p2p, source, cell);
		else
			take_stream(in, cell);
		/* It stays in the ring: another turn may find memory. */
		if (!ok)
			break;
		oci_inbound_taken(in, ring_bytes(cell));
		taken++;
	}
	return taken;
}

unsigned int oci_receive_progress(struct oci_p2p *p2p)
{
	unsigned int moved = 0;

	oci_inbound_attach(p2p);
	for (uint32_t i = 0; i < p2p->actives; i++)
		moved += inbound_progress(p2p, p2p->active[i]);
	return moved;
}

void oci_receive_drain(struct oci_p2p *p2p, uint32_t source)
{
	oci_inbound_attach(p2p);
	while (p2p->in[source].channel && inbound_progress(p2p, source))
		;
}

/* A receive has found what came before it. */
static void take_kept(struct oci_p2p *p2p, struct oci_message *m, struct oci_unexpected *entry)
{
	oci_unexpected_unlink(p2p, entry);
	m->source = entry->source;
	if (entry->self) {
		oci_message_move(m, entry->self);
		oci_message_finish(entry->self, 1);
	} else if (entry->is_rendezvous) {
		begin_rendezvous(p2p, m, entry->tag, entry->bytes, &entry->sender);
		oci_unexpected_free(p2p, entry);
		return;
	} else if (entry->source == p2p->team->rank) {
		p2p->self_cost -= oci_p2p_cost(entry->bytes);
	} else {
		oci_inbound_matched(&p2p->in[entry->source], entry->bytes);
	}
	if (!entry->self && entry->at < entry->bytes) {
		entry->claimed = m;
		return;
	}
	if (!entry->self)
		oci_message_scatter(m, 0, entry->payload, entry->bytes);
	oci_receive_finish(m, entry->source, entry->tag, entry->bytes);
	oci_unexpected_free(p2p, entry);
}

int oci_p2p_receive(struct oci_p2p *p2p, struct oci_message *m)
{
	struct oci_unexpected *entry = oci_match_unexpected(p2p, m->peer, m->tag);

	m->result = 0;
	m->at = m->whole = 0;
	m->line = NULL;
	m->foreign.pieces = NULL;
	if (entry)
		take_kept(p2p, m, entry);
	else
		oci_post(p2p, m);
	return 0;
}

int oci_p2p_receive_now(struct oci_p2p *p2p, uint32_t peer, int32_t tag, void *buffer, size_t room,
			struct oc_status *status, int *result)
{
	struct oci_inbound *in = &p2p->in[peer];
	const struct oci_cell *cell;
	const uint8_t *payload;
	size_t bytes, here;

	if (!in->channel || TAILQ_FIRST(&in->unexpected) || TAILQ_FIRST(&in->posted) ||
	    TAILQ_FIRST(&p2p->posted_any))
		return -1;
	cell = oci_inbound_cell(in);
	if (!cell)
		return 0;
	if (cell->kind != OCI_CELL_EAGER || (cell->tag != tag && tag != OC_ANY_TAG))
		return -1;
	bytes = cell->bytes;
	payload = payload_of(in, cell, &here);
	if (here < bytes)
		return -1;
	oci_inbound_tells(in, cell);
	*result = bytes > room ? -EMSGSIZE : 0;
	if (bytes && room)
		memcpy(buffer, payload, bytes > room ? room : bytes);
	if (status)
		*status = (struct oc_status){ .source = peer, .tag = cell->tag, .bytes = bytes };
	oci_inbound_matched(in, bytes);
	oci_inbound_taken(in, bytes > OCI_P2P_INLINE_BYTES ? bytes : 0);
	return 1;
}

bool oci_p2p_probe(struct oci_p2p *p2p, uint32_t source, int32_t tag, struct oc_status *status)
{
	const struct oci_unexpected *entry;

	p2p->probed = source;
	p2p->probed_tag = tag;
	p2p->probing = true;
	oci_p2p_progress(p2p);
	p2p->probing = false;
	entry = oci_match_unexpected(p2p, source, tag);
	if (!entry)
		return false;
	if (status)
		*status = (struct oc_status){ entry->source, entry->tag, entry->bytes };
	return true;
}
