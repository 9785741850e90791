/* SPDX-License-Identifier: BSD-3-Clause */
/* Flags and operations of the `model` executor. */
#include "lab/virtual/virtual_world.h"

static double latency_of(const struct oci_virtual_world *w, uint32_t a, uint32_t b)
{
	return oci_model_flag_s(w->model, oci_model_distance(w->model, oci_virtual_core(w, a),
							     oci_virtual_core(w, b)));
}

static double latency_more(const struct oci_virtual_world *w, uint32_t a, uint32_t b)
{
	return oci_model_flag_more_s(w->model, oci_model_distance(w->model, oci_virtual_core(w, a),
								  oci_virtual_core(w, b)));
}

/* Those who wait for it look again when this moment's events are through; their clocks say when. */
static void wake(struct oci_virtual_world *w, uint32_t *first)
{
	uint32_t waiter = *first;

	*first = OCI_NOBODY;
	for (; waiter != OCI_NOBODY; waiter = w->ranks[waiter].next_waiter) {
		w->ranks[waiter].state = OCI_VIRTUAL_READY;
		oci_queue_set(w, waiter, w->now_s);
	}
}

void oci_virtual_raise(struct oci_virtual_world *w, uint32_t rank, enum oci_flag flag,
		       uint64_t value)
{
	struct oci_virtual_rank *r = &w->ranks[rank];

	if (oci_events_add(&r->flags[flag],
			   &(struct oci_event){ .value = value, .at_s = r->now_s })) {
		w->failed = true;
		return;
	}
	wake(w, &r->waiter[flag]);
	for (uint32_t helper = 0; helper < w->size && flag == OCI_FLAG_POST && w->helpers;
	     helper++) {
		if (w->ranks[helper].state != OCI_VIRTUAL_HELPS)
			continue;
		w->ranks[helper].state = OCI_VIRTUAL_READY;
		w->helpers--;
		oci_queue_set(w, helper, w->now_s);
	}
}

/* True: the rank has seen it, its clock is where it goes on. False: it waits. */
static bool await_flag(struct oci_virtual_world *w, uint32_t rank, uint32_t peer,
		       enum oci_flag flag, uint64_t value)
{
	struct oci_virtual_rank *r = &w->ranks[rank];
	const struct oci_events *events = &w->ranks[peer].flags[flag];
	const struct oci_event *event = oci_events_reached(events, value);
	uint32_t *seen = &w->seen[flag][(size_t)rank * w->size + peer];
	double latency = latency_of(w, rank, peer);

	if (!event) {
		if (r->state != OCI_VIRTUAL_WAITS) {
			r->state = OCI_VIRTUAL_WAITS;
			r->next_waiter = w->ranks[peer].waiter[flag];
			w->ranks[peer].waiter[flag] = rank;
		}
		return false;
	}
	if (event - events->list < (ptrdiff_t)*seen)
		return true;
	*seen = (uint32_t)(event - events->list) + 1;
	if (event->at_s > r->now_s)
		r->now_s = event->at_s;
	else if (r->row)
		latency = latency_more(w, rank, peer);
	r->now_s += latency;
	r->row = true;
	/* Values that came while this one was on its way came with it. */
	while (*seen < events->count && events->list[*seen].at_s + latency <= r->now_s)
		(*seen)++;
	return true;
}

static uint32_t peer_of(const struct oci_virtual_rank *r, uint32_t v)
{
	return oci_rank_of(&r->params, v >= r->params.size ? v - r->params.size : v);
}

static size_t length_of(const struct oci_virtual_rank *r, const struct oci_range *range)
{
	return oci_walk_bytes(range, &r->params, r->segment);
}

/* Of how many bytes these are a piece that is swept in the same call: what a cache would have to
 * hold for them to be in it. */
static size_t extent_of(const struct oci_virtual_rank *r, const struct oci_range *a,
			const struct oci_range *b, size_t bytes)
{
	const struct oci_range *range[2] = { a, b };

	for (int i = 0; i < 2; i++)
		if (range[i]->buf <= OCI_BUF_RECV && range[i]->segmented && r->params.bytes > bytes)
			return r->params.bytes;
	return bytes;
}

/* Is it the same memory? RECV where a reduction accumulates, and the one buffer of a Bcast. */
static bool is_same(const struct oci_virtual_rank *r, const struct oci_op *op)
{
	if (op->local.buf == OCI_BUF_ACC && op->second.buf == OCI_BUF_RECV)
		return r->plan->key.collective != OC_REDUCE || r->v == 0;
	return r->plan->key.collective == OC_BCAST && op->local.buf <= OCI_BUF_RECV &&
	       op->second.buf <= OCI_BUF_RECV;
}

