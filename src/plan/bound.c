/* SPDX-License-Identifier: BSD-3-Clause */
#include "plan/bound.h"

#include "plan/exec.h"

/* ---- compiling ----------------------------------------------------------------------------- */

struct binding {
	const struct oci_exec *ready;
	struct oci_bound *bound;
	uint32_t count; /* steps so far */
};

/* A step, of a peer or (`peer` this rank itself) of my own. False: there is no room for it. */
static bool add(struct binding *b, uint32_t peer, struct oci_bound_step step)
{
	const struct oci_team *team = b->ready->team;

	/* One is left for the end. */
	if (b->count == OCI_BOUND_STEPS - (step.code != OCI_BOUND_END))
		return false;
	step.peer = peer;
	step.region = peer == team->rank ? team->own : team->member[peer].region;
	b->bound->step[b->count++] = step;
	return true;
}

/* Where a range lies in a call of this kind; false: not in a buffer that steps know. */
static bool find(const struct binding *b, const struct oci_range *range,
		 struct oci_bound_place *place, size_t *bytes)
{
	static const int8_t known[OCI_BUF_COUNT] = { [OCI_BUF_SEND] = OCI_BOUND_SEND,
						     [OCI_BUF_RECV] = OCI_BOUND_RECV,
						     [OCI_BUF_SLOT] = -1,
						     [OCI_BUF_WORK] = -1,
						     [OCI_BUF_TEMP] = -1,
						     [OCI_BUF_ACC] = OCI_BOUND_RECV,
						     [OCI_BUF_INLINE] = OCI_BOUND_PAYLOAD };
	size_t offset;

	/* Tables are a call's own; segments come from loops. */
	if (known[range->buf] < 0 || range->segmented || range->table)
		return false;
	oci_range_eval(range, &b->ready->params, 0, &offset, bytes);
	*place = (struct oci_bound_place){ .buf = (uint8_t)known[range->buf],
					   .at = (uint32_t)offset };
	return offset <= UINT32_MAX && *bytes <= UINT32_MAX;
}

/* The same of a v-variant's block of this number, whose place and length are a call's own. */
static bool find_block(const struct binding *b, const struct oci_range *range, uint32_t number,
		       struct oci_bound_place *place)
{
	uint32_t at = range->relative ? oci_rank_of(&b->ready->params, number) : number;

	*place = (struct oci_bound_place){
		.buf = range->buf == OCI_BUF_SEND ? OCI_BOUND_SEND : OCI_BOUND_RECV,
		.table = range->table,
		.at = at,
	};
	return oci_is_v(b->ready->plan->key.collective) &&
	       (range->buf == OCI_BUF_SEND || range->buf == OCI_BUF_RECV) && range->blocks == 1 &&
	       !range->parts && !range->segmented && range->table != OCI_TABLE_RECV_SIZES &&
	       (range->table || !at);
}

/* The block that an operation has for its i-th peer. */
static bool find_block_for(const struct binding *b, const struct oci_op *op, uint32_t i,
			   struct oci_bound_place *place)
{
	uint32_t number = op->by_peer ? oci_exec_peer(b->ready, op, i) : op->local.block;

	return find_block(b, &op->local, number, place);
}

/* The bound form is for calls where this block has no more bytes. False: no room to say so. */
static bool limit_to(struct binding *b, struct oci_bound_place block, uint32_t most)
{
	struct oci_bound *bound = b->bound;

	for (uint32_t i = 0; i < bound->limits; i++) {
		struct oci_bound_limit *limit = &bound->limit[i];

		if (limit->block.buf != block.buf || limit->block.table != block.table ||
		    limit->block.at != block.at)
			continue;
		if (limit->most > most)
			limit->most = most;
		return true;
	}
	if (bound->limits == OCI_BOUND_STEPS)
		return false;
	bound->limit[bound->limits++] = (struct oci_bound_limit){ block, most };
	return true;
}

