/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Outstanding operations. A request waits for its lane, then runs, always by oc_progress() of
 * whichever thread comes by; operations of one team get their numbers in the order of oc_start().
 *
 * A reduction calls the program's operation, which may lock what another thread holds while that
 * one is in a call of ours, or call us itself. So it runs without the engine's lock: it is marked
 * `running`, and other threads pass it by and drive the rest.
 */
#include <errno.h>
#include <stdlib.h>

#include "api/engine.h"
#include "api/helper.h"
#include "os/os.h"

struct operation_request {
	struct oc_request r; /* first */
	struct oc_call call;
	struct oc_op op;
	struct oci_operation operation;
	bool helped;  /* the helper may run it, too */
	bool running; /* by a thread that does not hold the lock: its list alone is others' */
};

/* ---- of both kinds --------------------------------------------------------------------------- */

struct oc_request *oci_request_new(bool message, size_t bytes)
{
	struct oc_request *r = oci_engine.spare[message];

	/* A program starts the next one when this is over: they are used again. */
	if (r)
		oci_engine.spare[message] = r->next;
	else
		r = calloc(1, bytes);
	if (r)
		*r = (struct oc_request){ .message = message };
	return r;
}

void oci_request_free(struct oc_request *r)
{
	r->next = oci_engine.spare[r->message];
	oci_engine.spare[r->message] = r;
}

void oci_request_add(struct oc_request *r, struct oc_request ***last)
{
	r->next = NULL;
	r->link = *last;
	**last = r;
	*last = &r->next;
	/* Atomic as they are read without the lock, without which nobody writes them. */
	__atomic_store_n(&r->team->outstanding, r->team->outstanding + 1, __ATOMIC_RELAXED);
	__atomic_store_n(&oci_engine.pending, oci_engine.pending + 1, __ATOMIC_RELAXED);
}

void oci_request_unlink(struct oc_request *r, struct oc_request ***last)
{
	*r->link = r->next;
	if (r->next)
		r->next->link = r->link;
	else
		*last = r->link;
}

void oci_request_leave(struct oc_request *r)
{
	/* Release: what the request did to its team comes first. Pairs with the acquire in
	 * lock_shared() of message.c and in oc_collective(). */
	__atomic_store_n(&r->team->outstanding, r->team->outstanding - 1, __ATOMIC_RELEASE);
	__atomic_store_n(&oci_engine.pending, oci_engine.pending - 1, __ATOMIC_RELAXED);
	/* Release: what its steps wrote, the result, and the last look at it here. Pairs with the
	 * acquire in oc_peek(). */
	__atomic_store_n(&r->left, true, __ATOMIC_RELEASE);
}

/* ---- operations ------------------------------------------------------------------------------ */

/* As oci_exec_run(). */
static int request_run(struct operation_request *r, bool helper)
{
	struct oci_exec *x = &r->operation.x;
	bool unlocked = r->call.op || helper;
	int result;

	if (helper) {
		/* What the team learns of ways is with the lock, and is not of copies like these.
		 */
		x->unlocked = true;
		x->way_tried = false;
	}
	if (unlocked) {
		r->running = true;
		oci_engine_unlock();
	}
	if (x->way_tried)
		oci_exec_way_begin(x);
	result = oci_exec_run(x);
	if (result == 0)
		result = oci_exec_turn(x, false);
	if (x->way_tried)
		oci_exec_way_end(x);
	if (unlocked) {
		oci_engine_lock();
		r->running = false;
	}
	return result;
}

/* True when it is over. With the lock held; what it guards may be another when this returns. */
static bool request_step(struct operation_request *r, bool helper)
{
	int result;

	/* A failed team ends its other operations too: they may wait for who has gone. */
	result = r->r.team->team.error ? r->r.team->team.error : request_run(r, helper);
	if (result == 0)
		return false;
	oci_operation_over(r->r.team, &r->operation, result);
	r->r.result = result;
	return true;
}

static void request_leave(struct operation_request *r)
{
	if (r->helped)
		oci_helper_work(-1);
	oci_request_unlink(&r->r, &oci_engine.last);
	oci_request_leave(&r->r);
}

/* Another one once an operation has moved. */
static uint64_t position(const struct operation_request *r)
{
	const struct oci_exec *x = &r->operation.x;
	uint64_t at = (uint64_t)x->pc << 32 ^ x->segment << 16 ^ x->at;

	return at + x->transfer.local + x->transfer.turn + x->share_chunk + x->trade.at;
}

