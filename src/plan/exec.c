/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The executor of a rank: begins an operation, takes its steps, polls and waits. In one file, so
 * that the compiler can put the steps into their loop.
 */
#include "plan/exec.h"

#include <errno.h>
#include <stdlib.h>

#include "base/shelf.h"

/* Looks at a flag before a blocking wait does anything else: about the time of a line transfer
 * between two cores, so that the common case meets no slow path. */
#define OCI_QUICK_POLLS 64
/* Blocked turns between two looks for peers' requests, when no pair copies by shm. */
#define OCI_TURNS_PER_SERVE 64

/* Fetched of the next slot: what two ranks that share no cache move through one of most collectives
 * (coll/rows.c); the rest of a larger piece is fetched while its front is copied. With 4 KiB 8 KiB
 * took up to 1.3 times as long (docs/results/pair-8k-2.csv). */
#define OCI_FETCH_BYTES 8192

static uint64_t signature_of(const struct oci_record *r)
{
	uint64_t hash = r->bytes * 0x9e3779b97f4a7c15ull;

	hash ^= (uint64_t)r->root << 32 | (r->op ^ (uint32_t)r->in_place << 31);
	hash *= 0xff51afd7ed558ccdull;
	hash ^= (uint64_t)r->collective << 56 | (uint64_t)r->algorithm << 48 |
		(uint64_t)r->unit << 24 | r->parameter;
	return hash;
}

void oci_exec_ready(struct oci_exec *x)
{
	x->signature = x->team->check_calls ? signature_of(&x->record) : 0;
	x->polls = x->team->oversubscribed ? 1 : OCI_QUICK_POLLS;
	oci_params_derive(&x->params, x->plan, x->unit);
}

void oci_exec_init(struct oci_exec *x, uint64_t seq)
{
	x->seq = seq;
	x->base = seq * OCI_STEPS;
	x->lane = &x->team->own->lane[seq % OCI_LANES];
	x->inline_bytes = x->lane->post.inline_bytes;
	x->acc_in_recv = x->recv && x->recv != x->send;
	if (x->bound && (x->layouts || (x->bound->needs_recv && !x->acc_in_recv) ||
			 (x->bound->limits && !oci_bound_fits(x))))
		x->bound = NULL;
}

/* Nothing of a peer's in particular: the caller tries again. */
void oci_exec_await_nobody(struct oci_exec *x)
{
	x->awaited = (struct oci_awaited){ .word = &x->team->own->progress.done,
					   .target = UINT64_MAX,
					   .peer = x->team->rank };
}

int oci_exec_no_slot(struct oci_exec *x, int error)
{
	if (error != -EAGAIN)
		return error;
	oci_exec_await_nobody(x);
	return 0;
}

/* Any rank's word that keeps operation seq from starting: its predecessor in the lane. */
static void await_lane(struct oci_exec *x)
{
	struct oci_team *team = x->team;
	uint64_t below = x->seq - OCI_LANES + 1;

	for (uint32_t r = 0; r < team->size; r++) {
		uint64_t *done = &team->member[r].region->progress.done;

		if (r == team->rank || oci_load_acquire(done) >= below)
			continue;
		x->awaited = (struct oci_awaited){ .word = done, .target = below, .peer = r };
		return;
	}
	oci_exec_await_nobody(x); /* an operation of our own holds the lane */
}

/* One piece of memory for all that the plan has beside the caller's buffers: ACC and TEMP of a
 * segment each, where a reduction does not accumulate in RECV, and WORK. */
static int take_scratch(struct oci_exec *x)
{
	const struct oci_plan *plan = x->plan;
	size_t segment = plan->uses_temp || plan->uses_acc ? x->params.segment_bytes : 0, bytes;

	if (__builtin_mul_overflow((size_t)plan->work_blocks, x->params.bytes, &bytes) ||
	    __builtin_add_overflow(bytes, 2 * segment, &bytes))
		bytes = SIZE_MAX / 2;
	x->temp = oci_shelf_get(bytes);
	if (!x->temp)
		return oci_team_fail(x->team, -ENOMEM, -1,
				     "no memory for %zu bytes of the buffers of %s itself", bytes,
				     oci_collective_name(plan->key.collective));
	x->acc = x->temp + segment;
	x->work = x->acc + segment;
	if (x->team->any_kmod)
		oci_register((uintptr_t)x->work, (size_t)plan->work_blocks * x->params.bytes);
	return 0;
}

