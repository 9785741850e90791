/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One run of a call that returns before it is over, and nonblocking calls.
 *
 * The engine may hand a call back at once, or later: one that was started while the team was under
 * creation, which a refusal ends. Then the function of the module below us is started, and its
 * request is the inner one of ours.
 *
 * A call has its number among those of the communicator from the moment it is made (number.c).
 * Other modules than libnbc count by themselves, and the members' counts must agree. So what is
 * handed back reaches them in the order in which it was called, on each member: nothing is handed
 * over while an earlier call is undecided.
 */
#include "request.h"

#include <errno.h>

#include "opal/runtime/opal_progress.h"

static unsigned int undecided(const struct oci_ompi_module *module)
{
	/* Acquire: what was handed over before has its number. */
	return __atomic_load_n(&module->undecided, __ATOMIC_ACQUIRE);
}

static void mark_undecided(struct oci_ompi_request *self)
{
	self->undecided = true;
	__atomic_add_fetch(&self->module->undecided, 1, __ATOMIC_RELAXED);
}

/* Release: pairs with the acquire in undecided(). */
static void mark_decided(struct oci_ompi_request *self)
{
	if (!self->undecided)
		return;
	self->undecided = false;
	__atomic_sub_fetch(&self->module->undecided, 1, __ATOMIC_RELEASE);
}

static struct oc_team *team_of(const struct oci_ompi_request *self)
{
	return self->channel ? self->channel->team : self->module->team;
}

/* Whether the team is ready or refused; from then on a look at a request tells where it is. */
static bool agreed(const struct oci_ompi_request *self)
{
	struct oci_ompi_module *module = self->module;

	if (self->channel)
		return true; /* nothing else is in its team, so the order does not matter */
	if (!__atomic_load_n(&module->agreed, __ATOMIC_ACQUIRE) && oc_team_progress(module->team))
		__atomic_store_n(&module->agreed, true, __ATOMIC_RELEASE);
	return module->agreed;
}

/* Of a run that is over, 1 or -errno: the error code. */
static int outcome(struct oci_ompi_request *self, int result)
{
	return result == 1 ? oci_mpi_store(&self->operation) :
			     oci_ompi_failure(team_of(self), result);
}

int oci_ompi_request_ask(struct oci_ompi_request *self)
{
	bool known;
	int result;

	if (!self->channel && oci_ompi_team(self->module, self->comm))
		return OC_HAND_BACK;
	oci_mpi_load(&self->operation);
	if (self->operation.status)
		return oc_team_abandon(team_of(self), &self->operation.call,
				       self->operation.status);
	known = agreed(self);
	result = oc_start(team_of(self), &self->operation.call, &self->engine);
	if (result)
		return result;
	if (known)
		result = oc_peek(self->engine);
	else
		mark_undecided(self);
	if (!result) {
		self->phase = OCI_OMPI_RUNNING;
		oci_ompi_outstanding_add(self);
	}
	return result;
}

int oci_ompi_request_settle(struct oci_ompi_request *self, int result)
{
	int error = outcome(self, result);

	oci_ompi_request_complete(self, error);
	return error;
}

static int start_below(struct oci_ompi_module *module, oci_ompi_comm *comm,
		       const struct oci_mpi_call *call, uint32_t number, ompi_request_t **request)
{
	int error;

	oci_ompi_number_begin(module, comm, number);
	error = oci_ompi_previous_start(module, comm, call, request);
	oci_ompi_number_end(module);
	return error;
}

static int start_later_below(struct oci_ompi_module *module, oci_ompi_comm *comm,
			     const struct oci_mpi_later *call, uint32_t number,
			     ompi_request_t **request)
{
	int error;

	oci_ompi_number_begin(module, comm, number);
	error = call->start(call, comm, request);
	oci_ompi_number_end(module);
	return error;
}

int oci_ompi_request_hand_over(struct oci_ompi_request *self)
{
	int error = OMPI_SUCCESS;

	if (self->later)
		error = start_later_below(self->module, self->comm, self->later, self->number,
					  &self->inner);
	else if (!self->super.super.req_persistent)
		error = start_below(self->module, self->comm, &self->operation.mpi, self->number,
				    &self->inner);
	else if (self->inner->req_start) /* one with nothing to do is always complete */
		error = self->inner->req_start(1, &self->inner);
	mark_decided(self);
	self->phase = OCI_OMPI_HANDED;
	return error;
}

/* True: the run below us is over. */
static bool look_inside(struct oci_ompi_request *self, int *error)
{
	if (!REQUEST_COMPLETE(self->inner))
		return false;
	opal_atomic_rmb(); /* pairs with the write barrier of ompi_request_complete() */
	*error = self->inner->req_status.MPI_ERROR;
	if (!self->super.super.req_persistent)
		ompi_request_free(&self->inner);
	else
		self->inner->req_state = OMPI_REQUEST_INACTIVE;
	if (!self->super.super.req_persistent)
		self->inner = NULL;
	return true;
}

