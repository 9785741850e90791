/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Nonblocking collectives: one struct oci_mpi_call, opened for the engine, with a carrier. What the
 * engine does not serve is the MPI's own request, unless that shows only later (the communicator's
 * team was being created, and is refused), or an earlier call may be such a one: then the carrier
 * waits for the MPI's.
 */
#include "calls.h"

#include <errno.h>

#define APART "nonblocking collectives are served where all processes of the job are on one node"

/* From here on, no operation on the record's team can be handed back after its start. */
static bool is_ready(struct oci_record *record)
{
	struct oci_pmpi_comm *state = record->state;

	if (record->persistent) /* it is, since the _init call */
		return true;
	if (OCI_LIKELY(state->ready))
		return true;
	state->ready = !__atomic_load_n(&state->undecided, __ATOMIC_ACQUIRE) &&
		       oc_team_progress(state->team) == 1;
	return state->ready;
}

int oci_record_launch(struct oci_record *record, int *code)
{
	struct oci_mpi_operation *o = &record->operation;
	bool ready = is_ready(record);
	int result;

	oci_mpi_load(o);
	if (OCI_UNLIKELY(o->status))
		result = oc_team_abandon(record->team, &o->call, o->status);
	else
		result = oc_start(record->team, &o->call, &record->engine);
	if (result == OC_HAND_BACK)
		return OC_HAND_BACK;
	/* A ready team decides in oc_start(); small operations are often over there, too. */
	if (!result && ready)
		result = oc_peek(record->engine);
	else if (!result)
		record->undecided = true;
	if (result)
		record->engine = NULL;
	if (result < 0)
		*code = oci_pmpi_failure(record->team, result);
	if (result == 1)
		*code = oci_mpi_store(o);
	return result;
}

static int carrier_start(struct oci_record *record)
{
	return PMPI(Irecv)(NULL, 0, MPI_BYTE, 0, record->tag, oci_pmpi_job.self, &record->carrier);
}

/*
 * An operation that is over as soon as it has begun needs no carrier: a barrier with ourselves,
 * which is over, too, is a request of a collective to all functions of the MPI. A failure does need
 * one, as it is known by its carrier's handle.
 */
static int complete(struct oci_record *record, int code, MPI_Request *request)
{
	int error = MPI_SUCCESS;

	if (OCI_LIKELY(!code)) {
		oci_mpi_close(&record->operation);
		oci_record_put(record);
		return PMPI(Ibarrier)(oci_pmpi_job.self, request);
	}
	error = carrier_start(record);
	*request = record->carrier;
	oci_record_finish(record, code);
	return error;
}

/* Behind what may yet come back to the MPI on this communicator. */
static int stand_in_line(struct oci_record *record, MPI_Request *request)
{
	int error = carrier_start(record);

	*request = record->carrier;
	record->active = record->waiting = record->undecided = true;
	oci_record_activate(record);
	return error;
}

static int give_back(struct oci_record *record, const struct oci_mpi_call *call, oci_native *native,
		     MPI_Request *request)
{
	struct oci_pmpi_comm *state = record->state;
	/* Acquire: pairs with the release in decided(). */
	bool waits = __atomic_load_n(&state->undecided, __ATOMIC_ACQUIRE);
	int error;

	/* The program may free what the MPI gets later. Without memory to keep it: now, in order.
	 */
	if (OCI_UNLIKELY(waits) && oci_mpi_keep(&record->operation)) {
		oci_pmpi_await_decided(state);
		waits = false;
	}
	if (OCI_UNLIKELY(waits))
		return stand_in_line(record, request);
	error = native(call, state->comm, request);
	oci_mpi_close(&record->operation);
	oci_record_put(record);
	return error;
}

int oci_pmpi_start_later(const struct oci_mpi_later *call, struct oci_pmpi_comm *state,
			 MPI_Comm comm, MPI_Request *request)
{
	struct oci_record *record;

	/* Acquire: pairs with the release in decided(). */
	if (OCI_LIKELY(!state || !request || !__atomic_load_n(&state->undecided, __ATOMIC_ACQUIRE)))
		return call->start(call, comm, request);
	record = oci_record_get();
	if (record)
		record->later = oci_mpi_later_keep(call, state->rank);
	if (record && record->later) {
		record->state = state;
		record->operation = (struct oci_mpi_operation){ 0 };
		return stand_in_line(record, request);
	}
	if (record)
		oci_record_put(record);
	/* As in give_back(). */
	oci_pmpi_await_decided(state);
	return call->start(call, comm, request);
}

static int launch(struct oci_record *record, const struct oci_mpi_call *call, MPI_Request *request)
{
	int code = MPI_SUCCESS, result;

	record->team = record->state->team;
	result = oci_record_launch(record, &code);
	if (result == OC_HAND_BACK)
		return give_back(record, call, record->native, request);
	/* A failure comes out of the Wait or Test that completes the request. */
	if (result)
		return complete(record, code, request);
	code = carrier_start(record);
	*request = record->carrier;
	record->active = true;
	oci_record_activate(record);
	return code;
}

bool oci_pmpi_served(const struct oci_pmpi_comm *state, const char *name)
{
	const char *reason = state->reason ? state->reason : oci_pmpi_job.together ? NULL : APART;

	if (OCI_UNLIKELY(reason) && (state->size > 1 || state->inter))
		oc_count_handed_back(name, reason);
	return !reason;
}

/* The others are told, where they would wait. */
static int start_without_memory(const struct oci_mpi_call *call, oci_native *native,
				struct oci_pmpi_comm *state, MPI_Request *request)
{
	struct oci_mpi_operation o;
	const char *reason;
	enum oci_mpi_path path = oci_mpi_open(&o, call, state->rank, state->size, false, &reason);
	int result = OC_HAND_BACK, error;

	*request = MPI_REQUEST_NULL;
	if (path == OCI_MPI_ENGINE && oci_pmpi_team(state))
		result = oc_team_abandon(state->team, &o.call, -ENOMEM);
	oci_mpi_close(&o);
	if (result < 0) {
		error = oci_pmpi_failure(state->team, result);
		return oci_pmpi_raise(state->comm, error);
	}
	oci_pmpi_await_decided(state);
	return native(call, state->comm, request);
}

int oci_pmpi_start(const struct oci_mpi_call *call, const char *name, oci_native *native,
		   MPI_Comm comm, MPI_Request *request)
{
	struct oci_pmpi_comm *state = oci_pmpi_comm_get(comm);
	struct oci_record *record;
	const char *reason;
	enum oci_mpi_path path;

	if (!state || !request || !oci_pmpi_sane(call, state) || !oci_pmpi_served(state, name)) {
		if (state)
			oci_pmpi_await_decided(state);
		return native(call, comm, request);
	}
	record = oci_record_get();
	if (!record)
		return start_without_memory(call, native, state, request);
	record->state = state;
	record->native = native;
	record->name = name;
	path = oci_mpi_open(&record->operation, call, state->rank, state->size, true, &reason);
	if (path == OCI_MPI_NOTHING)
		return complete(record, MPI_SUCCESS, request);
	if (path == OCI_MPI_ENGINE && oci_pmpi_team(state))
		return launch(record, call, request);
	oc_count_handed_back(name, path == OCI_MPI_BACK ? reason : OCI_NO_TEAM);
	return give_back(record, call, native, request);
}