/* `helper`: of those that it may run. How many were over, or have moved the helper; *running:
 * others' are among the rest. */
static int operations_progress(bool helper, bool *running)
{
	int moved = 0;

	for (struct oc_request *at = oci_engine.first, *next; at; at = next) {
		struct operation_request *r = (struct operation_request *)at;
		bool over = false, mine = !r->running && (r->helped || !helper);
		/* What another thread runs is not looked at. */
		uint64_t before = helper && mine ? position(r) : 0;

		if (mine)
			over = request_step(r, helper);
		/* Nobody else takes it off the list: not what it was before the step. */
		next = at->next;
		*running |= r->running;
		moved += over || (helper && mine && position(r) != before);
		if (over)
			request_leave(r);
	}
	return moved;
}

int oc_progress(void)
{
	bool helper = __atomic_load_n(&oci_helper_runs, __ATOMIC_RELAXED), running = false;
	int moved;

	if (!__atomic_load_n(&oci_engine.pending, __ATOMIC_RELAXED))
		return 0;
	if (__builtin_expect(helper, 0))
		oci_helper_keep_away();
	/* Another thread is at it, or this one further up its stack. */
	if (!oci_engine_trylock())
		return 0;
	moved = operations_progress(false, &running) + oci_messages_progress();
	oci_engine_unlock();
	if (__builtin_expect(helper && running, 0))
		oci_helper_let_through();
	return moved;
}

bool oci_requests_help(void)
{
	bool running = false;
	int moved;

	if (!oci_engine_trylock())
		return false;
	moved = operations_progress(true, &running);
	oci_engine_unlock();
	return moved;
}

int oci_engine_drive(void)
{
	oc_progress();
	return __atomic_load_n(&oci_engine.pending, __ATOMIC_RELAXED) != 0;
}

void oc_idle(int needed)
{
	oci_wait_polled(needed);
}

int oc_start(struct oc_team *team, const struct oc_call *call, struct oc_request **request)
{
	struct operation_request *r;
	struct oc_call room;
	bool helped;
	int result;

	call = oci_call_inside(team, call, &room);
	result = oci_call_enter(team, call);
	if (result)
		return result;
	helped = oci_helper_takes(team, call);
	oci_engine_lock();
	r = (struct operation_request *)oci_request_new(false, sizeof(*r));
	if (!r) {
		oci_engine_unlock();
		return oc_team_abandon(team, call, -ENOMEM);
	}
	r->r.team = team;
	r->running = r->helped = false;
	r->call = *call;
	if (call->op) {
		r->op = *call->op;
		r->call.op = &r->op;
	}
	result = team->team.error ?:
			 oci_operation_prepare(team, &r->call, OCI_NONBLOCKING, &r->operation);
	if (result) {
		oci_request_free(&r->r);
		oci_engine_unlock();
		return result;
	}
	r->operation.x.polled = true;
	r->operation.x.unlocked = call->op && !oci_engine.alone;
	oci_request_add(&r->r, &oci_engine.last);
	/* The others wait for oc_progress(). */
	if (request_step(r, false)) {
		request_leave(r);
		helped = false;
	} else if (helped) {
		r->helped = true;
		oci_helper_work(1);
	}
	oci_engine_unlock();
	if (helped)
		oci_helper_ring();
	*request = &r->r;
	return 0;
}

int oc_peek(struct oc_request *r)
{
	int result;

	/* Acquire: pairs with the release in oci_request_leave(), of whichever thread. */
	if (!__atomic_load_n(&r->left, __ATOMIC_ACQUIRE))
		return 0;
	result = r->result;
	oci_engine_lock();
	oci_request_free(r);
	oci_engine_unlock();
	return result;
}

int oc_test(struct oc_request *r)
{
	oc_progress();
	return oc_peek(r);
}

int oc_wait(struct oc_request *r)
{
	const struct oci_team *team = &r->team->team;
	int result;
	uint32_t turns = 0;

	while ((result = oc_test(r)) == 0) {
		if (team->oversubscribed || ++turns % 64 == 0) {
			oci_wait_drive();
			oci_wait_polled(false);
		} else {
			oci_cpu_relax();
		}
	}
	return result == 1 ? 0 : result;
}