/* True: over, or handed back and therefore WAITING. */
static bool look_at_engine(struct oci_ompi_request *self, uint64_t pass, int *error)
{
	bool known = !self->undecided || agreed(self);
	int result = oc_peek(self->engine);

	if (!result) {
		if (known)
			mark_decided(self);
		else
			self->module->held = pass;
		return false;
	}
	self->engine = NULL;
	if (result == OC_HAND_BACK) {
		self->phase = OCI_OMPI_WAITING;
		return false;
	}
	mark_decided(self);
	*error = outcome(self, result);
	return true;
}

bool oci_ompi_request_look(struct oci_ompi_request *self, uint64_t pass, int *error)
{
	if (self->phase == OCI_OMPI_RUNNING && look_at_engine(self, pass, error))
		return true;
	/* Those before it were looked at earlier in this pass. */
	if (self->phase == OCI_OMPI_WAITING && self->module->held != pass) {
		*error = oci_ompi_request_hand_over(self);
		if (*error != OMPI_SUCCESS)
			return true;
	}
	return self->phase == OCI_OMPI_HANDED && look_inside(self, error);
}

/*
 * A call that is not the engine's: to the modules below, behind what may still come to them. Our
 * request stays around theirs, as they do not keep the communicator, which the program may free.
 */
static int hand_back(struct oci_ompi_request *self, ompi_request_t **request)
{
	int error;

	if (undecided(self->module))
		oci_ompi_outstanding_progress();
	if (undecided(self->module)) {
		mark_undecided(self);
		self->phase = OCI_OMPI_WAITING;
	} else {
		error = oci_ompi_request_hand_over(self);
		if (error != OMPI_SUCCESS) {
			oci_ompi_request_discard(self);
			return error;
		}
	}
	oci_ompi_outstanding_add(self);
	*request = &self->super.super;
	return MPI_SUCCESS;
}

void oci_ompi_await_decided(struct oci_ompi_module *module)
{
	while (undecided(module))
		opal_progress();
}

int oci_ompi_start_later(struct oci_ompi_module *module, oci_ompi_comm *comm,
			 const struct oci_mpi_later *call, ompi_request_t **request)
{
	uint32_t number = oci_ompi_number(module, OCI_OMPI_PROGRAM);
	struct oci_ompi_request *self;

	if (undecided(module))
		oci_ompi_outstanding_progress();
	if (!undecided(module))
		return start_later_below(module, comm, call, number, request);
	self = oci_ompi_request_new(module, comm, false);
	if (self)
		self->later = oci_mpi_later_keep(call, (uint32_t)ompi_comm_rank(comm));
	if (self && self->later) {
		self->number = number;
		return hand_back(self, request);
	}
	if (self)
		oci_ompi_request_discard(self);
	/* Without memory to keep it: now, in order. */
	oci_ompi_await_decided(module);
	return start_later_below(module, comm, call, number, request);
}

/* Without memory for a request: the members that have it must not wait for this one. */
static int start_without_memory(struct oci_ompi_module *module, oci_ompi_comm *comm,
				const struct oci_mpi_call *call, uint32_t number,
				ompi_request_t **request)
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
		oc_count_handed_back(oci_collective_name(call->collective), reason);
		break;
	case OCI_MPI_ENGINE:
		status = oci_ompi_run(module, comm, &operation.call, -ENOMEM);
	}
	oci_mpi_close(&operation);
	if (status == OC_HAND_BACK)
		status = start_below(module, comm, call, number, request);
	return status;
}

int oci_ompi_start(struct oci_ompi_module *module, oci_ompi_comm *comm,
		   const struct oci_mpi_call *call, ompi_request_t **request)
{
	uint32_t number = oci_ompi_number(module, OCI_OMPI_PROGRAM);
	struct oci_ompi_request *self = oci_ompi_request_new(module, comm, false);
	int result = OC_HAND_BACK;

	if (!self)
		return start_without_memory(module, comm, call, number, request);
	self->number = number;
	switch (oci_mpi_open(&self->operation, call, (uint32_t)ompi_comm_rank(comm),
			     (uint32_t)ompi_comm_size(comm), true, &self->reason)) {
	case OCI_MPI_NOTHING:
		oci_ompi_request_discard(self);
		*request = &ompi_request_empty;
		return MPI_SUCCESS;
	case OCI_MPI_BACK:
		oc_count_handed_back(oci_collective_name(call->collective), self->reason);
		break;
	case OCI_MPI_ENGINE:
		result = oci_ompi_request_ask(self);
		oci_ompi_bootstrap_reap();
	}
	if (result == OC_HAND_BACK) {
		/* The program may free what the module below us gets later. Without memory to keep
		 * it: now, in order. */
		if (undecided(module) && oci_mpi_keep(&self->operation))
			oci_ompi_await_decided(module);
		return hand_back(self, request);
	}
	*request = &self->super.super;
	if (result)
		oci_ompi_request_settle(self, result);
	return MPI_SUCCESS;
}

int oci_ompi_start_own(struct oci_ompi_module *module, oci_ompi_comm *comm,
		       const struct oci_mpi_call *call, ompi_request_t **request)
{
	oc_count_handed_back(oci_collective_name(call->collective),
			     "Open MPI's own call, for the creation of a communicator");
	/* At once: to wait for earlier calls could wait for a member that waits for the new
	 * communicator before it makes them. */
	return start_below(module, comm, call, oci_ompi_number(module, OCI_OMPI_OWN), request);
}