int oci_exec_start(struct oci_exec *x)
{
	if (x->seq > OCI_LANES && !oci_team_all_done(x->team, x->seq - OCI_LANES + 1)) {
		await_lane(x);
		return 0;
	}
	if (__atomic_load_n(&x->team->stranger, __ATOMIC_RELAXED))
		return oci_exec_stranger(x->team);
	if (x->layouts) {
		/* The lane's last operation is over everywhere: nobody reads that one's any more.
		 */
		x->team->layouts[x->seq % OCI_LANES] = *x->layouts;
		x->lane->ack.layouts = (uintptr_t)&x->team->layouts[x->seq % OCI_LANES];
	}
	if (x->plan->uses_slot) {
		x->slot_room = (uint32_t)oci_plan_slot_bytes(x->plan, x->params.bytes);
		x->slot_offset =
			oci_slot_acquire(x->team, x->seq, x->slot_room,
					 x->plan->slot_blocks ? x->params.bytes : OCI_SLOT_BYTES);
		if (x->slot_offset < 0)
			return oci_exec_no_slot(x, (int)x->slot_offset);
		x->slot = (uint8_t *)oci_segment_base() + x->slot_offset;
	}
	/* A bound form has no step that needs any. */
	if (!x->bound && (x->plan->uses_temp || x->plan->work_blocks ||
			  (x->plan->uses_acc && !x->acc_in_recv))) {
		int error = take_scratch(x);

		if (error)
			return error;
	}
	if (!x->plan->posts) {
		oci_exec_announce(x);
		oci_team_raise(x->team, &x->lane->post.flag, &x->lane->ack.post_waiters, x->base);
	}
	x->started = true;
	return 1;
}

uint8_t *oci_exec_local(const struct oci_exec *x, const struct oci_range *range, size_t *bytes)
{
	size_t offset;

	oci_range_eval(range, &x->params, x->segment, &offset, bytes);
	switch (range->buf) { /* Blocks of a table may lie anywhere: sums of numbers, that wrap. */
	case OCI_BUF_SEND:
		return (uint8_t *)((uintptr_t)x->send + offset);
	case OCI_BUF_RECV:
		return (uint8_t *)((uintptr_t)x->recv + offset);
	case OCI_BUF_SLOT:
		return x->slot + offset;
	case OCI_BUF_WORK:
		return x->work + offset;
	case OCI_BUF_TEMP:
		return x->temp;
	case OCI_BUF_ACC:
		return x->acc_in_recv ? x->recv + offset : x->acc;
	default:
		return x->lane->post.inline_bytes + offset;
	}
}

static void exec_post(struct oci_exec *x, const struct oci_op *op)
{
	struct oci_post_line *post = &x->lane->post;

	if (!x->announced)
		oci_exec_announce(x);
	if (op->address && !x->published) {
		post->address[OCI_BUF_SEND] = (uintptr_t)x->send;
		post->address[OCI_BUF_RECV] = (uintptr_t)x->recv;
		if (x->plan->work_blocks)
			post->address[OCI_BUF_WORK] = (uintptr_t)x->work;
		if (x->plan->uses_share) {
			/* Before the flag that lets the other end claim; the lane's last users have
			 * finished, so these words are ours alone until then. */
			oci_store_relaxed(&x->lane->aux.claim, 0);
			oci_store_relaxed(&x->lane->aux.helped, 0);
		}
	}
	if (op->slot && !x->published) {
		post->address[OCI_BUF_SLOT] = (uint64_t)x->slot_offset;
		x->moved |= OCI_MOVED_SLOT;
	}
	/* A POST in a loop publishes once: peers read the addresses from then on. */
	x->published = true;
	oci_team_raise(x->team, &post->flag, &x->lane->ack.post_waiters,
		       x->base + op->step + x->segment * op->step_loop);
}