/* No peer's block of an operation is LARGE: what is for such ones alone is no step. */
static bool none_large(struct binding *b, const struct oci_op *op)
{
	struct oci_bound_place block;

	for (uint32_t i = 0; i < op->peers; i++)
		if (!find_block_for(b, op, i, &block) || !limit_to(b, block, op->limit))
			return false;
	return true;
}

static bool bind_wait(struct binding *b, const struct oci_op *op)
{
	if (op->when == OCI_WHEN_LARGE)
		return none_large(b, op);
	if (op->code != OCI_OP_WAIT_POST || op->step_loop)
		return false;
	for (uint32_t i = 0; i < op->peers; i++) {
		struct oci_bound_step wait = { .code = OCI_BOUND_WAIT, .step = op->step };

		if (op->when != OCI_WHEN_ALWAYS) {
			wait.code = OCI_BOUND_WAIT_BLOCK;
			if (!find_block_for(b, op, i, &wait.to))
				return false;
		}
		/* Of blocks that are not LARGE, those that have bytes are SMALL. */
		if (op->when == OCI_WHEN_SMALL && !limit_to(b, wait.to, op->limit))
			return false;
		if (!add(b, oci_exec_peer(b->ready, op, i), wait))
			return false;
	}
	return true;
}

/* COPY, PULL, REDUCE and REDUCE_FROM. */
static bool bind_move(struct binding *b, const struct oci_op *op)
{
	const struct oci_exec *ready = b->ready;
	bool mine = op->code == OCI_OP_COPY || op->code == OCI_OP_REDUCE;
	bool reduces = op->code == OCI_OP_REDUCE || op->code == OCI_OP_REDUCE_FROM;
	const struct oci_range *from = mine ? &op->local : &op->remote;
	const struct oci_range *to = mine ? &op->second : &op->local;
	uint32_t peer = mine ? ready->team->rank : oci_exec_peer(ready, op, 0);
	struct oci_bound_step move = { .code = mine && reduces ? OCI_BOUND_REDUCE :
					       reduces	       ? OCI_BOUND_REDUCE_FROM :
					       mine	       ? OCI_BOUND_MOVE :
								 OCI_BOUND_TAKE };
	size_t bytes, room;

	if (!find(b, from, &move.from, &bytes) || !find(b, to, &move.to, &room) ||
	    (!mine && from->buf != OCI_BUF_INLINE))
		return false;
	if (!mine || move.to.buf == OCI_BOUND_PAYLOAD)
		b->bound->moved = OCI_MOVED_INLINE;
	if (bytes > room)
		bytes = room;
	/* Nothing moves, or it is a result that was accumulated in its place. */
	if (!bytes ||
	    (op->code == OCI_OP_COPY && from->buf == OCI_BUF_ACC && to->buf == OCI_BUF_RECV))
		return true;
	if (move.to.buf == OCI_BOUND_PAYLOAD && move.to.at + bytes > b->bound->payload)
		b->bound->payload = (uint32_t)(move.to.at + bytes);
	move.length = (uint32_t)(reduces ? bytes / ready->unit : bytes);
	return add(b, peer, move);
}

static bool bind_offer(struct binding *b, const struct oci_op *op)
{
	uint32_t me = b->ready->team->rank;

	if (op->offer.in_slot || !add(b, me, (struct oci_bound_step){ .code = OCI_BOUND_HEAD }))
		return false;
	if (op->address)
		return none_large(b, op);
	for (uint32_t i = 0; i < op->peers; i++) {
		struct oci_bound_step move = { .code = OCI_BOUND_MOVE_BLOCK };

		move.to.buf = OCI_BOUND_PAYLOAD;
		move.to.at = op->offer.first + i * op->offer.cell_bytes;
		if (!find_block_for(b, op, i, &move.from) ||
		    !limit_to(b, move.from, op->offer.cell_bytes) || !add(b, me, move))
			return false;
	}
	return true;
}

