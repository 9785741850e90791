/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Persistent calls (MPIX_xxx_init).
 *
 * Members need not start their persistent calls in one order: what matches is the order of the
 * _init calls. The engine counts the operations of a team, so each persistent call has a team of
 * its own: 7.6 KB a rank in shared memory. It is made in the _init call, which is nonlocal
 * (MPI 4.1, section 6.13). There it is known for all runs whether they are the engine's; where they
 * are not, the program gets the persistent request of the module below us.
 */
#include "request.h"

#include <errno.h>

/* A run of one request; what fails is in its status. */
static void start_one(struct oci_ompi_request *self)
{
	ompi_request_t *base = &self->super.super;
	int result;

	self->settled = false;
	base->req_type = OMPI_REQUEST_COLL;
	base->req_status = ompi_status_empty;
	base->req_complete = REQUEST_PENDING;
	base->req_state = OMPI_REQUEST_ACTIVE;
	if (!self->team) {
		oci_ompi_request_complete(self, MPI_SUCCESS);
		return;
	}
	result = oci_ompi_request_ask(self);
	if (result)
		oci_ompi_request_settle(self, result);
}

static int request_start(size_t count, ompi_request_t **requests)
{
	for (size_t i = 0; i < count; i++) {
		if (requests[i]->req_state != OMPI_REQUEST_INACTIVE)
			return MPI_ERR_REQUEST;
		start_one((struct oci_ompi_request *)requests[i]);
	}
	return OMPI_SUCCESS;
}

/*
 * A team of its own; NULL, with the reason: there is none, on all members alike. `able`: this rank
 * has memory for the call.
 */
static struct oc_team *make_team(struct oci_ompi_module *module, oci_ompi_comm *comm, bool able,
				 const struct oc_call *call, const char **reason)
{
	struct oc_team *team;

	*reason = OCI_OMPI_REFUSED;
	if (oci_ompi_team(module, comm))
		return NULL;
	*reason = "there was no memory for a persistent call";
	team = oci_ompi_team_make(module, comm, able);
	if (!team)
		return NULL;
	oci_ompi_forced_copy(module, team);
	if (oc_team_serves(team, call))
		return team;
	*reason = "the MPI's own algorithm was chosen for this size";
	oc_team_destroy(team);
	return NULL;
}

/* The others are told, which make a team now, unless the call needs none. */
static int init_without_memory(struct oci_ompi_module *module, oci_ompi_comm *comm,
			       const struct oci_mpi_call *call, struct ompi_info_t *info,
			       ompi_request_t **request)
{
	struct oci_mpi_operation o;
	const char *reason = "";
	enum oci_mpi_path path = oci_mpi_open(&o, call, (uint32_t)ompi_comm_rank(comm),
					      (uint32_t)ompi_comm_size(comm), false, &reason);

	if (path == OCI_MPI_ENGINE)
		make_team(module, comm, false, &o.call, &reason);
	oci_mpi_close(&o);
	if (path == OCI_MPI_NOTHING)
		return OMPI_ERR_OUT_OF_RESOURCE;
	oci_ompi_count_back(call, reason);
	return oci_ompi_previous_init(module, comm, call, info, request);
}

int oci_ompi_init(struct oci_ompi_module *module, oci_ompi_comm *comm,
		  const struct oci_mpi_call *call, struct ompi_info_t *info,
		  ompi_request_t **request)
{
	struct oci_ompi_request *self = oci_ompi_request_new(comm, NULL, true);
	const char *reason = "";
	enum oci_mpi_path path;

	if (!self)
		return init_without_memory(module, comm, call, info, request);
	self->super.super.req_start = request_start;
	path = oci_mpi_open(&self->operation, call, (uint32_t)ompi_comm_rank(comm),
			    (uint32_t)ompi_comm_size(comm), true, &reason);
	if (path == OCI_MPI_ENGINE)
		self->team = make_team(module, comm, !self->operation.status, &self->operation.call,
				       &reason);
	if (path == OCI_MPI_NOTHING || self->team) {
		*request = &self->super.super;
		return MPI_SUCCESS;
	}
	oci_ompi_request_discard(self);
	oci_ompi_count_back(call, reason);
	return oci_ompi_previous_init(module, comm, call, info, request);
}