/* Is a flag of rank `peer` at `step`? 1, or 0 (awaited is set). */
static int reached(struct oci_exec *x, uint32_t peer, uint64_t *flag, uint32_t *waiters,
		   uint64_t step)
{
	uint64_t target = x->base + step;

	for (uint32_t i = 0; i < x->polls; i++) {
		/* Acquire: pairs with the release in oci_team_raise() by the peer's POST or
		 * SIGNAL. */
		if (oci_load_acquire(flag) >= target)
			return 1;
	}
	x->awaited = (struct oci_awaited){ .word = flag,
					   .waiters = waiters,
					   .target = target,
					   .peer = peer };
	return 0;
}

int oci_exec_posted(struct oci_exec *x, uint32_t peer, uint64_t step)
{
	struct oci_lane *lane = oci_team_lane(x->team, peer, x->seq);
	int up = reached(x, peer, &lane->post.flag, &lane->ack.post_waiters, step);

	if (up && lane->post.signature != x->signature)
		return oci_exec_differs(x, peer);
	return up;
}

uint32_t oci_exec_peer(const struct oci_exec *x, const struct oci_op *op, uint32_t i)
{
	uint32_t v = op->peer + i;

	return oci_rank_of(&x->params, v >= x->params.size ? v - x->params.size : v);
}

struct oci_range oci_exec_block_of(const struct oci_op *op, uint32_t peer)
{
	struct oci_range range = op->local;

	if (op->by_peer)
		range.block = peer;
	return range;
}

static bool waits_for(const struct oci_exec *x, const struct oci_op *op, uint32_t peer)
{
	struct oci_range range;
	size_t offset, bytes;

	if (op->when == OCI_WHEN_ALWAYS)
		return true;
	range = oci_exec_block_of(op, peer);
	oci_range_eval(&range, &x->params, x->segment, &offset, &bytes);
	return oci_when_holds(op->when, bytes, op->limit);
}

static int exec_wait(struct oci_exec *x, const struct oci_op *op)
{
	uint64_t step = op->step + x->segment * op->step_loop;

	for (; x->at < op->peers; x->at++) {
		uint32_t peer = oci_exec_peer(x, op, x->at);
		struct oci_ack_line *ack = &oci_team_lane(x->team, peer, x->seq)->ack;
		int up;

		if (!waits_for(x, op, peer))
			continue;
		up = op->code == OCI_OP_WAIT_POST ?
			     oci_exec_posted(x, peer, step) :
			     reached(x, peer, &ack->flag, &ack->ack_waiters, step);
		if (up <= 0)
			return up;
	}
	x->at = 0;
	return 1;
}

const uint8_t *oci_exec_shared(const struct oci_exec *x, uint32_t peer,
			       const struct oci_range *range, size_t *bytes)
{
	const struct oci_lane *lane = oci_team_lane(x->team, peer, x->seq);
	size_t offset;

	oci_range_eval(range, &x->params, x->segment, &offset, bytes);
	if (range->buf == OCI_BUF_INLINE)
		return lane->post.inline_bytes + offset;
	return x->team->member[peer].peer->base + lane->post.address[OCI_BUF_SLOT] + offset;
}

