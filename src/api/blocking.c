/* SPDX-License-Identifier: BSD-3-Clause */
/* A blocking call: waits for its team, takes its number, runs to its end. */
#include "api/engine.h"
#include "coll/rows.h"
#include "os/os.h"

/*
 * The ranks' next agreement on how far they are from each other, which this call goes by, comes
 * with the end of requests that are under way. They end by themselves, as those of the peer do,
 * which cannot come to this call without having started them.
 */
static void await_distance(void)
{
	oci_engine_unlock();
	oc_progress();
	oci_wait_drive();
	oci_os_yield();
	oci_engine_lock();
}

/* Where it decides nothing it is unknown, so that calls of both kinds find the same decision. */
static enum oci_apart apart_of(const struct oc_team *team, const struct oc_call *call)
{
	const struct oci_distance *d = &team->team.distance;
	enum oc_collective collective = call->collective;

	if (__builtin_expect(!d->near && (!d->known || !team->by_state), 1))
		return OCI_APART_UNKNOWN;
	if (!(team->by_state && !oci_is_reduction(collective)) &&
	    !oci_near_decides(collective, call->bytes))
		return OCI_APART_UNKNOWN;
	return d->near ? OCI_NEAR : OCI_FAR;
}

/* Of a blocking call. */
static int prepare(struct oc_team *team, const struct oc_call *call, struct oci_operation *o)
{
	int result;

	/* Acquire: pairs with the release in request_unlink(). Requests, which another thread may
	 * be running, take their numbers under the lock; so must we while there are any. */
	if (__builtin_expect(!__atomic_load_n(&team->outstanding, __ATOMIC_ACQUIRE), 1))
		return oci_operation_prepare(team, call, apart_of(team, call), o);
	oci_engine_lock();
	while (oci_distance_unknown(&team->team, team->team.next) && !team->team.error)
		await_distance();
	result = team->team.error ?: oci_operation_prepare(team, call, apart_of(team, call), o);
	oci_engine_unlock();
	return result;
}

int oci_operation_begin(struct oc_team *team, const struct oc_call *call, struct oci_operation *o)
{
	struct oc_call placed, whole;
	int result;

	call = oci_call_whole(team, oci_call_place(call, &placed), &whole);
	result = oci_call_check(team, call);
	if (result)
		return result;
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
		result = o.x.bound ? oci_bound_run(&o.x) : oci_exec_run(&o.x);
	} while (!result && !(result = oci_exec_turn(&o.x, true)));
	oci_operation_end(team, &o, result);
	return result < 0 ? result : 0;
}