static bool bind_take(struct binding *b, const struct oci_op *op)
{
	size_t place = (size_t)(op - b->ready->plan->ops);
	struct oci_bound_step move = { .code = OCI_BOUND_MOVE_BLOCK,
				       .step = (uint16_t)place,
				       .length = op->offer.cell };

	if (op->when == OCI_WHEN_LARGE)
		return none_large(b, op);
	move.from.buf = OCI_BOUND_PAYLOAD;
	move.from.at = op->offer.first + op->offer.cell * op->offer.cell_bytes;
	return !op->offer.in_slot && place <= UINT16_MAX && find_block_for(b, op, 0, &move.to) &&
	       limit_to(b, move.to, op->offer.cell_bytes) &&
	       add(b, oci_exec_peer(b->ready, op, 0), move);
}

static bool bind_copy_block(struct binding *b, const struct oci_op *op)
{
	struct oci_bound_step move = { .code = OCI_BOUND_MOVE_BLOCK };

	return find_block(b, &op->local, op->local.block, &move.from) &&
	       find_block(b, &op->second, op->second.block, &move.to) &&
	       add(b, b->ready->team->rank, move);
}

/* Adds the steps of one operation; false: it cannot be bound. */
static bool bind_op(struct binding *b, const struct oci_op *op)
{
	uint32_t me = b->ready->team->rank;

	switch (op->code) {
	case OCI_OP_SIGNAL:
		return !op->step_loop &&
		       add(b, me,
			   (struct oci_bound_step){ .code = OCI_BOUND_SIGNAL, .step = op->step });
	case OCI_OP_POST:
		if (op->address || op->slot || op->step_loop || b->bound->posts)
			return false;
		b->bound->posts = true;
		return add(b, me,
			   (struct oci_bound_step){ .code = OCI_BOUND_POST, .step = op->step });
	case OCI_OP_WAIT_POST:
	case OCI_OP_WAIT_ACK:
		return bind_wait(b, op);
	case OCI_OP_COPY:
		if (oci_is_v(b->ready->plan->key.collective))
			return bind_copy_block(b, op);
		return bind_move(b, op);
	case OCI_OP_PULL:
	case OCI_OP_REDUCE:
	case OCI_OP_REDUCE_FROM:
		return bind_move(b, op);
	case OCI_OP_OFFER:
		return bind_offer(b, op);
	case OCI_OP_TAKE:
		return bind_take(b, op);
	case OCI_OP_GIVE:
	case OCI_OP_TRADE:
		return op->when == OCI_WHEN_LARGE && none_large(b, op);
	case OCI_OP_END:
		return add(b, me, (struct oci_bound_step){ .code = OCI_BOUND_END });
	default:
		return false;
	}
}

struct oci_bound *oci_bound_create(const struct oci_exec *ready)
{
	const struct oci_plan *plan = ready->plan;
	struct oci_bound bound = { .users = 1, .needs_recv = plan->uses_acc }, *made;
	struct binding b = { .ready = ready, .bound = &bound };

