/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Nonblocking and persistent collectives, with a carrier each. What the engine does not serve is
 * the MPI's own request, started at once: so all that the MPI gets it gets in the order of the
 * calls. The communicator's team is made by its first blocking collective; before, and where the
 * team was refused, nonblocking ones are the MPI's.
 */
#include "pmpi.h"

#include <errno.h>

#define APART                                                                                   \
	"nonblocking collectives are served where all processes of the job are on one node or " \
	"have MPI_THREAD_MULTIPLE"
#define EARLY "no team yet: the communicator's first blocking collective makes it"

/* Nonblocking collectives of this communicator may be served; else the reason is counted. */
static bool served(const struct oci_pmpi_comm *state, const struct oci_mpi_call *call)
{
	const char *reason = !state->mpi.spans ? state->reason : NULL;

	if (!reason && !oci_pmpi_job.starts)
		reason = APART;
	if (OCI_UNLIKELY(reason) && (state->mpi.size > 1 || state->inter))
		oci_mpi_count_back(call, reason);
	return !reason;
}

/* Where the team is not there, it is so on all members, and they hand this call back, too. */
static bool has_team(const struct oci_pmpi_comm *state, const struct oci_mpi_call *call)
{
	bool has = state->mpi.team || state->mpi.spans;

	if (OCI_UNLIKELY(!has))
		oci_mpi_count_back(call, state->mpi.refused ? OCI_MPI_REFUSED : EARLY);
	return has;
}

static void under_way(struct oci_pmpi_request *self)
{
	oci_mpi_request_add(&self->mpi);
	oci_pmpi_helper_begun();
}

/*
 * An operation that is over as soon as it has begun needs no carrier: a barrier with ourselves,
 * which is over, too, is a request of a collective to all functions of the MPI. A failure does need
 * one, as it is known by its carrier's handle, and comes out of the Wait or Test that completes it.
 */
static int hand_out(struct oci_pmpi_request *self, bool over, int code, MPI_Request *request)
{
	int error;

	if (over && !code) {
		oci_pmpi_request_discard(self);
		return PMPI(Ibarrier)(oci_pmpi_job.self, request);
	}
	error = PMPI(Irecv)(NULL, 0, MPI_BYTE, 0, self->tag, oci_pmpi_job.self, &self->carrier);
	*request = self->carrier;
	if (over)
		oci_mpi_request_finish(&self->mpi, code);
	else
		under_way(self);
	return error;
}

int oci_pmpi_start(const struct oci_mpi_call *call, oci_native *native, MPI_Comm comm,
		   MPI_Request *request)
{
	struct oci_pmpi_comm *state = oci_pmpi_comm_get(comm);
	struct oci_pmpi_request *self;
	int result, code;

	if (!state || !request || !oci_pmpi_sane(call, state) || !served(state, call) ||
	    !has_team(state, call))
		return native(call, comm, request);
	self = oci_pmpi_request_get(state, false);
	result = (state->mpi.spans ? oci_mpi_levels_start : oci_mpi_start)(
		&state->mpi, self ? &self->mpi : NULL, call, &code);
	if (result != OC_HAND_BACK && self)
		return hand_out(self, result, code, request);
	if (self)
		oci_pmpi_request_discard(self);
	/* Of no bytes: over on every member, also on one without memory for a request. */
	if (result == 1 && !code)
		return PMPI(Ibarrier)(oci_pmpi_job.self, request);
	*request = MPI_REQUEST_NULL;
	return code ? oci_pmpi_raise(comm, code) : native(call, comm, request);
}

/* ---- persistent ones --------------------------------------------------------------------------
 */

/*
 * The anchor is never started. It is there because a request keeps its communicator alive when the
 * program frees that, as it may while it still has the request.
 */
static struct oci_pmpi_request *persistent_new(struct oci_pmpi_comm *state)
{
	struct oci_pmpi_request *self = oci_pmpi_request_get(state, true);

	if (!self)
		return NULL;
	if (PMPI(Recv_init)(NULL, 0, MPI_BYTE, 0, 0, state->mpi.comm, &self->anchor) ||
	    PMPI(Recv_init)(NULL, 0, MPI_BYTE, 0, self->tag, oci_pmpi_job.self, &self->carrier)) {
		oci_pmpi_request_discard(self);
		return NULL;
	}
	return self;
}

int oci_pmpi_persist(const struct oci_mpi_call *call, oci_native_init *native_init, MPI_Comm comm,
		     MPI_Info info, MPI_Request *request)
{
	struct oci_pmpi_comm *state = oci_pmpi_comm_get(comm);
	struct oci_pmpi_request *self;
	int result;

	if (!state || !request || !oci_pmpi_sane(call, state) || !served(state, call))
		return native_init(call, comm, info, request);
	self = persistent_new(state);
	result = (state->mpi.spans ? oci_mpi_levels_init :
				     oci_mpi_init)(&state->mpi, self ? &self->mpi : NULL, call);
	if (!result) {
		*request = self->carrier;
		oci_pmpi_request_keep(self);
		return MPI_SUCCESS;
	}
	if (self)
		oci_pmpi_request_discard(self);
	*request = MPI_REQUEST_NULL;
	if (result == -ENOMEM)
		return oci_pmpi_raise(comm, MPI_ERR_NO_MEM);
	return native_init(call, comm, info, request);
}

static int start_again(struct oci_pmpi_request *self)
{
	int error = PMPI(Start)(&self->carrier), code;

	if (error)
		return error;
	if (oci_mpi_request_start(&self->mpi, &code))
		oci_mpi_request_finish(&self->mpi, code);
	else
		under_way(self);
	return MPI_SUCCESS;
}

int oci_pmpi_Start(MPI_Request *request)
{
	struct oci_pmpi_request *self = request ? oci_pmpi_request_of(*request) : NULL;

	return self && !oci_mpi_request_is_active(&self->mpi) ? start_again(self) :
								PMPI(Start)(request);
}

/* In any order, as MPI has it: ours first, so that peers can go on while the MPI's are started. */
int oci_pmpi_Startall(int count, MPI_Request requests[])
{
	int error = MPI_SUCCESS, ours = 0, here, theirs;

	for (int i = 0; requests && i < count; i++) {
		if (!oci_pmpi_request_of(requests[i]))
			continue;
		ours++;
		here = oci_pmpi_Start(&requests[i]);
		error = here ? here : error;
	}
	if (!ours)
		return PMPI(Startall)(count, requests);
	for (int i = 0; i < count; i += theirs + 1) {
		for (theirs = 0; i + theirs < count && !oci_pmpi_request_of(requests[i + theirs]);)
			theirs++;
		here = theirs ? PMPI(Startall)(theirs, &requests[i]) : MPI_SUCCESS;
		error = here ? here : error;
	}
	return error;
}