/* PULL and PUSH. */
static bool transfer(struct oci_virtual_world *w, uint32_t rank, const struct oci_op *op)
{
	struct oci_virtual_rank *r = &w->ranks[rank];
	uint32_t peer = peer_of(r, op->peer);
	size_t bytes = length_of(r, &op->local);

	if (op->remote.buf == OCI_BUF_SLOT || op->remote.buf == OCI_BUF_INLINE)
		return oci_task_touch(w, rank, peer, bytes,
				      extent_of(r, &op->local, &op->remote, bytes), OCI_TOUCH_COPY);
	if (!bytes)
		return true;
	oci_task_copy(w, rank, op->code == OCI_OP_PUSH ? OCI_MODEL_PUSH : OCI_MODEL_PULL, peer,
		      bytes, extent_of(r, &op->local, &op->remote, bytes));
	return false;
}

/* COPY, REDUCE and REDUCE_FROM. */
static bool local(struct oci_virtual_world *w, uint32_t rank, const struct oci_op *op)
{
	struct oci_virtual_rank *r = &w->ranks[rank];
	size_t bytes = length_of(r, &op->local);
	bool copies = op->code == OCI_OP_COPY;
	enum oci_touch touch = !copies			      ? OCI_TOUCH_REDUCE :
			       op->second.buf == OCI_BUF_SLOT ? OCI_TOUCH_FILL :
								OCI_TOUCH_COPY;
	uint32_t from = op->code == OCI_OP_REDUCE_FROM ? peer_of(r, op->peer) : rank;

	if (copies && is_same(r, op))
		return true;
	return oci_task_touch(w, rank, from, bytes, extent_of(r, &op->local, &op->second, bytes),
			      touch);
}

/* Which of an offer's cells are not LARGE: those are copied. */
static bool offer(struct oci_virtual_world *w, uint32_t rank, const struct oci_op *op)
{
	struct oci_virtual_rank *r = &w->ranks[rank];
	size_t bytes = 0;

	for (uint32_t i = 0; i < op->peers; i++) {
		struct oci_range range = oci_walk_range(op, peer_of(r, op->peer + i));
		size_t length = length_of(r, &range);

		if (length <= op->limit && !op->address)
			bytes += length;
	}
	return oci_task_touch(w, rank, rank, bytes, bytes, OCI_TOUCH_FILL);
}

/* TAKE and GIVE. */
static bool offered(struct oci_virtual_world *w, uint32_t rank, const struct oci_op *op)
{
	struct oci_virtual_rank *r = &w->ranks[rank];
	uint32_t peer = peer_of(r, op->peer);
	size_t bytes = length_of(r, &op->local);

	if (!bytes || !oci_when_holds(op->when, bytes, op->limit))
		return true;
	if (bytes <= op->limit) {
		if (op->code == OCI_OP_GIVE)
			return true;
		return oci_task_touch(w, rank, peer, bytes, bytes, OCI_TOUCH_COPY);
	}
	oci_task_copy(w, rank, op->code == OCI_OP_GIVE ? OCI_MODEL_PUSH : OCI_MODEL_PULL, peer,
		      bytes, bytes);
	return false;
}

/* My part of both blocks: half of one in, half of the other out. */
static bool trade(struct oci_virtual_world *w, uint32_t rank, const struct oci_op *op)
{
	struct oci_virtual_rank *r = &w->ranks[rank];
	size_t bytes = length_of(r, &op->local);

	if (!bytes || !oci_when_holds(op->when, bytes, op->limit))
		return true;
	oci_task_copy(w, rank, OCI_MODEL_PULL, peer_of(r, op->peer), bytes, bytes);
	return false;
}

static bool await(struct oci_virtual_world *w, uint32_t rank, const struct oci_op *op)
{
	struct oci_virtual_rank *r = &w->ranks[rank];

	for (; r->at < op->peers; r->at++) {
		uint32_t peer = peer_of(r, op->peer + r->at);
		struct oci_range range = oci_walk_range(op, peer);

		if (op->when != OCI_WHEN_ALWAYS &&
		    !oci_when_holds(op->when, length_of(r, &range), op->limit))
			continue;
		if (!await_flag(w, rank, peer, oci_walk_flag(op), oci_walk_step(op, r->segment)))
			return false;
	}
	r->at = 0;
	return true;
}

static uint64_t chunk_count(size_t bytes)
{
	size_t chunk = oci_chunk_bytes(bytes, OCI_CHUNKS_SHARE);

	return (bytes + chunk - 1) / chunk;
}

