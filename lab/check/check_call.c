/* SPDX-License-Identifier: BSD-3-Clause */
/* The checker's users: what surrounds a plan in a call. */
#include "lab/check/check_world.h"

#include <errno.h>

/*
 * Call n enters its lane when all ranks have ended call n - L. The ends of n and n + L may both be
 * past before a slow rank looks for that of n (no rank can end n + 2L before): hence two clocks.
 */
static int gate(struct oci_world *w, struct oci_actor *a)
{
	uint32_t p = w->check->size, lanes = w->check->lanes, before = a->call - lanes;

	if (a->call < lanes || w->check->ungated)
		return 0;
	for (; a->cursor < p; a->cursor++)
		if (w->actors[a->cursor].call <= before)
			return OCI_BLOCKED;
	a->cursor = 0;
	for (uint32_t q = 0; q < p; q++)
		oci_clock_acquire(w, a,
				  oci_world_place(w, before, q)->done_clock[before / lanes % 2]);
	return 0;
}

static struct oci_view window(struct oci_memory *region, size_t base, size_t bytes)
{
	return (struct oci_view){ .region = region, .base = base, .bytes = bytes };
}

/* Bytes of each side, and where in the other buffer it lies when it is in place. */
struct extent {
	size_t send, recv, at;
};

static struct extent extent_v(const struct oci_world *w, const struct oci_actor *a,
			      struct oci_place *place)
{
	const struct oci_check_call *c = oci_world_call(w, a->call);
	size_t mine = oci_blocks_mine(w, c, a->rank);
	size_t sent = oci_blocks_place(w, c, a->rank, true, place->send_blocks);
	size_t received = oci_blocks_place(w, c, a->rank, false, place->recv_blocks);
	bool by_root = oci_counts_sent(c->collective);

	return (struct extent){
		.send = by_root ? sent : mine,
		.recv = oci_counts_received(c->collective) ? received : mine,
		.at = (by_root ? place->send_blocks : place->recv_blocks)[a->rank].offset,
	};
}

static struct extent extent_of(const struct oci_world *w, const struct oci_actor *a,
			       struct oci_place *place)
{
	const struct oci_check_call *c = oci_world_call(w, a->call);
	enum oc_collective collective = c->collective;
	size_t all = c->bytes * w->check->size;

	if (oci_is_v(collective))
		return extent_v(w, a, place);
	/* A Reduce_scatter has the bytes of its whole input. */
	if (c->blocks)
		return (struct extent){ c->bytes, c->blocks[a->rank].bytes, 0 };
	return (struct extent){
		.send = oci_sends_each(collective) ? all : c->bytes,
		.recv = oci_receives_each(collective) ? all : c->bytes,
		.at = a->rank * c->bytes,
	};
}

/* Which buffers this rank has in the call, how large they are, and which lie in each other. */
static void set_views(const struct oci_world *w, const struct oci_actor *a, struct oci_place *place)
{
	const struct oci_check_call *c = oci_world_call(w, a->call);
	struct oci_memory *first = &place->user[0], *second = &place->user[1];
	bool root = a->rank == c->root;
	struct extent bytes = extent_of(w, a, place);
	struct oci_view send = { 0 }, recv = { 0 };

	if (oci_has_one_buffer(c->collective) || oci_sends(c->collective, root))
		send = window(first, 0, bytes.send);
	if (oci_has_one_buffer(c->collective))
		recv = send;
	else if (oci_receives(c->collective, root) && (a->rank || !oci_is_exclusive(c->collective)))
		recv = window(second, 0, bytes.recv);
	/* What lies in the other one is the side that has one block, if one has. */
	if (c->in_place && oci_may_receive_in_place(c->collective, root))
		recv = window(first, bytes.at, bytes.recv);
	else if (c->in_place && oci_may_send_in_place(c->collective, root) &&
		 oci_receives_each(c->collective) && !oci_trades(c->collective))
		send = window(second, bytes.at, bytes.send);
	else if (c->in_place && oci_may_send_in_place(c->collective, root))
		recv = send;
	place->send = send;
	place->recv = recv;
	first->name = recv.region == first ? "SEND and RECV" : "SEND";
	second->name = send.region == second ? "SEND and RECV" : "RECV";
	first->limit = second->limit = 0;
	if (send.region)
		send.region->limit = send.base + send.bytes;
	if (recv.region && recv.base + recv.bytes > recv.region->limit)
		recv.region->limit = recv.base + recv.bytes;
}

