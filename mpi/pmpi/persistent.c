/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Persistent collectives, and MPI_Start.
 *
 * Members need not start their persistent calls in one order: what matches is the order of the
 * _init calls. The engine counts the operations of a team, so each persistent call has a team of
 * its own (7.6 KB a rank in shared memory), also where the program asserts one order: what is
 * forced on the communicator later must not reach it. The _init call, which MPI lets wait for the
 * other members, makes it, and the communicator's, as a blocking collective does. Whether the
 * engine serves the runs is known then; else (an algorithm "mpi", or no room for the team) the
 * program gets the MPI's own request.
 */
#include "calls.h"

#include <errno.h>

/*
 * The team of a call whose runs are the engine's. NULL: none, on all members alike, and why.
 * `able`: this member can take part. The algorithms that the communicator's info keys ask for are
 * those of now, for all runs.
 */
static struct oc_team *make_team(struct oci_pmpi_comm *state, bool able, const struct oc_call *call,
				 const char **reason)
{
	struct oc_team *team;

	*reason = OCI_NO_TEAM;
	if (!oci_pmpi_team(state))
		return NULL;
	if (!able) {
		oci_pmpi_team_abstain(state);
		return NULL;
	}
	team = oci_pmpi_team_create(state);
	if (!team)
		return NULL;
	oci_pmpi_forced_copy(state, team);
	if (oc_team_serves(team, call))
		return team;
	*reason = "the MPI's own algorithm was chosen for this size";
	oc_team_destroy(team);
	return NULL;
}

/* The others are told, which make a team now, unless the call needs none. */
static int persist_without_memory(const struct oci_mpi_call *call, const char *name,
				  oci_native_init *native_init, struct oci_pmpi_comm *state,
				  MPI_Info info, MPI_Request *request)
{
	struct oci_mpi_operation o;
	const char *reason = "";
	enum oci_mpi_path path = oci_mpi_open(&o, call, state->rank, state->size, false, &reason);

	if (path == OCI_MPI_ENGINE)
		make_team(state, false, &o.call, &reason);
	oci_mpi_close(&o);
	*request = MPI_REQUEST_NULL;
	if (path == OCI_MPI_NOTHING)
		return oci_pmpi_raise(state->comm, MPI_ERR_NO_MEM);
	oc_count_handed_back(name, reason);
	return native_init(call, state->comm, info, request);
}

/*
 * The anchor is never started. It is there because a request keeps its communicator alive when the
 * program frees that, as it may while it still has the request.
 */
static int make_persistent(struct oci_record *record, MPI_Comm comm)
{
	int error = PMPI(Recv_init)(NULL, 0, MPI_BYTE, 0, 0, comm, &record->anchor);

	if (error)
		return error;
	error = PMPI(Recv_init)(NULL, 0, MPI_BYTE, 0, record->tag, oci_pmpi_job.self,
				&record->carrier);
	if (error)
		PMPI(Request_free)(&record->anchor);
	return error;
}

static struct oci_record *record_create(struct oci_pmpi_comm *state)
{
	struct oci_record *record = oci_record_get();

	if (!record)
		return NULL;
	if (make_persistent(record, state->comm)) {
		oci_record_put(record);
		return NULL;
	}
	record->state = state;
	record->persistent = true;
	return record;
}

int oci_pmpi_persist(const struct oci_mpi_call *call, const char *name,
		     oci_native_init *native_init, MPI_Comm comm, MPI_Info info,
		     MPI_Request *request)
{
	struct oci_pmpi_comm *state = oci_pmpi_comm_get(comm);
	struct oci_record *record;
	const char *reason = "";
	enum oci_mpi_path path;

	if (!state || !request || !oci_pmpi_sane(call, state) || !oci_pmpi_served(state, name))
		return native_init(call, comm, info, request);
	record = record_create(state);
	if (!record)
		return persist_without_memory(call, name, native_init, state, info, request);
	path = oci_mpi_open(&record->operation, call, state->rank, state->size, true, &reason);
	record->nothing = path == OCI_MPI_NOTHING;
	if (path == OCI_MPI_ENGINE)
		record->team = make_team(state, !record->operation.status, &record->operation.call,
					 &reason);
	if (record->nothing || record->team) {
		*request = record->carrier;
		oci_record_keep(record);
		return MPI_SUCCESS;
	}
	oc_count_handed_back(name, reason);
	oci_record_end(record);
	return native_init(call, comm, info, request);
}

static int start_record(struct oci_record *record)
{
	int error = PMPI(Start)(&record->carrier), result = 1, code = MPI_SUCCESS;

	if (error)
		return error;
	record->active = true;
	/* Never handed back: the _init call has asked whether the engine serves these. */
	if (!record->nothing)
		result = oci_record_launch(record, &code);
	if (!result)
		oci_record_activate(record);
	else
		oci_record_finish(record, code);
	return MPI_SUCCESS;
}

int oci_pmpi_Start(MPI_Request *request)
{
	struct oci_record *record = request ? oci_record_of(*request) : NULL;

	return record && !record->active ? start_record(record) : PMPI(Start)(request);
}

int oci_pmpi_Startall(int count, MPI_Request requests[])
{
	int error = MPI_SUCCESS, here;

	if (!__atomic_load_n(&oci_record_persistents, __ATOMIC_RELAXED) || count <= 0 || !requests)
		return PMPI(Startall)(count, requests);
	for (int i = 0; i < count; i++) {
		here = oci_pmpi_Start(&requests[i]);
		if (here)
			error = here;
	}
	return error;
}
