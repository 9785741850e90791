/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Nonblocking collectives: one struct oci_mpi_call, opened for the engine, with a carrier. What the
 * engine does not serve is the MPI's own request, started at once: so all that the MPI gets it gets
 * in the order of the calls. The communicator's team is made by its first blocking collective;
 * before, and where the team was refused, nonblocking ones are the MPI's.
 */
#include "calls.h"

#include <errno.h>

#define APART "nonblocking collectives are served where all processes of the job are on one node"
#define EARLY "no team yet: the communicator's first blocking collective makes it"

int oci_record_launch(struct oci_record *record, int *code)
{
	struct oci_mpi_operation *o = &record->operation;
	int result;

	oci_mpi_load(o);
	if (OCI_UNLIKELY(o->status))
		result = oc_team_abandon(record->team, &o->call, o->status);
	else
		result = oc_start(record->team, &o->call, &record->engine);
	/* The team is ready: what began is served. Small operations are often over already. */
	if (!result)
		result = oc_peek(record->engine);
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

static int give_back(struct oci_record *record, const struct oci_mpi_call *call, oci_native *native,
		     MPI_Request *request)
{
	int error = native(call, record->state->comm, request);

	oci_mpi_close(&record->operation);
	oci_record_put(record);
	return error;
}

static int launch(struct oci_record *record, const struct oci_mpi_call *call, oci_native *native,
		  MPI_Request *request)
{
	int code = MPI_SUCCESS, result;

	record->team = record->state->team;
	result = oci_record_launch(record, &code);
	if (result == OC_HAND_BACK)
		return give_back(record, call, native, request);
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

/* Where the team is not there, it is so on all members, and they hand this call back, too. */
static bool has_team(const struct oci_pmpi_comm *state, const char *name)
{
	if (OCI_UNLIKELY(!state->team))
		oc_count_handed_back(name, state->refused ? OCI_NO_TEAM : EARLY);
	return state->team;
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
	if (path == OCI_MPI_ENGINE)
		result = oc_team_abandon(state->team, &o.call, -ENOMEM);
	oci_mpi_close(&o);
	if (result < 0) {
		error = oci_pmpi_failure(state->team, result);
		return oci_pmpi_raise(state->comm, error);
	}
	return native(call, state->comm, request);
}

int oci_pmpi_start(const struct oci_mpi_call *call, const char *name, oci_native *native,
		   MPI_Comm comm, MPI_Request *request)
{
	struct oci_pmpi_comm *state = oci_pmpi_comm_get(comm);
	struct oci_record *record;
	const char *reason;
	enum oci_mpi_path path;

	if (!state || !request || !oci_pmpi_sane(call, state) || !oci_pmpi_served(state, name) ||
	    !has_team(state, name))
		return native(call, comm, request);
	record = oci_record_get();
	if (!record)
		return start_without_memory(call, native, state, request);
	record->state = state;
	path = oci_mpi_open(&record->operation, call, state->rank, state->size, true, &reason);
	if (path == OCI_MPI_NOTHING)
		return complete(record, MPI_SUCCESS, request);
	if (path == OCI_MPI_ENGINE)
		return launch(record, call, native, request);
	oc_count_handed_back(name, reason);
	return give_back(record, call, native, request);
}