static int write_whole(struct oci_world *w, const struct oci_actor *a, struct oci_memory *region)
{
	struct oci_span span = { .region = region, .bytes = region->limit };

	return oci_span_access(w, a, &span, true, 0);
}

/* The user fills SEND (of a Bcast: only the root does) and leaves whatever was in RECV. */
static int fill(struct oci_world *w, struct oci_actor *a, struct oci_place *place)
{
	const struct oci_check_call *c = oci_world_call(w, a->call);
	const struct oci_view *send = &place->send;
	uint64_t owner = oci_symbol_owner(w, a->call, a->rank);

	for (unsigned int i = 0; i < 2; i++) {
		uint64_t garbage = oci_symbol_mix(w->check->seed + 2 * a->call + i, ~a->rank);

		oci_memory_clear(&place->user[i], garbage);
		if (write_whole(w, a, &place->user[i]))
			return -ENOMEM;
	}
	if (!send->region || (oci_has_one_buffer(c->collective) && a->rank != c->root))
		return 0;
	for (size_t i = 0; i < send->bytes; i++) {
		uint64_t value = oci_symbol_user(owner, i);

		send->region->cells[send->base + i] = (struct oci_symbol){ value, value };
	}
	return 0;
}

/* Like the user's buffers WORK is another's before the call and after it. */
static int take_work(struct oci_world *w, struct oci_actor *a, struct oci_place *place)
{
	oci_memory_clear(&place->work, oci_symbol_mix(w->check->seed + a->call, a->rank * 2 + 3));
	place->work.limit = a->plan->work_blocks * a->params.bytes;
	return write_whole(w, a, &place->work);
}

/* The smallest slot that the call may get has no more than what its plan says. */
static void take_slot(const struct oci_world *w, const struct oci_actor *a, struct oci_place *place)
{
	size_t most = w->check->slot_bytes ? w->check->slot_bytes : OCI_SLOT_BYTES;
	size_t used = oci_plan_slot_bytes(a->plan, a->params.bytes);

	place->slot.limit = used < most ? used : most;
}

static bool has_loop(const struct oci_plan *plan)
{
	for (uint32_t i = 0; i < plan->count; i++)
		if (plan->ops[i].code == OCI_OP_LOOP)
			return true;
	return false;
}

static void set_params(const struct oci_world *w, struct oci_actor *a)
{
	const struct oci_check_call *c = oci_world_call(w, a->call);
	const struct oci_place *place = oci_world_place(w, a->call, a->rank);
	struct oci_plan head = *a->plan; /* without its operations */

	if (w->check->segment_bytes && has_loop(a->plan))
		head.segment_bytes = w->check->segment_bytes;
	a->params = (struct oci_params){
		.bytes = oci_is_v(c->collective) ? oci_blocks_mine(w, c, a->rank) : c->bytes,
		.root = c->root,
		.size = w->check->size,
		.send_blocks = place->send_blocks,
		.recv_blocks = c->blocks ? c->blocks : place->recv_blocks,
	};
	oci_params_derive(&a->params, &head, c->unit);
}

