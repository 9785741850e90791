/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The objects. What a program may do with them is what Open MPI's Wait and Test functions, Start
 * and Request_free ask of any request.
 *
 * Open MPI 4.1 looks at a request once more after its req_free() has returned (at what it retained
 * for it: complete_objs_callback() and its like in coll_base_util.c), also at the communicator. So
 * a freed one keeps both for some rounds among the dead, and its memory waits behind others for its
 * next use.
 */
#include "request.h"

#include "opal/threads/mutex.h"

/* Requests that lie free before the first of them is used again; rounds among the dead. */
enum { REST = 64, ROUNDS = 2 };

static opal_mutex_t lock = OPAL_MUTEX_STATIC_INIT;
/* With the lock held; `buried` is also read without it. */
static struct oci_ompi_request *resting, **resting_end = &resting;
static unsigned int rested;
static struct oci_ompi_request *dead;
static unsigned int buried;

OBJ_CLASS_INSTANCE(oci_ompi_request, ompi_coll_base_nbc_request_t, NULL, NULL);

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

	OPAL_THREAD_LOCK(&lock);
	if (rested > REST) {
		self = resting;
		resting = self->next;
		rested--;
	}
	OPAL_THREAD_UNLOCK(&lock);
	return self;
}

static void bury(struct oci_ompi_request *self)
{
	self->rounds = 0;
	OPAL_THREAD_LOCK(&lock);
	self->next = dead;
	dead = self;
	__atomic_add_fetch(&buried, 1, __ATOMIC_RELAXED);
	OPAL_THREAD_UNLOCK(&lock);
}

static void dispose(struct oci_ompi_request *self)
{
	oci_mpi_close(&self->operation);
	if (self->super.super.req_persistent && self->team)
		oc_team_destroy(self->team); /* its one request is not under way */
	OBJ_RELEASE(self->comm);
	rest(self);
}

void oci_ompi_request_reap(void)
{
	struct oci_ompi_request *list = NULL, **at, *self;

	if (!__atomic_load_n(&buried, __ATOMIC_RELAXED))
		return;
	OPAL_THREAD_LOCK(&lock);
	for (at = &dead; (self = *at);) {
		if (self->rounds++ < ROUNDS) {
			at = &self->next;
			continue;
		}
		*at = self->next;
		self->next = list;
		list = self;
		__atomic_sub_fetch(&buried, 1, __ATOMIC_RELAXED);
	}
	OPAL_THREAD_UNLOCK(&lock);
	for (; (self = list);) {
		list = self->next;
		dispose(self);
	}
}

void oci_ompi_request_drain(void)
{
	struct oci_ompi_request *self;

	while ((self = resting)) {
		resting = self->next;
		OBJ_RELEASE(self);
	}
	resting_end = &resting;
	rested = 0;
}

/* A free request is told from one under way by `settled`, which changes with the lock held. */
static int request_free(ompi_request_t **request)
{
	struct oci_ompi_request *self = (struct oci_ompi_request *)*request;
	bool over;

	OPAL_THREAD_LOCK(&lock);
	over = self->settled;
	self->freed = true;
	OPAL_THREAD_UNLOCK(&lock);
	/* Settled by another thread, which completes it now. */
	while (over && !REQUEST_COMPLETE(*request))
		;
	opal_atomic_rmb(); /* pairs with the write barrier of ompi_request_complete() */
	OMPI_REQUEST_FINI(*request);
	*request = MPI_REQUEST_NULL;
	if (over)
		bury(self);
	return OMPI_SUCCESS;
}

/* A collective cannot be cancelled. */
static int request_cancel(ompi_request_t *request, int flag)
{
	(void)request;
	(void)flag;
	return MPI_ERR_REQUEST;
}

struct oci_ompi_request *oci_ompi_request_new(oci_ompi_comm *comm, struct oc_team *team,
					      bool persistent)
{
	struct oci_ompi_request *self = rise();
	ompi_request_t *base;

	if (!self)
		self = OBJ_NEW(oci_ompi_request);
	if (!self)
		return NULL;
	base = &self->super.super;
	OMPI_REQUEST_INIT(base, persistent);
	base->req_state = persistent ? OMPI_REQUEST_INACTIVE : OMPI_REQUEST_ACTIVE;
	base->req_type = OMPI_REQUEST_COLL;
	base->req_status = ompi_status_empty;
	base->req_free = request_free;
	base->req_cancel = request_cancel;
	base->req_start = NULL;
	base->req_mpi_object.comm = comm;
	self->super.cb.req_complete_cb = NULL;
	self->super.req_complete_cb_data = NULL;
	self->super.data.objs.objs[0] = self->super.data.objs.objs[1] = NULL;
	OBJ_RETAIN(comm);
	self->comm = comm;
	self->team = team;
	self->operation = (struct oci_mpi_operation){ 0 };
	self->engine = NULL;
	self->freed = false;
	self->settled = persistent; /* until it is started */
	return self;
}

void oci_ompi_request_discard(struct oci_ompi_request *self)
{
	OMPI_REQUEST_FINI(&self->super.super);
	dispose(self);
}

void oci_ompi_request_complete(struct oci_ompi_request *self, int error)
{
	ompi_request_t *base = &self->super.super;
	bool freed;

	if (!base->req_persistent)
		oci_mpi_close(&self->operation);
	base->req_status.MPI_ERROR = error;
	/*
	 * 4.1 calls the communicator's error handler for the requests of point-to-point messages
	 * only, and that of MPI_COMM_WORLD for all others.
	 */
	if (error != MPI_SUCCESS)
		base->req_type = OMPI_REQUEST_PML;
	OPAL_THREAD_LOCK(&lock);
	self->settled = true;
	freed = self->freed;
	OPAL_THREAD_UNLOCK(&lock);
	ompi_request_complete(base, true);
	if (freed)
		bury(self);
}
