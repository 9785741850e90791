/* SPDX-License-Identifier: BSD-3-Clause */
#include "plan/bound.h"

#include <string.h>

#include "plan/exec.h"

/* ---- binding ------------------------------------------------------------------------------- */

struct place {
	size_t offset, bytes;
	uint8_t buf;
};

/* Where a range lies; false: not in a buffer that steps know. */
static bool locate(const struct oci_exec *ready, const struct oci_range *range, struct place *place)
{
	static const int8_t known[OCI_BUF_COUNT] = { [OCI_BUF_SEND] = OCI_BOUND_SEND,
						     [OCI_BUF_RECV] = OCI_BOUND_RECV,
						     [OCI_BUF_SLOT] = -1,
						     [OCI_BUF_WORK] = -1,
						     [OCI_BUF_TEMP] = -1,
						     [OCI_BUF_ACC] = OCI_BOUND_RECV,
						     [OCI_BUF_INLINE] = OCI_BOUND_PAYLOAD };

	/* Tables are a call's own; segments come from loops. */
	if (known[range->buf] < 0 || range->segmented || range->table)
		return false;
	place->buf = (uint8_t)known[range->buf];
	oci_range_eval(range, &ready->params, 0, &place->offset, &place->bytes);
	return place->offset <= UINT32_MAX && place->bytes <= UINT32_MAX;
}

static void bind_peer(const struct oci_exec *ready, uint32_t v, struct oci_bound_step *step)
{
	uint32_t size = ready->params.size;

	step->peer = oci_rank_of(&ready->params, v >= size ? v - size : v);
	step->region = ready->team->member[step->peer].region;
}

static void bind_waits(const struct oci_exec *ready, const struct oci_op *op,
		       struct oci_bound_step *step)
{
	for (uint32_t i = 0; i < op->peers; i++) {
		step[i] = (struct oci_bound_step){ .code = OCI_BOUND_WAIT_POST, .step = op->step };
		bind_peer(ready, op->peer + i, &step[i]);
	}
}

/* COPY, PULL, REDUCE and REDUCE_FROM. Steps: 0 when nothing moves; -1: cannot be bound. */
static int bind_move(const struct oci_exec *ready, const struct oci_op *op, struct oci_bound *bound,
		     struct oci_bound_step *step)
{
	bool mine = op->code == OCI_OP_COPY || op->code == OCI_OP_REDUCE;
	bool reduces = op->code == OCI_OP_REDUCE || op->code == OCI_OP_REDUCE_FROM;
	const struct oci_range *source = mine ? &op->local : &op->remote;
	const struct oci_range *target = mine ? &op->second : &op->local;
	struct place from, to;
	size_t bytes;

	if (!locate(ready, source, &from) || !locate(ready, target, &to) ||
	    (!mine && source->buf != OCI_BUF_INLINE))
		return -1;
	if (!mine || to.buf == OCI_BOUND_PAYLOAD)
		bound->moved = OCI_MOVED_INLINE;
	/* A result that was accumulated in its place. */
	if (op->code == OCI_OP_COPY && source->buf == OCI_BUF_ACC && target->buf == OCI_BUF_RECV)
		return 0;
	bytes = from.bytes < to.bytes ? from.bytes : to.bytes;
	if (!bytes)
		return 0;
	if (to.buf == OCI_BOUND_PAYLOAD && to.offset + bytes > bound->payload)
		bound->payload = (uint32_t)(to.offset + bytes);
	*step = (struct oci_bound_step){
		.code = mine ? (reduces ? OCI_BOUND_REDUCE : OCI_BOUND_COPY) :
			       (reduces ? OCI_BOUND_REDUCE_FROM : OCI_BOUND_TAKE),
		.from = from.buf,
		.to = to.buf,
		.length = (uint32_t)(reduces ? bytes / ready->unit : bytes),
		.from_offset = (uint32_t)from.offset,
		.to_offset = (uint32_t)to.offset,
	};
	step->region = ready->team->own;
	if (!mine)
		bind_peer(ready, op->peer, step);
	return 1;
}

