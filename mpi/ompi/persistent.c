/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Persistent calls (MPIX_xxx_init).
 *
 * Members need not start their persistent calls in one order (unless the info key
 * mpi_assert_strict_start_ordering says that they do): what matches is the order of the _init
 * calls. The engine counts the operations of a team, so each persistent call has a team of its
 * own, a channel: 6.4 KB a rank in shared memory. The _init call, which is nonlocal (MPI 4.1,
 * section 6.13), waits until the members have made it, so that no run is handed back because it
 * came too early. Where there is no room for one, runs are those of the persistent request of the
 * module below us, which is made in the _init call, as that module numbers them there.
 */
#include "request.h"

#include "ompi/info/info.h"
#include "opal/runtime/opal_progress.h"
#include "opal/threads/mutex.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

unsigned int oci_ompi_growing;

static opal_mutex_t lock = OPAL_MUTEX_STATIC_INIT;
static struct oci_ompi_channel *growing;

static void destroy(struct oci_ompi_channel *channel)
{
	oc_team_destroy(channel->team); /* its one request is not under way */
	free(channel);
}

void oci_ompi_channel_grow(void)
{
	struct oci_ompi_channel **at, *channel, *unwanted = NULL;

	if (!__atomic_load_n(&oci_ompi_growing, __ATOMIC_RELAXED))
		return;
	OPAL_THREAD_LOCK(&lock);
	for (at = &growing; (channel = *at);) {
		if (!oc_team_progress(channel->team)) {
			at = &channel->next;
			continue;
		}
		*at = channel->next;
		/* Release: the team is made. Pairs with the acquire in channel_await(). */
		__atomic_store_n(&channel->growing, false, __ATOMIC_RELEASE);
		__atomic_sub_fetch(&oci_ompi_growing, 1, __ATOMIC_RELAXED);
		if (channel->unwanted) {
			channel->next = unwanted;
			unwanted = channel;
		}
	}
	OPAL_THREAD_UNLOCK(&lock);
	while ((channel = unwanted)) {
		unwanted = channel->next;
		destroy(channel);
	}
}

void oci_ompi_channel_release(struct oci_ompi_channel *channel)
{
	bool over;

	OPAL_THREAD_LOCK(&lock);
	over = !channel->growing;
	channel->unwanted = true;
	OPAL_THREAD_UNLOCK(&lock);
	if (over)
		destroy(channel);
}

void oci_ompi_channel_forget(struct oci_ompi_module *module)
{
	struct oci_ompi_channel **at, *channel;

	OPAL_THREAD_LOCK(&lock);
	for (at = &growing; (channel = *at);) {
		if (channel->module != module) {
			at = &channel->next;
			continue;
		}
		*at = channel->next;
		channel->growing = false;
		__atomic_sub_fetch(&oci_ompi_growing, 1, __ATOMIC_RELAXED);
	}
	OPAL_THREAD_UNLOCK(&lock);
}

/* NULL: no memory, on all members alike. */
static struct oci_ompi_channel *channel_create(struct oci_ompi_module *module, oci_ompi_comm *comm)
{
	struct oci_ompi_channel *channel = calloc(1, sizeof(*channel));
	struct oc_bootstrap bootstrap;
	int error = channel ? 0 : OPAL_ERR_OUT_OF_RESOURCE;

	if (!error)
		error = oci_ompi_bootstrap_create(module, comm, &bootstrap);
	if (!error)
		error = oc_team_create(&channel->team, &bootstrap);
	if (error) {
		free(channel);
		oci_ompi_bootstrap_abstain(module, comm);
		return NULL;
	}
	oci_ompi_forced_copy(module, comm, channel->team);
	channel->module = module;
	channel->growing = true;
	OPAL_THREAD_LOCK(&lock);
	channel->next = growing;
	growing = channel;
	__atomic_add_fetch(&oci_ompi_growing, 1, __ATOMIC_RELAXED);
	OPAL_THREAD_UNLOCK(&lock);
	return channel;
}

/* Any thread's progress brings it up. */
static void channel_await(const struct oci_ompi_channel *channel)
{
	while (__atomic_load_n(&channel->growing, __ATOMIC_ACQUIRE))
		opal_progress();
}

static bool ordered(struct ompi_info_t *info)
{
	char value[8] = "";
	int found = 0;

	if (info)
		opal_info_get(&info->super, "mpi_assert_strict_start_ordering", sizeof(value) - 1,
			      value, &found);
	return found && !strcmp(value, "true");
}