static size_t chunk_length(size_t bytes, uint64_t index)
{
	size_t chunk = oci_chunk_bytes(bytes, OCI_CHUNKS_SHARE), left = bytes - index * chunk;

	return left < chunk ? left : chunk;
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

/*
 * The SHARE end claims chunks from the front, the helper from the back. Claims are made in the
 * order of time: an end whose clock is ahead comes back when it is its turn.
 */
static bool share(struct oci_virtual_world *w, uint32_t rank, const struct oci_op *op)
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
			      peer_of(r, op->peer), chunk_length(bytes, c->front), bytes);
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

static bool help(struct oci_virtual_world *w, uint32_t rank, const struct oci_op *op)
{
	struct oci_virtual_rank *r = &w->ranks[rank];
	double later = 0;
	bool missing = false;

	if (too_early(w, rank))
		return false;
	for (uint32_t i = 0; i < op->peers; i++) {
		/* Whoever has posted is helped, one chunk each in turn. */
		uint32_t index = (r->helped + i) % op->peers;
		uint32_t peer = peer_of(r, op->peer + index);
		struct oci_virtual_claim *c = &w->ranks[peer].claim;
		struct oci_range range = oci_walk_range(op, peer);
		size_t bytes = length_of(r, &range);
		uint64_t count = bytes ? chunk_count(bytes) : 0;
		const struct oci_event *posted =
			oci_events_reached(&w->ranks[peer].flags[OCI_FLAG_POST], 1);
		double at_s;

		if (!posted)
			missing = true;
		if (!posted || c->front + c->back >= count)
			continue;
		at_s = posted->at_s + latency_of(w, rank, peer); /* the helper sees it */
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

/* The helper's chunk. */
static void chunk_over(struct oci_virtual_world *w, uint32_t rank, const struct oci_op *op)
{
	struct oci_virtual_rank *r = &w->ranks[rank];
	uint32_t peer = peer_of(r, op->peer + r->helped);
	struct oci_virtual_claim *c = &w->ranks[peer].claim;

	r->helped = (r->helped + 1) % op->peers;
	c->helping--;
	c->helped_s = r->now_s + latency_of(w, peer, rank);
	if (c->waits && !c->helping) {
		c->waits = false;
		oci_queue_set(w, peer, w->now_s);
	}
}

/* Runs an operation, or goes on with it: true when it is through. */
static bool run_op(struct oci_virtual_world *w, uint32_t rank, const struct oci_op *op)
{
	switch (op->code) {
	case OCI_OP_POST:
	case OCI_OP_SIGNAL:
		oci_virtual_raise(w, rank, oci_walk_flag(op),
				  oci_walk_step(op, w->ranks[rank].segment));
		return true;
	case OCI_OP_WAIT_POST:
	case OCI_OP_WAIT_ACK:
		return await(w, rank, op);
	case OCI_OP_PULL:
	case OCI_OP_PUSH:
		return transfer(w, rank, op);
	case OCI_OP_COPY:
	case OCI_OP_REDUCE:
	case OCI_OP_REDUCE_FROM:
		return local(w, rank, op);
	case OCI_OP_OFFER:
		return offer(w, rank, op);
	case OCI_OP_TAKE:
	case OCI_OP_GIVE:
		return offered(w, rank, op);
	case OCI_OP_TRADE:
		return trade(w, rank, op);
	case OCI_OP_SHARE:
		return share(w, rank, op);
	default: /* HELP */
		return help(w, rank, op);
	}
}

/* The operation at pc is through. */
static void next(struct oci_virtual_rank *r)
{
	enum oci_opcode code = r->plan->ops[r->pc].code;

	/* Waits one after the other are a row, too. */
	if (code != OCI_OP_WAIT_POST && code != OCI_OP_WAIT_ACK)
		r->row = false;
	r->pc++;
	r->begun = false;
}

void oci_virtual_go(struct oci_virtual_world *w, uint32_t rank)
{
	struct oci_virtual_rank *r = &w->ranks[rank];

	for (;;) {
		const struct oci_op *op;

		oci_walk_jump(r->plan, &r->params, &r->pc, &r->segment);
		op = &r->plan->ops[r->pc];
		if (op->code == OCI_OP_END) {
			r->state = OCI_VIRTUAL_OVER;
			return;
		}
		if (!r->begun)
			r->now_s += w->model->op.value;
		r->begun = true;
		if (!run_op(w, rank, op))
			return;
		next(r);
	}
}

void oci_virtual_go_on(struct oci_virtual_world *w, uint32_t rank)
{
	struct oci_virtual_rank *r = &w->ranks[rank];
	const struct oci_op *op = &r->plan->ops[r->pc];

	/* A chunk is not the whole of a SHARE or HELP: these go on by themselves. */
	if (op->code == OCI_OP_HELP)
		chunk_over(w, rank, op);
	else if (op->code != OCI_OP_SHARE)
		next(r);
	oci_virtual_go(w, rank);
}