static int exec_copy_from_peer(struct oci_exec *x, const struct oci_op *op)
{
	uint32_t peer = oci_exec_peer(x, op, 0);
	size_t bytes, there;
	uint8_t *local = oci_exec_local(x, &op->local, &bytes);
	uint64_t remote = 0;
	int error, reduced;

	if (op->remote.buf == OCI_BUF_SLOT || op->remote.buf == OCI_BUF_INLINE) {
		const uint8_t *from = oci_exec_shared(x, peer, &op->remote, &there);

		if (bytes)
			oci_exec_copy_bytes(x, local, from, bytes < there ? bytes : there);
		x->moved |= op->remote.buf == OCI_BUF_SLOT ? OCI_MOVED_SLOT : OCI_MOVED_INLINE;
		return 1;
	}
	if (!bytes)
		return 1;
	if (!x->in_transfer) {
		error = oci_exec_remote(x, peer, &op->remote, bytes, &remote);
		if (error)
			return error;
	}
	reduced = oci_exec_reduce_mapped(x, op, peer, remote, bytes);
	if (reduced) {
		x->pc++;
		return reduced;
	}
	return oci_exec_transfer(x, peer, op->code == OCI_OP_PULL ? OCI_PULL : OCI_PUSH, local,
				 remote, bytes, bytes);
}

static void exec_copy(struct oci_exec *x, const struct oci_op *op)
{
	uint8_t *from, *to;
	size_t bytes, room;
	/* A result that was accumulated in its place: plans copy it from ACC to the same range. */
	if (op->local.buf == OCI_BUF_ACC && op->second.buf == OCI_BUF_RECV && x->acc_in_recv)
		return;
	from = oci_exec_local(x, &op->local, &bytes);
	to = oci_exec_local(x, &op->second, &room);
	if (op->second.buf == OCI_BUF_INLINE) {
		x->moved |= OCI_MOVED_INLINE;
		x->payload = (uint32_t)(to + bytes - x->lane->post.inline_bytes);
	} else if (op->second.buf == OCI_BUF_SLOT) {
		x->slot_used = (uint32_t)(to + bytes - x->slot);
	}
	if (from != to && bytes)
		oci_exec_copy_bytes(x, to, from, bytes < room ? bytes : room);
}

/* The slot of the next operation likewise; see oci_exec_fetch_lines(). */
static void fetch_slot(const struct oci_exec *x)
{
	int64_t slot = x->slot_used ? oci_slot_likely_next(x->slot_room) : -1;
	const uint8_t *next = (const uint8_t *)oci_segment_base() + slot;

	if (slot < 0)
		return;
	for (uint32_t at = 0; at < x->slot_used && at < OCI_FETCH_BYTES; at += OCI_LINE)
		oci_prefetch_write(next + at);
}

/* What is the same for every ended execution. */
void oci_exec_over(struct oci_exec *x)
{
	/* Peers know where the caller's buffers are, and those that are given back here. */
	if (__builtin_expect(__atomic_load_n(&x->team->error, __ATOMIC_ACQUIRE), 0))
		oci_team_revoke(x->team, x->seq);
	if (x->temp)
		oci_shelf_put(x->temp);
	x->temp = NULL;
	if (x->foreign) {
		oci_foreign_free(x->foreign);
		free(x->foreign);
		x->foreign = NULL;
	}
}

static void exec_loop(struct oci_exec *x, const struct oci_op *op)
{
	x->segment = 0;
	if (!oci_range_segments(&op->local, &x->params))
		x->pc = op->jump;
}

static void exec_next(struct oci_exec *x, const struct oci_op *op)
{
	if (++x->segment < oci_range_segments(&x->plan->ops[op->jump].local, &x->params))
		x->pc = op->jump;
	else
		x->segment = 0;
}