/* Adds the steps of one operation at `at`. How many; -1: cannot be bound. */
static int bind_op(const struct oci_exec *ready, const struct oci_op *op, struct oci_bound *bound,
		   struct oci_bound_step *at, uint32_t room)
{
	switch (op->code) {
	case OCI_OP_SIGNAL:
		if (op->step_loop)
			return -1;
		*at = (struct oci_bound_step){ .code = OCI_BOUND_SIGNAL, .step = op->step };
		at->region = ready->team->own;
		return 1;
	case OCI_OP_POST:
		if (op->address || op->slot || bound->posts || op->step_loop)
			return -1;
		bound->posts = true;
		*at = (struct oci_bound_step){ .code = OCI_BOUND_POST, .step = op->step };
		at->region = ready->team->own;
		return 1;
	default:
		break;
	}
	if (oci_is_v(ready->plan->key.collective))
		return oci_bound_blocks(ready, op, bound, at, room);
	switch (op->code) {
	case OCI_OP_WAIT_POST:
		/* One with a range depends on its size. */
		if (op->peers > room || op->step_loop || op->local.blocks)
			return -1;
		bind_waits(ready, op, at);
		return (int)op->peers;
	case OCI_OP_COPY:
	case OCI_OP_PULL:
	case OCI_OP_REDUCE:
	case OCI_OP_REDUCE_FROM:
		return bind_move(ready, op, bound, at);
	default:
		return -1;
	}
}

struct oci_bound *oci_bound_create(const struct oci_exec *ready)
{
	const struct oci_plan *plan = ready->plan;
	struct oci_bound bound = { .users = 1, .needs_recv = plan->uses_acc }, *made;
	uint32_t count = 0;

	/* Of what has TEMP, only what is for LARGE blocks alone has a form without. */
	if (plan->uses_slot || plan->uses_share)
		return NULL;
	for (uint32_t i = 0; plan->ops[i].code != OCI_OP_END; i++) {
		/* One is left for the end. */
		uint32_t room = OCI_BOUND_STEPS - 1 - count;
		int steps = room ? bind_op(ready, &plan->ops[i], &bound, &bound.step[count], room) :
				   -1;

		if (steps < 0)
			return NULL;
		count += (uint32_t)steps;
	}
	bound.step[count] =
		(struct oci_bound_step){ .code = OCI_BOUND_END, .region = ready->team->own };
	made = malloc(sizeof(*made));
	if (made)
		*made = bound;
	return made;
}

/* ---- running ------------------------------------------------------------------------------- */

static inline bool start_at_once(struct oci_exec *x, const struct oci_bound *bound)
{
	/* Acquire, as in oci_team_all_done(): the peers are done with our lines. */
	if (__builtin_expect(__atomic_load_n(&x->team->min_done, __ATOMIC_ACQUIRE) + OCI_LANES <=
					     x->seq ||
				     __atomic_load_n(&x->team->stranger, __ATOMIC_RELAXED),
			     0))
		return false;
	if (!bound->posts) {
		oci_exec_announce(x);
		oci_team_raise(x->team, &x->lane->post.flag, &x->lane->ack.post_waiters, x->base);
	}
	x->started = true;
	return true;
}

/* As copy_bytes() of exec.c; in place both may be the same. */
static inline void copy(uint8_t *to, const uint8_t *from, uint32_t bytes)
{
	if (bytes == 4)
		memcpy(to, from, 4);
	else if (bytes == 8)
		memcpy(to, from, 8);
	else if (to != from)
		memcpy(to, from, bytes);
}

/* See fetch_next_lane() of exec.c. Of a v-variant, the payload is that of this call. */
static inline void fetch_next(const struct oci_exec *x, const struct oci_bound *bound)
{
	const struct oci_post_line *next = &x->team->own->lane[(x->seq + 1) % OCI_LANES].post;
	const uint8_t *end = next->inline_bytes + (bound->payload | x->payload);

	for (const uint8_t *line = (const uint8_t *)next; line < end; line += OCI_LINE)
		oci_prefetch_write(line);
}

/* Is the peer's POST up, and of the same call? 1, 0 or -errno. */
static inline int posted(struct oci_exec *x, const struct oci_post_line *post,
			 const struct oci_bound_step *s)
{
	/* Acquire: pairs with the release in oci_team_raise() by the peer's POST. */
	if (oci_load_acquire(&post->flag) >= x->base + s->step && post->signature == x->signature)
		return 1;
	return oci_exec_posted(x, s->peer, s->step);
}

/* Where a block of the call is. */
static inline uint8_t *block_at(const struct oci_exec *x, struct oci_bound_block block,
				size_t *bytes)
{
	const struct oc_block *table = block.table == OCI_TABLE_SEND ? x->params.send_blocks :
								       x->params.recv_blocks;

	if (!block.table) {
		*bytes = x->params.bytes;
		return x->buffer[block.buf];
	}
	*bytes = table[block.index].bytes;
	/* A sum of numbers: blocks may lie anywhere. */
	return (uint8_t *)((uintptr_t)x->buffer[block.buf] + table[block.index].offset);
}

bool oci_bound_fits(const struct oci_exec *x)
{
	const struct oci_bound *bound = x->bound;
	size_t bytes;

	for (uint32_t i = 0; i < bound->limits; i++) {
		block_at(x, bound->limit[i].block, &bytes);
		if (bytes > bound->limit[i].most)
			return false;
	}
	return true;
}