	/* Of what has TEMP, only what is for LARGE blocks alone has a form without. */
	if (plan->uses_slot || plan->uses_share)
		return NULL;
	for (uint32_t i = 0; i < plan->count; i++)
		if (!bind_op(&b, &plan->ops[i]))
			return NULL;
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

/* Is the peer's POST up, and of the same call? 1, 0 or -errno. */
static inline int posted(struct oci_exec *x, const struct oci_post_line *post,
			 const struct oci_bound_step *s)
{
	/* Acquire: pairs with the release in oci_team_raise() by the peer's POST. */
	if (oci_load_acquire(&post->flag) >= x->base + s->step && post->signature == x->signature)
		return 1;
	return oci_exec_posted(x, s->peer, s->step);
}

/* Where a block of the call is, and how long; or a place in a payload, whose *bytes stay. */
static inline uint8_t *find_bytes(const struct oci_exec *x, struct oci_bound_place place,
				  const uint8_t *payload, size_t *bytes)
{
	const struct oc_block *table = place.table == OCI_TABLE_SEND ? x->params.send_blocks :
								       x->params.recv_blocks;

	if (place.buf == OCI_BOUND_PAYLOAD)
		return (uint8_t *)(uintptr_t)payload + place.at;
	if (!place.table) {
		*bytes = x->params.bytes;
		return x->buffer[place.buf];
	}
	*bytes = table[place.at].bytes;
	/* A sum of numbers: blocks may lie anywhere. */
	return (uint8_t *)((uintptr_t)x->buffer[place.buf] + table[place.at].offset);
}

bool oci_bound_fits(const struct oci_exec *x)
{
	const struct oci_bound *bound = x->bound;
	size_t bytes = 0;

	for (uint32_t i = 0; i < bound->limits; i++) {
		find_bytes(x, bound->limit[i].block, NULL, &bytes);
		if (bytes > bound->limit[i].most)
			return false;
	}
	return true;
}

/* 1, or the error of what the peer offers, which is not what I expect. */
static inline int move_block(struct oci_exec *x, const struct oci_bound_step *s,
			     const uint8_t *payload)
{
	size_t bytes = SIZE_MAX, room = SIZE_MAX;
	const uint8_t *from = find_bytes(x, s->from, payload, &bytes);
	uint8_t *to = find_bytes(x, s->to, x->inline_bytes, &room);

	if (bytes > room)
		bytes = room;
	if (!bytes)
		return 1;
	if (s->from.buf == OCI_BOUND_PAYLOAD) {
		if (((const struct oci_offer_head *)payload)->large >> s->length & 1)
			return oci_exec_offered(x, &x->plan->ops[s->step]);
		x->moved = OCI_MOVED_INLINE;
	} else if (s->to.buf == OCI_BOUND_PAYLOAD) {
		x->payload = s->to.at + (uint32_t)bytes;
		x->moved = OCI_MOVED_INLINE;
	}
	oci_copy_few(to, from, bytes);
	return 1;
}

/* The steps that few calls have. 1, 0 or -errno. */
static int rare_step(struct oci_exec *x, const struct oci_bound_step *s,
		     const struct oci_post_line *theirs)
{
	size_t bytes = 0;

	switch (s->code) {
	case OCI_BOUND_HEAD:
		*(struct oci_offer_head *)x->inline_bytes = (struct oci_offer_head){ 0 };
		x->payload = sizeof(struct oci_offer_head);
		return 1;
	case OCI_BOUND_WAIT_BLOCK:
		find_bytes(x, s->to, NULL, &bytes);
		return bytes ? posted(x, theirs, s) : 1;
	case OCI_BOUND_MOVE_BLOCK:
		return move_block(x, s, theirs->inline_bytes);
	default: /* OCI_BOUND_SIGNAL */
		oci_team_raise(x->team, &x->lane->ack.flag, &x->lane->ack.ack_waiters,
			       x->base + s->step);
		return 1;
	}
}

static inline uint8_t *mine(const struct oci_exec *x, struct oci_bound_place place)
{
	return x->buffer[place.buf] + place.at;
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
		const struct oci_post_line *theirs = (void *)((uint8_t *)s->region + at);

		result = 1;
		switch (s->code) {
		case OCI_BOUND_POST:
			oci_exec_announce(x);
			oci_team_raise(x->team, &lane->post.flag, &lane->ack.post_waiters,
				       x->base + s->step);
			break;
		case OCI_BOUND_WAIT:
			result = posted(x, theirs, s);
			break;
		case OCI_BOUND_MOVE:
			oci_copy_few(mine(x, s->to), mine(x, s->from), s->length);
			break;
		case OCI_BOUND_TAKE:
			oci_copy_few(mine(x, s->to), theirs->inline_bytes + s->from.at, s->length);
			break;
		case OCI_BOUND_REDUCE:
			x->op->apply(x->op->context, mine(x, s->from), mine(x, s->to), s->length);
			break;
		case OCI_BOUND_REDUCE_FROM:
			x->op->apply(x->op->context, theirs->inline_bytes + s->from.at,
				     mine(x, s->to), s->length);
			break;
		case OCI_BOUND_END:
			x->moved |= bound->moved;
			oci_exec_fetch_lines(x, bound->payload | x->payload);
			return 1;
		default:
			result = rare_step(x, s, theirs);
		}
		if (__builtin_expect(result != 1, 0)) {
			x->pc = (uint32_t)(s - bound->step);
			return result;
		}
	}
}