int oci_exec_run_plan(struct oci_exec *x)
{
	int result;

	for (result = x->started ? 1 : oci_exec_start(x); result == 1; x->pc += result == 1) {
		const struct oci_op *op = &x->plan->ops[x->pc];

		switch (op->code) {
		case OCI_OP_END:
			oci_exec_fetch_lines(x, x->payload);
			fetch_slot(x);
			if (x->way_tried)
				oci_exec_way_tell(x);
			oci_exec_over(x);
			return 1;
		case OCI_OP_POST:
			exec_post(x, op);
			break;
		case OCI_OP_SIGNAL:
			oci_team_raise(x->team, &x->lane->ack.flag, &x->lane->ack.ack_waiters,
				       x->base + op->step + x->segment * op->step_loop);
			break;
		case OCI_OP_WAIT_POST:
		case OCI_OP_WAIT_ACK:
			result = exec_wait(x, op);
			break;
		case OCI_OP_PULL:
		case OCI_OP_PUSH:
			result = exec_copy_from_peer(x, op);
			break;
		case OCI_OP_SHARE:
			result = oci_exec_share(x, op);
			break;
		case OCI_OP_HELP:
			result = oci_exec_help(x, op);
			break;
		case OCI_OP_COPY:
			exec_copy(x, op);
			break;
		case OCI_OP_REDUCE:
		case OCI_OP_REDUCE_FROM:
			oci_exec_reduce(x, op);
			break;
		case OCI_OP_OFFER:
			result = oci_exec_offer(x, op);
			break;
		case OCI_OP_TAKE:
		case OCI_OP_GIVE:
			result = oci_exec_offered(x, op);
			break;
		case OCI_OP_TRADE:
			result = oci_exec_trade(x, op);
			break;
		case OCI_OP_LOOP:
			exec_loop(x, op);
			break;
		default: /* OCI_OP_NEXT; the builder lets nothing else through */
			exec_next(x, op);
		}
	}
	if (result < 0)
		oci_exec_over(x);
	return result;
}

/* Peers' requests for help with a buffer of mine: looked for often once one came, or when some pair
 * must use shm. */
static void serve(struct oci_exec *x)
{
	if (!x->plan->posts_addresses)
		return;
	/* Relaxed: a hint, which another thread's operation of this team may set. */
	if (!__atomic_load_n(&x->team->any_shm, __ATOMIC_RELAXED) && !x->team->oversubscribed &&
	    x->blocked++ % OCI_TURNS_PER_SERVE)
		return;
	if (x->started && oci_shm_serve(x->team, x->seq)) {
		/* Whatever made a peer ask once, a lost permission, or that slots are quicker
		 * between us, will make it ask again. */
		__atomic_store_n(&x->team->any_shm, true, __ATOMIC_RELAXED);
		x->wait = (struct oci_wait){ 0 };
	}
}

/* Is what is waited for still to come? 0 or an error. */
static int look(const struct oci_exec *x)
{
	struct oci_team *team = x->team;
	int result = 0;

	if (x->awaited.peer != team->rank)
		return oci_team_look(team, &x->awaited);
	/* Nothing of a peer's in particular: whoever has not finished this operation may have gone
	 * with what we need. */
	for (uint32_t r = 0; r < team->size && !result; r++) {
		struct oci_awaited end = { .word = &team->member[r].region->progress.done,
					   .target = x->seq + 1,
					   .peer = r };

		if (r != team->rank)
			result = oci_team_look(team, &end);
	}
	return result;
}

/* Polled operations: how often the clock is asked whether it is time to look at the peers. */
#define POLLS_PER_LOOK 16

int oci_exec_turn(struct oci_exec *x, bool may_wait)
{
	int result = 0;

	serve(x);
	/* Before that the lane is still another operation's, which another thread may run. */
	if (!may_wait && x->started)
		oci_store_relaxed(&x->lane->ack.looks, x->lane->ack.looks + 1);
	/* Another wait than before: it starts to spin anew. */
	if (x->awaited.word != x->waited_on) {
		x->waited_on = x->awaited.word;
		x->wait = (struct oci_wait){ 0 };
	}
	if (may_wait ? !oci_wait_turn(x->team, &x->wait, &x->awaited) :
		       ++x->wait.polls % POLLS_PER_LOOK || !oci_wait_is_long(&x->wait))
		return 0;
	/* The mismatch first: it explains why the peer has given up. */
	if (x->started)
		result = oci_exec_look_for_mismatch(x);
	if (!result)
		result = look(x);
	if (!result)
		result = oci_team_hear(x->team, &x->awaited);
	if (result < 0)
		oci_exec_over(x);
	return result;
}
