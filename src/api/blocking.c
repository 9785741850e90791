/* SPDX-License-Identifier: BSD-3-Clause */
/* A blocking call: waits for its team, takes its number, runs to its end. */
#include "api/engine.h"
#include "coll/rows.h"

/* Alike on both ranks: no blocking call meets a request. */
static bool gains_by_large(const struct oc_team *team, const struct oc_call *call)
{
	return oci_large_slots_gain(call->collective, call->bytes) &&
	       oci_near_gains_by_large(&team->team);
}

static int take_number(struct oc_team *team, const struct oc_call *call, struct oci_operation *o)
{
	bool gains = gains_by_large(team, call);
	enum oci_form form = gains && team->team.large_slots ? OCI_LARGE : OCI_BLOCKING;
	int result = oci_operation_prepare(team, call, form, o);

	if (gains && !result)
		oci_near_count_large(&team->team);
	return result;
}

static int prepare(struct oc_team *team, const struct oc_call *call, struct oci_operation *o)
{
	int result;

	/* Acquire: pairs with the release in oci_request_leave(). Requests, which another thread
	 * may be running, take their numbers under the lock; so must we while there are any. */
	if (__builtin_expect(!__atomic_load_n(&team->outstanding, __ATOMIC_ACQUIRE), 1))
		return take_number(team, call, o);
	oci_engine_lock();
	result = team->team.error ?: take_number(team, call, o);
	oci_engine_unlock();
	return result;
}

int oci_operation_begin(struct oc_team *team, const struct oc_call *call, struct oci_operation *o)
{
	struct oc_call room;
	int result;

	call = oci_call_inside(team, call, &room);
	result = oci_call_enter(team, call);
	if (result)
		return result;
	return prepare(team, call, o);
}

void oci_operation_end(struct oc_team *team, struct oci_operation *o, int result)
{
	bool shared = __atomic_load_n(&team->outstanding, __ATOMIC_ACQUIRE);

	if (__builtin_expect(shared, 0))
		oci_engine_lock();
	oci_operation_over(team, o, result);
	if (__builtin_expect(shared, 0))
		oci_engine_unlock();
}

int oc_collective(struct oc_team *team, const struct oc_call *call)
{
	struct oci_operation o;
	int result = oci_operation_begin(team, call, &o);

	if (result)
		return result;
	do {
		result = oci_exec_run(&o.x);
	} while (!result && !(result = oci_exec_turn(&o.x, true)));
	oci_operation_end(team, &o, result);
	return result < 0 ? result : 0;
}
