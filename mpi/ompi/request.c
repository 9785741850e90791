/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Nonblocking and persistent calls that the engine runs: our own requests of Open MPI. What a
 * program may do with them is what Open MPI's Wait and Test functions, Start and Request_free ask
 * of any request.
 *
 * Open MPI 4.1 looks at a request once more after its req_free() has returned (at what it retained
 * for it: complete_objs_callback() and its like in coll_base_util.c), also at the communicator. So
 * a freed one keeps both for some rounds, and its memory waits behind others for its next use.
 */
#include "component.h"

#include "ompi/mca/coll/base/coll_base_util.h"

#include <errno.h>
#include <string.h>

struct oci_ompi_request {
	/* MPI_Ixxx and MPIX_xxx_init keep what they retain in it, whosever the request is. */
	ompi_coll_base_nbc_request_t super;
	struct oci_mpi_request mpi;    /* its comm is a communicator with a reference from here */
	struct oci_ompi_request *next; /* of those to be reused */
	oci_ompi_comm *comm;
	unsigned int rounds; /* spent since it was freed */
};
typedef struct oci_ompi_request oci_ompi_request;
OBJ_CLASS_DECLARATION(oci_ompi_request);
OBJ_CLASS_INSTANCE(oci_ompi_request, ompi_coll_base_nbc_request_t, NULL, NULL);

/* Requests that lie free before the first of them is used again; rounds of a freed one. */
enum { REST = 64, ROUNDS = 3 };

static opal_mutex_t lock = OPAL_MUTEX_STATIC_INIT;
/* With the lock held. */
static struct oci_ompi_request *resting, **resting_end = &resting;
static unsigned int rested, risen;

static struct oci_ompi_request *of(struct oci_mpi_request *request)
{
	return OCI_CONTAINER(request, struct oci_ompi_request, mpi);
}

static void rest(struct oci_ompi_request *self)
{
	OPAL_THREAD_LOCK(&lock);
	self->next = NULL;
	*resting_end = self;
	resting_end = &self->next;
	rested++;
	OPAL_THREAD_UNLOCK(&lock);
}

static struct oci_ompi_request *rise(void)
{
	struct oci_ompi_request *self = NULL;
	bool round;

	OPAL_THREAD_LOCK(&lock);
	if (rested > REST) {
		self = resting;
		resting = self->next;
		rested--;
	}
	/* A rank that always comes last never waits, so nothing else lets go what it freed. Rarely
	 * where there are threads: another one might be about to look once more. */
	round = !opal_using_threads() || ++risen % REST == 0;
	OPAL_THREAD_UNLOCK(&lock);
	if (round)
		oci_mpi_requests_let_go();
	return self ? self : OBJ_NEW(oci_ompi_request);
}

void oci_ompi_requests_drain(void)
{
	struct oci_ompi_request *self;

	while ((self = resting)) {
		resting = self->next;
		OBJ_RELEASE(self);
	}
	resting_end = &resting;
	rested = 0;
}

static void dispose(struct oci_ompi_request *self)
{
	oci_mpi_close(&self->mpi.operation);
	/* Its one request is not under way. */
	if (self->mpi.persistent && self->mpi.team)
		oc_team_destroy(self->mpi.team);
	if (self->mpi.persistent && self->mpi.lane)
		oci_mpi_levels_end(&self->mpi);
	/* Another thread may be about to call its error handler. */
	if (self->super.super.req_status.MPI_ERROR == MPI_SUCCESS)
		OBJ_RELEASE(self->comm);
	rest(self);
}

/* Instead of giving it to the program. */
static void discard(struct oci_ompi_request *self)
{
	OMPI_REQUEST_FINI(&self->super.super);
	dispose(self);
}

bool oci_port_request_end(struct oci_mpi_request *request)
{
	if (++of(request)->rounds <= ROUNDS)
		return false;
	dispose(of(request));
	return true;
}

void oci_ompi_requests_let_all_go(void)
{
	for (int round = 0; round <= ROUNDS; round++)
		oci_mpi_requests_let_go();
}

void oci_port_request_complete(struct oci_mpi_request *request, int error, bool freed)
{
	ompi_request_t *base = &of(request)->super.super;

	(void)freed;
	base->req_status.MPI_ERROR = error;
	/*
	 * 4.1 calls the communicator's error handler for the requests of point-to-point messages
	 * only, and that of MPI_COMM_WORLD for all others.
	 */
	if (error != MPI_SUCCESS)
		base->req_type = OMPI_REQUEST_PML;
	ompi_request_complete(base, true);
}

