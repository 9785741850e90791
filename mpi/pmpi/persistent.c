/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Persistent collectives, and MPI_Start.
 *
 * Members need not start their persistent calls in one order: what matches is the order of the
 * _init calls. The engine counts the operations of a team, so each persistent call has a team of
 * its own (7.6 KB a rank in shared memory), also where the program asserts one order: what is
 * forced on the communicator later must not reach it. The _init call, which MPI lets wait for the
 * other members, makes it, and the communicator's, as a blocking collective does. What the engine
 * does not serve all the same (an algorithm "mpi", or no room for the team) is a run of the MPI's
 * own persistent request, which is made in the _init call, too, as MPICH numbers them there.
 */
#include "calls.h"

#include <errno.h>

/* The MPI's own request, for all runs; the others are told, whose team is refused. */
static int persist_without_memory(const struct oci_mpi_call *call, oci_native_init *native_init,
				  struct oci_pmpi_comm *state, MPI_Info info, MPI_Request *request)
{
	struct oci_mpi_operation o;
	const char *reason;
	enum oci_mpi_path path = oci_mpi_open(&o, call, state->rank, state->size, false, &reason);

	oci_mpi_close(&o);
	*request = MPI_REQUEST_NULL;
	if (path == OCI_MPI_NOTHING) /* the others have asked the MPI for nothing */
		return oci_pmpi_raise(state->comm, MPI_ERR_NO_MEM);
	if (path == OCI_MPI_ENGINE && oci_pmpi_team(state))
		oci_pmpi_team_abstain(state);
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

static struct oci_record *record_create(struct oci_pmpi_comm *state, const char *name)
{
	struct oci_record *record = oci_record_get();

	if (!record)
		return NULL;
	if (make_persistent(record, state->comm)) {
		oci_record_put(record);
		return NULL;
	}
	record->state = state;
	record->name = name;
	record->persistent = true;
	return record;
}

/*
 * The algorithms that its communicator's info keys ask for are those of now, for all runs: a later
 * "mpi" would find that the MPI's own request was not made.
 */
static void team_create(struct oci_record *record)
{
	if (!oci_pmpi_team(record->state))
		return;
	record->team = oci_pmpi_team_create(record->state);
	if (record->team)
		oci_pmpi_forced_copy(record->state, record->team);
}

int oci_pmpi_persist(const struct oci_mpi_call *call, const char *name,
		     oci_native_init *native_init, MPI_Comm comm, MPI_Info info,
		     MPI_Request *request)
{
	struct oci_pmpi_comm *state = oci_pmpi_comm_get(comm);
	struct oci_record *record;
	const char *reason;
	enum oci_mpi_path path;
	int error = MPI_SUCCESS;

	if (!state || !request || !oci_pmpi_sane(call, state) || !oci_pmpi_served(state, name))
		return native_init(call, comm, info, request);
	record = record_create(state, name);
	if (!record)
		return persist_without_memory(call, native_init, state, info, request);
	path = oci_mpi_open(&record->operation, call, state->rank, state->size, true, &reason);
	if (path == OCI_MPI_BACK) {
		oc_count_handed_back(name, reason);
		oci_record_end(record);
		return native_init(call, comm, info, request);
	}
	record->nothing = path == OCI_MPI_NOTHING;
	if (!record->nothing)
		team_create(record);
	/* Only where it will run: making it may move data already (MPI_Gather_init of MPICH 4.0.2).
	 */
	if (!record->nothing &&
	    !(record->team && oc_team_serves(record->team, &record->operation.call)))
		error = native_init(&record->operation.mpi, comm, info, &record->inner);
	if (error) {
		record->inner = MPI_REQUEST_NULL;
		oci_record_end(record);
		return error;
	}
	*request = record->carrier;
	oci_record_keep(record);
	return MPI_SUCCESS;
}

static int start_record(struct oci_record *record)
{
	int error = PMPI(Start)(&record->carrier), result = OC_HAND_BACK, code = MPI_SUCCESS;

	if (error)
		return error;
	record->active = true;
	if (record->nothing)
		result = 1;
	else if (record->team)
		result = oci_record_launch(record, &code);
	else
		oc_count_handed_back(record->name, OCI_NO_TEAM);
	if (result == OC_HAND_BACK) {
		code = PMPI(Start)(&record->inner);
		result = code ? -EIO : 0;
	}
	if (!result) {
		oci_record_activate(record);
		return MPI_SUCCESS;
	}
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