/* A run of one request; what fails is in its status. */
static void start_one(struct oci_ompi_request *self)
{
	ompi_request_t *base = &self->super.super;
	int result = OC_HAND_BACK;

	self->settled = false;
	base->req_type = OMPI_REQUEST_COLL;
	base->req_status = ompi_status_empty;
	base->req_complete = REQUEST_PENDING;
	base->req_state = OMPI_REQUEST_ACTIVE;
	switch (self->path) {
	case OCI_MPI_NOTHING:
		oci_ompi_request_complete(self, MPI_SUCCESS);
		return;
	case OCI_MPI_BACK:
		oc_count_handed_back(oci_collective_name(self->operation.mpi.collective),
				     self->reason);
		break;
	case OCI_MPI_ENGINE:
		result = oci_ompi_request_ask(self);
	}
	if (result == OC_HAND_BACK) {
		result = oci_ompi_request_hand_over(self);
		if (result == MPI_SUCCESS)
			oci_ompi_outstanding_add(self);
		else
			oci_ompi_request_complete(self, result);
	} else if (result) {
		oci_ompi_request_settle(self, result);
	}
}

static int request_start(size_t count, ompi_request_t **requests)
{
	for (size_t i = 0; i < count; i++) {
		if (requests[i]->req_state != OMPI_REQUEST_INACTIVE)
			return MPI_ERR_REQUEST;
		start_one((struct oci_ompi_request *)requests[i]);
	}
	oci_ompi_bootstrap_reap();
	return OMPI_SUCCESS;
}

static int init_below(struct oci_ompi_module *module, oci_ompi_comm *comm,
		      const struct oci_mpi_call *call, struct ompi_info_t *info, uint32_t number,
		      ompi_request_t **request)
{
	int error;

	oci_ompi_number_begin(module, comm, number);
	error = oci_ompi_previous_init(module, comm, call, info, request);
	oci_ompi_number_end(module);
	return error;
}

/*
 * The request of the module below us, for all runs: the others are told, whose channel is refused.
 * Those that run on the communicator's team cannot take it out of one call: it fails.
 */
static int init_without_memory(struct oci_ompi_module *module, oci_ompi_comm *comm,
			       const struct oci_mpi_call *call, struct ompi_info_t *info,
			       uint32_t number, ompi_request_t **request)
{
	struct oci_mpi_operation o;
	const char *reason;
	enum oci_mpi_path path = oci_mpi_open(&o, call, (uint32_t)ompi_comm_rank(comm),
					      (uint32_t)ompi_comm_size(comm), false, &reason);
	int status = OC_HAND_BACK;

	if (path == OCI_MPI_NOTHING) /* the others have asked nobody for anything */
		status = OMPI_ERR_OUT_OF_RESOURCE;
	else if (path == OCI_MPI_ENGINE && ordered(info))
		status = oci_ompi_run(module, comm, &o.call, -ENOMEM);
	else if (path == OCI_MPI_ENGINE)
		oci_ompi_bootstrap_abstain(module, comm);
	oci_mpi_close(&o);
	if (status != OC_HAND_BACK)
		return status;
	return init_below(module, comm, call, info, number, request);
}

int oci_ompi_init(struct oci_ompi_module *module, oci_ompi_comm *comm,
		  const struct oci_mpi_call *call, struct ompi_info_t *info,
		  ompi_request_t **request)
{
	uint32_t number = oci_ompi_number(module, OCI_OMPI_PROGRAM);
	struct oci_ompi_request *self;
	int error;

	/*
	 * What may still come to the modules below us must be there before this call. The members
	 * agree as soon as each makes progress; an _init call may wait for that.
	 */
	oci_ompi_await_decided(module);
	self = oci_ompi_request_new(module, comm, true);
	if (!self)
		return init_without_memory(module, comm, call, info, number, request);
	self->super.super.req_start = request_start;
	self->path = oci_mpi_open(&self->operation, call, (uint32_t)ompi_comm_rank(comm),
				  (uint32_t)ompi_comm_size(comm), true, &self->reason);
	if (self->path == OCI_MPI_ENGINE && !ordered(info)) {
		self->channel = channel_create(module, comm);
		if (self->channel) {
			channel_await(self->channel);
		} else {
			self->path = OCI_MPI_BACK;
			self->reason = "there was no memory for a team of a persistent call";
		}
	}
	oci_ompi_bootstrap_reap();
	/* Only where it will run. */
	if (self->path != OCI_MPI_NOTHING &&
	    !(self->channel && oc_team_serves(self->channel->team, &self->operation.call))) {
		error = init_below(module, comm, &self->operation.mpi, info, number, &self->inner);
		if (error != OMPI_SUCCESS) {
			self->inner = NULL;
			oci_ompi_request_discard(self);
			return error;
		}
	}
	*request = &self->super.super;
	return MPI_SUCCESS;
}
