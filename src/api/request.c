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
#include "os/os.h"

struct oc_request {
	bool message;			 /* false: see struct oci_message_request */
	struct oc_request *next, **link; /* next alone while it is spare */
	struct oc_team *team;
	struct oc_call call;
	struct oc_op op;
	struct oci_operation operation;
	bool running; /* by a thread that does not hold the lock: its list alone is others' */
	bool over;    /* and about to leave the list */
	bool left;    /* it has: it is its owner's alone; atomic */
	int result;   /* as oc_test() returns it */
};

/* Takes one that is over off the list: from then on its owner may free it. */
static void request_unlink(struct oc_request *r)
{
	*r->link = r->next;
	if (r->next)
		r->next->link = r->link;
	else
		oci_engine.last = r->link;
	/* Release: what the request did to its team comes first. Pairs with the acquire in
	 * oc_collective(). */
	__atomic_fetch_sub(&r->team->outstanding, 1, __ATOMIC_RELEASE);
	__atomic_fetch_sub(&oci_engine.pending, 1, __ATOMIC_RELAXED);
	/* Release: what its steps wrote, and the last look at it here. Pairs with the acquire in
	 * oc_peek(). */
	__atomic_store_n(&r->left, true, __ATOMIC_RELEASE);
}

/* As oci_exec_run(). */
static int request_run(struct oc_request *r)
{
	struct oci_exec *x = &r->operation.x;
	bool unlocked = r->call.op;
	int result;

	if (unlocked) {
		r->running = true;
		oci_engine_unlock();
	}
	result = oci_exec_run(x);
	if (result == 0)
		result = oci_exec_turn(x, false);
	if (unlocked) {
		oci_engine_lock();
		r->running = false;
	}
	return result;
}

/* True when it is over. With the lock held; what it guards may be another when this returns. */
static bool request_step(struct oc_request *r)
{
	int result;

	/* A failed team ends its other operations too: they may wait for who has gone. */
	result = r->team->team.error ? r->team->team.error : request_run(r);
	if (result == 0)
		return false;
	oci_operation_over(r->team, &r->operation, result);
	r->result = result;
	r->over = true;
	return true;
}

static int progress_locked(void)
{
	int moved = 0;

	for (struct oc_request *r = oci_engine.first, *next; r; r = next) {
		bool over = !r->running && request_step(r);

		/* Nobody else takes it off the list: not what it was before the step. */
		next = r->next;
		if (over)
			request_unlink(r);
		moved += over;
	}
	return moved + oci_messages_progress();
}

int oc_progress(void)
{
	int moved;

	if (!__atomic_load_n(&oci_engine.pending, __ATOMIC_RELAXED))
		return 0;
	/* Another thread is at it, or this one further up its stack. */
	if (!oci_engine_trylock())
		return 0;
	moved = progress_locked();
	oci_engine_unlock();
	return moved;
}

int oci_engine_drive(void)
{
	oc_progress();
	return __atomic_load_n(&oci_engine.pending, __ATOMIC_RELAXED) != 0;
}

/* With the lock held. A program starts the next one when this is over: they are used again. */
static struct oc_request *request_new(void)
{
	struct oc_request *r = oci_engine.spare;

	if (!r)
		return calloc(1, sizeof(*r));
	oci_engine.spare = r->next;
	*r = (struct oc_request){ 0 };
	return r;
}

static void request_free(struct oc_request *r)
{
	r->next = oci_engine.spare;
	oci_engine.spare = r;
}

int oc_start(struct oc_team *team, const struct oc_call *call, struct oc_request **request)
{
	struct oc_request *r;
	struct oc_call room;
	int result;

	call = oci_call_inside(team, call, &room);
	result = oci_call_enter(team, call);
	if (result)
		return result;
	oci_engine_lock();
	r = request_new();
	if (!r) {
		oci_engine_unlock();
		return oc_team_abandon(team, call, -ENOMEM);
	}
	r->team = team;
	r->call = *call;
	if (call->op) {
		r->op = *call->op;
		r->call.op = &r->op;
	}
	result = team->team.error ?: oci_operation_prepare(team, &r->call, false, &r->operation);
	if (result) {
		request_free(r);
		oci_engine_unlock();
		return result;
	}
	r->operation.x.polled = true;
	r->link = oci_engine.last;
	*r->link = r;
	oci_engine.last = &r->next;
	__atomic_fetch_add(&team->outstanding, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&oci_engine.pending, 1, __ATOMIC_RELAXED);
	/* The others wait for oc_progress(). */
	if (request_step(r))
		request_unlink(r);
	oci_engine_unlock();
	*request = r;
	return 0;
}

int oc_peek(struct oc_request *r)
{
	struct oci_message_request *message = oci_message_of(r);
	int result;

	if (message)
		return oci_message_peek(message);
	/* Acquire: pairs with the release in request_unlink(), of whichever thread. */
	if (!__atomic_load_n(&r->left, __ATOMIC_ACQUIRE))
		return 0;
	result = r->result;
	oci_engine_lock();
	request_free(r);
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
	const struct oci_message_request *message = oci_message_of(r);
	const struct oci_team *team = message ? &message->team->team : &r->team->team;
	int result;
	uint32_t turns = 0;

	while ((result = oc_test(r)) == 0) {
		/* Polled: several operations may be waited for at once, so it yields, never sleeps.
		 */
		if (team->oversubscribed || ++turns % 64 == 0) {
			oci_wait_drive();
			oci_os_yield();
		} else {
			oci_cpu_relax();
		}
	}
	return result == 1 ? 0 : result;
}
