/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SHARE and HELP: the SHARE end claims chunks from the front, the helper from the back. Claims are
 * made in the order of time: an end whose clock is ahead comes back when it is its turn.
 */
#include "lab/virtual/virtual_world.h"

static uint64_t chunk_count(size_t bytes)
{
	return (bytes + oci_chunk_bytes(bytes, OCI_CHUNKS_SHARE) - 1) /
	       oci_chunk_bytes(bytes, OCI_CHUNKS_SHARE);
}

static size_t chunk_length(size_t bytes, uint64_t index)
{
	size_t from = index * oci_chunk_bytes(bytes, OCI_CHUNKS_SHARE);

	return bytes - from < oci_chunk_bytes(bytes, OCI_CHUNKS_SHARE) ?
		       bytes - from :
		       oci_chunk_bytes(bytes, OCI_CHUNKS_SHARE);
}

static size_t length_of(const struct oci_virtual_rank *r, const struct oci_range *range)
{
	size_t offset, bytes;

	oci_range_eval(range, &r->params, r->segment, &offset, &bytes);
	return bytes;
}

/* True: the clock is ahead of the others' events; the operation is run again when it is not. */
static bool too_early(struct oci_virtual_world *w, uint32_t rank)
{
	struct oci_virtual_rank *r = &w->ranks[rank];

	if (r->now_s <= w->now_s)
		return false;
	oci_queue_set(w, rank, r->now_s);
	return true;
}

bool oci_virtual_share(struct oci_virtual_world *w, uint32_t rank, const struct oci_op *op)
{
	struct oci_virtual_rank *r = &w->ranks[rank];
	struct oci_virtual_claim *c = &r->claim;
	size_t bytes = length_of(r, &op->local);

	if (!bytes)
		return true;
	if (too_early(w, rank))
		return false;
	if (c->front + c->back < chunk_count(bytes)) {
		oci_task_copy(w, rank, op->push ? OCI_MODEL_PUSH : OCI_MODEL_PULL,
			      oci_virtual_peer(r, op->peer), chunk_length(bytes, c->front), bytes);
		c->front++;
		return false;
	}
	c->waits = c->helping;
	if (c->waits)
		return false;
	if (c->helped_s > r->now_s)
		r->now_s = c->helped_s;
	return true;
}

static size_t helped_bytes(const struct oci_virtual_rank *r, const struct oci_op *op, uint32_t peer)
{
	struct oci_range range = op->local;

	if (op->by_peer)
		range.block = peer;
	return length_of(r, &range);
}

/* When the helper sees the peer's POST; false: there is none yet. */
static bool seen_at(const struct oci_virtual_world *w, uint32_t rank, uint32_t peer, double *at_s)
{
	const struct oci_virtual_event *event = oci_virtual_raised(w, peer, OCI_VIRTUAL_POST, 1);

	if (!event)
		return false;
	*at_s = event->at_s + oci_virtual_latency(w, rank, peer);
	return true;
}

bool oci_virtual_help(struct oci_virtual_world *w, uint32_t rank, const struct oci_op *op)
{
	struct oci_virtual_rank *r = &w->ranks[rank];
	double later = 0;
	bool missing = false;

	if (too_early(w, rank))
		return false;
	for (uint32_t i = 0; i < op->peers; i++) {
		/* Whoever has posted is helped, one chunk each in turn. */
		uint32_t index = (r->helped + i) % op->peers;
		uint32_t peer = oci_virtual_peer(r, op->peer + index);
		struct oci_virtual_claim *c = &w->ranks[peer].claim;
		size_t bytes = helped_bytes(r, op, peer);
		uint64_t count = chunk_count(bytes);
		double at_s;

		if (!seen_at(w, rank, peer, &at_s)) {
			missing = true;
			continue;
		}
		if (!bytes || c->front + c->back >= count)
			continue;
		if (at_s > r->now_s) {
			later = later && later < at_s ? later : at_s;
			continue;
		}
		r->helped = index;
		c->back++;
		c->helping++;
		oci_task_copy(w, rank, op->push ? OCI_MODEL_PULL : OCI_MODEL_PUSH, peer,
			      chunk_length(bytes, count - c->back), bytes);
		return false;
	}
	if (later) {
		oci_queue_set(w, rank, later);
		r->now_s = later;
	} else if (missing) {
		r->state = OCI_VIRTUAL_HELPS;
		w->helpers++;
	}
	return !later && !missing;
}

void oci_virtual_chunk_over(struct oci_virtual_world *w, uint32_t rank, const struct oci_op *op)
{
	struct oci_virtual_rank *r = &w->ranks[rank];
	uint32_t peer;
	struct oci_virtual_claim *c;

	if (op->code != OCI_OP_HELP)
		return;
	peer = oci_virtual_peer(r, op->peer + r->helped);
	r->helped = (r->helped + 1) % op->peers;
	c = &w->ranks[peer].claim;
	c->helping--;
	c->helped_s = r->now_s + oci_virtual_latency(w, peer, rank);
	if (c->waits && !c->helping) {
		c->waits = false;
		oci_queue_set(w, peer, w->now_s);
	}
}