/* A module lives as long as its communicator, to which each request has a reference. */
void oci_port_outstanding(struct oci_mpi_comm *comm, int change)
{
	(void)comm;
	(void)change;
}

static int request_free(ompi_request_t **request)
{
	struct oci_ompi_request *self = (struct oci_ompi_request *)*request;

	opal_atomic_rmb(); /* pairs with the write barrier of ompi_request_complete() */
	OMPI_REQUEST_FINI(*request);
	*request = MPI_REQUEST_NULL;
	oci_mpi_request_free(&self->mpi);
	return OMPI_SUCCESS;
}

/* A collective cannot be cancelled. */
static int request_cancel(ompi_request_t *request, int flag)
{
	(void)request;
	(void)flag;
	return MPI_ERR_REQUEST;
}

/* A run of one request; what fails is in its status. */
static void start_one(struct oci_ompi_request *self)
{
	ompi_request_t *base = &self->super.super;
	int error;

	base->req_type = OMPI_REQUEST_COLL;
	base->req_status = ompi_status_empty;
	base->req_complete = REQUEST_PENDING;
	base->req_state = OMPI_REQUEST_ACTIVE;
	if (oci_mpi_request_start(&self->mpi, &error))
		oci_mpi_request_finish(&self->mpi, error);
	else
		oci_mpi_request_add(&self->mpi);
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

/* NULL: no memory. */
static struct oci_ompi_request *request_new(struct oci_ompi_module *module, bool persistent)
{
	struct oci_ompi_request *self = rise();
	oci_ompi_comm *comm = module->comm.comm;
	ompi_request_t *base;

	if (!self)
		return NULL;
	base = &self->super.super;
	OMPI_REQUEST_INIT(base, persistent);
	base->req_state = persistent ? OMPI_REQUEST_INACTIVE : OMPI_REQUEST_ACTIVE;
	base->req_type = OMPI_REQUEST_COLL;
	base->req_status = ompi_status_empty;
	base->req_free = request_free;
	base->req_cancel = request_cancel;
	base->req_start = persistent ? request_start : NULL;
	base->req_mpi_object.comm = comm;
	self->super.cb.req_complete_cb = NULL;
	self->super.req_complete_cb_data = NULL;
	memset(&self->super.data, 0, sizeof(self->super.data));
	OBJ_RETAIN(comm);
	oci_ompi_progress_often();
	self->comm = comm;
	self->rounds = 0;
	oci_mpi_request_open(&self->mpi, &module->comm, persistent);
	return self;
}

static const char *reason_without_team(const struct oci_ompi_module *module)
{
	return module->comm.refused ? OCI_MPI_REFUSED :
				      "no team yet: the communicator's first blocking collective "
				      "makes it";
}

int oci_ompi_start(struct oci_ompi_module *module, const struct oci_mpi_call *call,
		   ompi_request_t **request)
{
	bool spans = module->comm.spans;
	struct oci_ompi_request *self;
	int result, error;

	if (!module->comm.team && !spans) {
		oci_mpi_count_back(call, reason_without_team(module));
		return oci_ompi_underlying_start(module, call, request);
	}
	self = request_new(module, false);
	result = (spans ? oci_mpi_levels_start :
			  oci_mpi_start)(&module->comm, self ? &self->mpi : NULL, call, &error);
	if (result == OC_HAND_BACK) {
		if (self)
			discard(self);
		return oci_ompi_underlying_start(module, call, request);
	}
	if (!self) {
		*request = &ompi_request_empty;
		return error;
	}
	*request = &self->super.super;
	if (result)
		oci_mpi_request_finish(&self->mpi, error);
	else
		oci_mpi_request_add(&self->mpi);
	return MPI_SUCCESS;
}

int oci_ompi_init(struct oci_ompi_module *module, const struct oci_mpi_call *call,
		  struct ompi_info_t *info, ompi_request_t **request)
{
	struct oci_ompi_request *self = request_new(module, true);
	int result = (module->comm.spans ? oci_mpi_levels_init : oci_mpi_init)(
		&module->comm, self ? &self->mpi : NULL, call);

	if (!result) {
		*request = &self->super.super;
		return MPI_SUCCESS;
	}
	if (self)
		discard(self);
	if (result == -ENOMEM)
		return OMPI_ERR_OUT_OF_RESOURCE;
	return oci_ompi_underlying_init(module, call, info, request);
}
