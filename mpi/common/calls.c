/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls of a communicator, in all three forms: opened for the engine, loaded, run, stored, closed.
 * Whether one is the engine's is known when it is made, alike on all members; what is not goes to
 * the MPI at once, so that calls reach it in the order of the program.
 */
#include "base/log.h"
#include "common/fastpath.h"
#include "common/request.h"

#include <errno.h>

void oci_mpi_count_back(const struct oci_mpi_call *call, const char *reason)
{
	oc_count_handed_back(oci_function_name(call->function), reason);
}

static enum oci_mpi_path open_call(struct oci_mpi_comm *self, struct oci_mpi_operation *o,
				   const struct oci_mpi_call *call, bool retain,
				   const char **reason)
{
	const struct oci_mpi_graph *graph = NULL;
	bool grid = false;

	if (OCI_LIKELY(
		    oci_mpi_open_short(o, call, self->rank, self->size, retain, oci_port_type_get)))
		return OCI_MPI_ENGINE;
	if (OCI_UNLIKELY(oci_is_neighbor(call->collective))) {
		graph = oci_mpi_graph(self);
		grid = oci_mpi_is_grid(self->comm);
	}
	return oci_mpi_open(o, call, self->rank, self->size, graph, grid, retain, reason);
}

/*
 * Open MPI's MPI_Neighbor_allgather and MPI_Neighbor_alltoall return at once on a rank that gives
 * and gets nothing. In a graph others may have something all the same, and could not tell who is
 * missing.
 */
static bool may_be_ended_by_some(const struct oci_mpi_comm *self, const struct oci_mpi_call *call)
{
#ifdef OPEN_MPI
	return OCI_UNLIKELY(oci_is_neighbor(call->collective)) &&
	       oci_function_is_uniform(call->function) && !oci_mpi_is_grid(self->comm);
#else
	(void)self;
	(void)call;
	return false;
#endif
}

int oci_mpi_refuse(const struct oci_mpi_comm *self, enum oc_collective collective)
{
	if (self->refused)
		oc_count_handed_back(oci_collective_name(collective), OCI_MPI_REFUSED);
	return OC_HAND_BACK;
}

int oci_mpi_run(struct oci_mpi_comm *self, const struct oci_mpi_call *call)
{
	struct oci_mpi_operation o;
	const char *reason = "";
	int status = OC_HAND_BACK;

	if (may_be_ended_by_some(self, call)) {
		oci_mpi_count_back(call, "in a graph, Open MPI itself ends such a call on ranks "
					 "that have nothing to do");
		return OC_HAND_BACK;
	}
	switch (open_call(self, &o, call, false, &reason)) {
	case OCI_MPI_NOTHING:
		status = MPI_SUCCESS;
		break;
	case OCI_MPI_BACK:
		oci_mpi_count_back(call, reason);
		break;
	case OCI_MPI_ENGINE:
		if (OCI_LIKELY(oci_mpi_team(self)))
			oci_mpi_load(&o);
		status = oci_mpi_run_engine(self, &o.call, o.status);
		if (OCI_LIKELY(status == MPI_SUCCESS))
			status = oci_mpi_store(&o);
	}
	oci_mpi_close(&o);
	return status;
}

/* ---- calls that return before they are over ---------------------------------------------------
 */

int oci_mpi_outcome(struct oci_mpi_request *request, int result)
{
	return OCI_LIKELY(result == 1) ? oci_mpi_store(&request->operation) :
					 oci_mpi_failure(request->team, result);
}

static int start_operation(struct oci_mpi_request *request, int *error)
{
	struct oci_mpi_operation *o = &request->operation;
	int result;

	*error = MPI_SUCCESS;
	if (request->lane) {
		oci_mpi_levels_start_again(request);
		return 0;
	}
	if (!request->team)
		return 1;
	oci_mpi_load(o);
	if (OCI_UNLIKELY(o->status))
		result = oc_team_abandon(request->team, &o->call, o->status);
	else
		result = oc_start(request->team, &o->call, &request->engine);
	/* Small operations are often over already. */
	if (!result)
		result = oc_peek(request->engine);
	if (!result || result == OC_HAND_BACK)
		return result;
	*error = oci_mpi_outcome(request, result);
	return 1;
}

int oci_mpi_request_start(struct oci_mpi_request *request, int *error)
{
	int result = start_operation(request, error);

	/* What the MPI is to do was decided when the request was made. */
	if (result == OC_HAND_BACK) {
		oci_warn("a persistent collective that onecopy took when it was made is left "
			 "to the MPI when it is started, so it fails; this is a fault of "
			 "onecopy, and ONECOPY=off avoids it");
		*error = oci_mpi_failure(request->team, -EPROTO);
		result = 1;
	}
	return result;
}

/* The others must not wait for a rank without memory for a request. */
static int abandon(struct oci_mpi_comm *self, const struct oc_call *call, int *error)
{
	int result = oc_team_abandon(self->team, call, -ENOMEM);

	if (result == OC_HAND_BACK)
		return result;
	*error = oci_mpi_failure(self->team, result);
	return 1;
}

static int start(struct oci_mpi_comm *self, struct oci_mpi_request *request,
		 const struct oci_mpi_call *call, bool retain, int *error)
{
	struct oci_mpi_operation own, *o = request ? &request->operation : &own;
	const char *reason = "";
	int result = 1;

	*error = MPI_SUCCESS;
	switch (open_call(self, o, call, retain, &reason)) {
	case OCI_MPI_NOTHING:
		break;
	case OCI_MPI_BACK:
		oci_mpi_count_back(call, reason);
		result = OC_HAND_BACK;
		break;
	case OCI_MPI_ENGINE:
		result = request ? start_operation(request, error) : abandon(self, &o->call, error);
	}
	if (!request)
		oci_mpi_close(o);
	return result;
}

int oci_mpi_start(struct oci_mpi_comm *self, struct oci_mpi_request *request,
		  const struct oci_mpi_call *call, int *error)
{
	return start(self, request, call, request, error);
}

int oci_mpi_start_part(struct oci_mpi_comm *self, struct oci_mpi_request *request,
		       const struct oci_mpi_call *part, int *error)
{
	return start(self, request, part, false, error);
}

/* The team of a persistent call; NULL, with the reason: none, on all members alike. */
static struct oc_team *make_team(struct oci_mpi_comm *self, bool able, const struct oc_call *call,
				 const char **reason)
{
	struct oc_team *team;

	*reason = OCI_MPI_REFUSED;
	if (!oci_mpi_team(self))
		return NULL;
	team = oci_mpi_team_make(self, able);
	if (!team)
		return NULL;
	/* What is wrong with a word was said when the communicator got it. */
	oci_mpi_force_team(self, team, false);
	if (oc_team_serves(team, call))
		return team;
	*reason = OC_LEFT_TO_MPI;
	oc_team_destroy(team);
	return NULL;
}

int oci_mpi_init(struct oci_mpi_comm *self, struct oci_mpi_request *request,
		 const struct oci_mpi_call *call)
{
	struct oci_mpi_operation own, *o = request ? &request->operation : &own;
	struct oc_team *team = NULL;
	const char *reason = "";
	enum oci_mpi_path path;

	path = open_call(self, o, call, request, &reason);
	if (path == OCI_MPI_ENGINE)
		team = make_team(self, request && !o->status, &o->call, &reason);
	if (request)
		request->team = team;
	else
		oci_mpi_close(o);
	if (path == OCI_MPI_NOTHING)
		return request ? 0 : -ENOMEM;
	if (team)
		return 0;
	oci_mpi_count_back(call, reason);
	return OC_HAND_BACK;
}