static void offer_block(struct oci_exec *x, const struct oci_bound_step *s)
{
	size_t bytes;
	const uint8_t *from = block_at(x, s->block, &bytes);

	if (!bytes)
		return;
	copy(x->inline_bytes + s->length, from, (uint32_t)bytes);
	x->payload = s->length + (uint32_t)bytes;
	x->moved = OCI_MOVED_INLINE;
}

/* 1, or the error of what the peer offers, which is not what I expect. */
static int take_block(struct oci_exec *x, const struct oci_bound_step *s, const uint8_t *payload)
{
	const struct oci_op *op = &x->plan->ops[s->step];
	size_t bytes;
	uint8_t *to = block_at(x, s->block, &bytes);

	if (!bytes)
		return 1;
	if (__builtin_expect(((const struct oci_offer_head *)payload)->large >> op->offer.cell & 1,
			     0))
		return oci_exec_offered(x, op);
	copy(to, payload + s->length, (uint32_t)bytes);
	x->moved = OCI_MOVED_INLINE;
	return 1;
}

static void copy_block(struct oci_exec *x, const struct oci_bound_step *s)
{
	size_t bytes, room;
	const uint8_t *from = block_at(x, s->block, &bytes);
	uint8_t *to = block_at(x, s->other, &room);

	if (bytes > room)
		bytes = room;
	if (bytes && to != from)
		memcpy(to, from, bytes);
}

/* The steps of v-variants and those of ends. 1, 0 or -errno. */
static int run_blocks(struct oci_exec *x, const struct oci_bound_step *s,
		      const struct oci_post_line *theirs)
{
	size_t bytes;

	switch (s->code) {
	case OCI_BOUND_HEAD:
		*(struct oci_offer_head *)x->inline_bytes = (struct oci_offer_head){ 0 };
		x->payload = sizeof(struct oci_offer_head);
		return 1;
	case OCI_BOUND_OFFER:
		offer_block(x, s);
		return 1;
	case OCI_BOUND_WAIT_FILLED:
		block_at(x, s->block, &bytes);
		return bytes ? posted(x, theirs, s) : 1;
	case OCI_BOUND_TAKE_CELL:
		return take_block(x, s, theirs->inline_bytes);
	case OCI_BOUND_COPY_BLOCK:
		copy_block(x, s);
		return 1;
	default: /* OCI_BOUND_SIGNAL */
		oci_team_raise(x->team, &x->lane->ack.flag, &x->lane->ack.ack_waiters,
			       x->base + s->step);
		return 1;
	}
}

int oci_bound_run(struct oci_exec *x)
{
	const struct oci_bound *bound = x->bound;
	struct oci_lane *lane = x->lane;
	/* The lane lies alike in every region. */
	size_t at = (size_t)((uint8_t *)lane - (uint8_t *)x->team->own);
	int result;

	if (!x->started && !start_at_once(x, bound)) {
		result = oci_exec_start(x);
		if (result != 1)
			return result;
	}
	for (const struct oci_bound_step *s = &bound->step[x->pc];; s++) {
		const struct oci_lane *theirs = (void *)((uint8_t *)s->region + at);
		const uint8_t *payload = theirs->post.inline_bytes;

		switch (s->code) {
		case OCI_BOUND_POST:
			oci_exec_announce(x);
			oci_team_raise(x->team, &lane->post.flag, &lane->ack.post_waiters,
				       x->base + s->step);
			break;
		case OCI_BOUND_WAIT_POST:
			result = posted(x, &theirs->post, s);
			if (__builtin_expect(result != 1, 0)) {
				x->pc = (uint32_t)(s - bound->step);
				return result;
			}
			break;
		case OCI_BOUND_COPY:
			copy(x->buffer[s->to] + s->to_offset, x->buffer[s->from] + s->from_offset,
			     s->length);
			break;
		case OCI_BOUND_TAKE:
			copy(x->buffer[s->to] + s->to_offset, payload + s->from_offset, s->length);
			break;
		case OCI_BOUND_REDUCE:
			x->op->apply(x->op->context, x->buffer[s->from] + s->from_offset,
				     x->buffer[s->to] + s->to_offset, s->length);
			break;
		case OCI_BOUND_REDUCE_FROM:
			x->op->apply(x->op->context, payload + s->from_offset,
				     x->buffer[s->to] + s->to_offset, s->length);
			break;
		case OCI_BOUND_END:
			x->moved |= bound->moved;
			fetch_next(x, bound);
			return 1;
		default:
			result = run_blocks(x, s, &theirs->post);
			if (__builtin_expect(result != 1, 0)) {
				x->pc = (uint32_t)(s - bound->step);
				return result;
			}
		}
	}
}