static int check_key(struct oci_world *w, const struct oci_actor *a)
{
	const struct oci_check_call *c = oci_world_call(w, a->call);
	const struct oci_plan_key *key = &a->plan->key;

	bool in_place = c->in_place && oci_trades(c->collective);

	if (key->collective == c->collective && key->v == a->v && key->size == w->check->size &&
	    key->in_place == in_place)
		return 0;
	oci_world_fail(w, a, "the plan is one of v%u of %u for a %s%s", key->v, key->size,
		       oci_collective_name(key->collective), key->in_place ? " in place" : "");
	return -EINVAL;
}

int oci_call_begin(struct oci_world *w, struct oci_actor *a)
{
	const struct oci_check *check = w->check;
	const struct oci_check_call *c = oci_world_call(w, a->call);
	struct oci_place *place = oci_world_place(w, a->call, a->rank);
	int rc = gate(w, a);

	if (rc)
		return rc;
	a->v = (a->rank + check->size - c->root) % check->size;
	a->plan = check->plan(check->context, a->call, a->v);
	if (!a->plan) {
		oci_world_fail(w, a, "there is no plan");
		return -EINVAL;
	}
	rc = check_key(w, a);
	if (rc)
		return rc;
	a->pc = OCI_OP_BEGIN;
	a->segment = 0;
	for (uint32_t q = 0; q < check->size; q++)
		a->seen[q] = 0;
	oci_memory_clear(&a->temp, oci_symbol_mix(check->seed + a->call, a->rank * 2 + 1));
	oci_memory_clear(&a->acc, oci_symbol_mix(check->seed + a->call, a->rank * 2 + 2));
	set_views(w, a, place);
	set_params(w, a);
	take_slot(w, a, place);
	place->cell_count = 0;
	place->claim = (struct oci_claim){ 0 };
	place->begin_epoch = a->clock[a->rank];
	if (fill(w, a, place) || take_work(w, a, place))
		return -ENOMEM;
	a->pc = 0;
	a->running = true;
	return 0;
}

/* A barrier moves no bytes: what it gives is that all have begun before one ends. */
static int check_barrier(struct oci_world *w, const struct oci_actor *a)
{
	for (uint32_t q = 0; q < w->check->size; q++) {
		const struct oci_actor *other = &w->actors[q];
		bool begun = other->call > a->call || (other->call == a->call && other->running);

		if (q == a->rank ||
		    (begun && a->clock[q] >= oci_world_place(w, a->call, q)->begin_epoch))
			continue;
		return oci_world_fail(
			w, a, "leaves the barrier without knowing that rank %u is in it", q);
	}
	return 0;
}

/* The last rank to end a call closes it. */
static int close_call(struct oci_world *w, uint32_t call)
{
	for (uint32_t q = 0; q < w->check->size; q++)
		if (w->actors[q].call <= call)
			return 0;
	return w->check->ungated ? 0 : oci_share_check(w, call);
}

int oci_call_end(struct oci_world *w, struct oci_actor *a)
{
	uint32_t lanes = w->check->lanes, call = a->call;
	struct oci_place *place = oci_world_place(w, call, a->rank);
	uint32_t pc = a->pc;
	int rc = 0;

	/* The user's writes are checked first: the bytes that he finds are only his if they are. */
	a->pc = OCI_OP_AFTER;
	for (unsigned int i = 0; i < 2 && !rc; i++)
		rc = write_whole(w, a, &place->user[i]);
	if (!rc)
		rc = write_whole(w, a, &place->work);
	a->pc = pc;
	if (!rc)
		rc = oci_symbol_check(w, a);
	if (!rc && !oci_row_sends(oci_world_call(w, call)->collective))
		rc = check_barrier(w, a);
	if (rc)
		return rc;
	for (unsigned int i = 0; i < 2; i++) {
		struct oci_memory *region = &place->user[i];

		oci_memory_garbage(region, ~region->garbage);
	}
	if (oci_clock_save(w, a, &place->done_clock[call / lanes % 2]))
		return -ENOMEM;
	a->running = false;
	a->call++;
	if (a->call == w->check->count)
		w->finished++;
	return close_call(w, call);
}
