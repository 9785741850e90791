/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Nonblocking calls, and one run of a call that returns before it is over.
 *
 * Whether a nonblocking call is the engine's is known when it is made: there is a team or not,
 * alike on all members, and the engine answers at once. What is not the engine's goes to the module
 * below us as it was made, with that one's own request: so calls reach it in the order of the
 * program.
 */
#include "request.h"

#include <errno.h>

/* Of a run that is over, 1 or -errno: the error code. */
static int outcome(struct oci_ompi_request *self, int result)
{
	return result == 1 ? oci_mpi_store(&self->operation) : oci_ompi_failure(self->team, result);
}

int oci_ompi_request_ask(struct oci_ompi_request *self)
{
	int result;

	oci_mpi_load(&self->operation);
	if (self->operation.status)
		return oc_team_abandon(self->team, &self->operation.call, self->operation.status);
	result = oc_start(self->team, &self->operation.call, &self->engine);
	if (!result)
		result = oc_peek(self->engine);
	if (!result)
		oci_ompi_outstanding_add(self);
	return result;
}

void oci_ompi_request_settle(struct oci_ompi_request *self, int result)
{
	oci_ompi_request_complete(self, outcome(self, result));
}

bool oci_ompi_request_look(struct oci_ompi_request *self, int *error)
{
	int result = oc_peek(self->engine);

	if (!result)
		return false;
	*error = outcome(self, result);
	return true;
}

/* Without memory for a request: the members that have it must not wait for this one. */
static int start_without_memory(struct oci_ompi_module *module, oci_ompi_comm *comm,
				const struct oci_mpi_call *call, ompi_request_t **request)
{
	struct oci_mpi_operation operation;
	const char *reason = "";
	int status = OC_HAND_BACK;

	switch (oci_mpi_open(&operation, call, (uint32_t)ompi_comm_rank(comm),
			     (uint32_t)ompi_comm_size(comm), false, &reason)) {
	case OCI_MPI_NOTHING:
		*request = &ompi_request_empty;
		status = MPI_SUCCESS;
		break;
	case OCI_MPI_BACK:
		oci_ompi_count_back(call, reason);
		break;
	case OCI_MPI_ENGINE:
		status = oci_ompi_run(module, comm, &operation.call, -ENOMEM);
	}
	oci_mpi_close(&operation);
	return status == OC_HAND_BACK ? oci_ompi_previous_start(module, comm, call, request) :
					status;
}

/* On a communicator with a team. */
static int start(struct oci_ompi_module *module, oci_ompi_comm *comm,
		 const struct oci_mpi_call *call, ompi_request_t **request)
{
	struct oci_ompi_request *self = oci_ompi_request_new(comm, module->team, false);
	const char *reason = "";
	int result = OC_HAND_BACK;

	if (!self)
		return start_without_memory(module, comm, call, request);
	switch (oci_mpi_open(&self->operation, call, (uint32_t)ompi_comm_rank(comm),
			     (uint32_t)ompi_comm_size(comm), true, &reason)) {
	case OCI_MPI_NOTHING:
		oci_ompi_request_discard(self);
		*request = &ompi_request_empty;
		return MPI_SUCCESS;
	case OCI_MPI_BACK:
		oci_ompi_count_back(call, reason);
		break;
	case OCI_MPI_ENGINE:
		result = oci_ompi_request_ask(self);
	}
	if (result == OC_HAND_BACK) {
		oci_ompi_request_discard(self);
		return oci_ompi_previous_start(module, comm, call, request);
	}
	*request = &self->super.super;
	if (result)
		oci_ompi_request_settle(self, result);
	return MPI_SUCCESS;
}

int oci_ompi_start(struct oci_ompi_module *module, oci_ompi_comm *comm,
		   const struct oci_mpi_call *call, ompi_request_t **request)
{
	if (!module->team) {
		oci_ompi_count_back(call, module->refused ? OCI_OMPI_REFUSED :
							    "no team yet: the communicator's first "
							    "blocking collective makes it");
		return oci_ompi_previous_start(module, comm, call, request);
	}
	oci_ompi_forced_update(module, comm);
	return start(module, comm, call, request);
}

int oci_ompi_start_own(struct oci_ompi_module *module, oci_ompi_comm *comm,
		       const struct oci_mpi_call *call, ompi_request_t **request)
{
	oci_ompi_count_back(call, "Open MPI's own call, for the creation of a communicator");
	return oci_ompi_previous_start(module, comm, call, request);
}
