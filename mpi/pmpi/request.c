/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The requests that the program holds for outstanding operations.
 *
 * The program's request is a carrier: a receive of no bytes from ourselves, on a private duplicate
 * of MPI_COMM_SELF, with a tag of its own. When the operation is over we send that message. So it
 * completes in each form of Wait and Test, beside any other requests, and a persistent one keeps
 * its handle. (MPICH's generalized requests are not polled while the program sits in other calls,
 * and cannot be persistent.)
 */
#include "pmpi.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

uint32_t oci_pmpi_attention_count;

/* They are never given back before MPI_Finalize: each keeps its tag. */
static pthread_mutex_t pool_lock = PTHREAD_MUTEX_INITIALIZER;
static struct oci_pmpi_request *pool, *made;
static int next_tag;

#define BUCKETS 256
static pthread_mutex_t bucket_lock = PTHREAD_MUTEX_INITIALIZER;
static struct oci_pmpi_request *buckets[BUCKETS]; /* their heads: atomic */

static struct oci_pmpi_request *of(struct oci_mpi_request *request)
{
	return OCI_CONTAINER(request, struct oci_pmpi_request, mpi);
}

struct oci_pmpi_request *oci_pmpi_request_get(struct oci_pmpi_comm *state, bool persistent)
{
	struct oci_pmpi_request *self;

	oci_mpi_lock(&pool_lock);
	self = pool;
	if (self) {
		pool = self->next;
	} else if (next_tag < oci_pmpi_job.tags - 1) { /* the last one is nobody's */
		self = calloc(1, sizeof(*self));
		if (self) {
			self->tag = next_tag++;
			self->made = made;
			made = self;
		}
	}
	oci_mpi_unlock(&pool_lock);
	if (!self)
		return NULL;
	self->carrier = self->anchor = MPI_REQUEST_NULL;
	self->ending = false;
	oci_mpi_request_open(&self->mpi, &state->mpi, persistent);
	/* Its carrier is the MPI's to free. */
	self->mpi.freed = !persistent;
	return self;
}

static void put(struct oci_pmpi_request *self)
{
	oci_mpi_lock(&pool_lock);
	self->next = pool;
	pool = self;
	oci_mpi_unlock(&pool_lock);
}

static void give_back(struct oci_pmpi_request *self)
{
	oci_mpi_close(&self->mpi.operation);
	if (self->mpi.persistent && self->mpi.lane)
		oci_mpi_levels_end(&self->mpi);
	if (self->mpi.persistent && self->carrier != MPI_REQUEST_NULL)
		PMPI(Request_free)(&self->carrier);
	if (self->anchor == MPI_REQUEST_NULL)
		return;
	PMPI(Request_free)(&self->anchor);
	oci_pmpi_comm_look_anew();
}

void oci_pmpi_request_discard(struct oci_pmpi_request *self)
{
	give_back(self);
	put(self);
}

/* The first time, we may be inside the engine: its team goes when this is asked again. */
bool oci_port_request_end(struct oci_mpi_request *request)
{
	struct oci_pmpi_request *self = of(request);

	if (request->persistent && !self->ending) {
		give_back(self);
		self->ending = request->team;
		if (self->ending) {
			oci_pmpi_attend(1);
			return false;
		}
	}
	if (self->ending && oc_team_destroy(request->team) == -EBUSY)
		return false;
	if (self->ending)
		oci_pmpi_attend(-1);
	request->team = NULL;
	put(self);
	return true;
}

/* The carrier's receive is posted, so the send completes at once. A persistent request that was
 * freed tells nobody of an error, and its handle comes back as another's. */
void oci_port_request_complete(struct oci_mpi_request *request, int error, bool freed)
{
	struct oci_pmpi_request *self = of(request);

	if (error && !(request->persistent && freed))
		oci_pmpi_failed(self->carrier, request->comm->comm, error);
	PMPI(Send)(NULL, 0, MPI_BYTE, 0, self->tag, oci_pmpi_job.self);
}

void oci_port_outstanding(struct oci_mpi_comm *comm, int change)
{
	oci_pmpi_attend(change);
	/* Release: pairs with the acquire of whoever destroys the communicator's object. */
	__atomic_fetch_add(&OCI_CONTAINER(comm, struct oci_pmpi_comm, mpi)->outstanding,
			   (uint32_t)change, __ATOMIC_RELEASE);
}

bool oci_pmpi_request_is_active(MPI_Request handle, MPI_Comm *comm)
{
	struct oci_pmpi_request *self;

	oci_mpi_lock(&pool_lock);
	self = made;
	/* Who asks has the handle from whoever wrote it; of other requests any value will do. */
	while (self && !(__atomic_load_n(&self->carrier, __ATOMIC_RELAXED) == handle &&
			 oci_mpi_request_is_active(&self->mpi)))
		self = self->made;
	if (self)
		*comm = self->mpi.comm->comm;
	oci_mpi_unlock(&pool_lock);
	return self;
}

void oci_pmpi_requests_stop(void)
{
	struct oci_pmpi_request *self, *next;

	for (self = made; self; self = next) {
		next = self->made;
		/* Of requests that the program has not freed. */
		if (self->mpi.persistent && self->mpi.team)
			oc_team_destroy(self->mpi.team);
		/* The memory of one that is under way is the MPI's. */
		if (self->mpi.persistent && self->mpi.lane &&
		    !oci_mpi_request_is_active(&self->mpi))
			oci_mpi_levels_end(&self->mpi);
		free(self);
	}
	made = pool = NULL;
	next_tag = 0;
	memset(buckets, 0, sizeof(buckets));
	oci_mpi_requests_stop();
}

/* ---- persistent ones, by their handles --------------------------------------------------------
 */

static struct oci_pmpi_request **bucket_of(MPI_Request request)
{
	uintptr_t handle = (uintptr_t)request;

	return &buckets[(handle ^ handle >> 8) % BUCKETS];
}

struct oci_pmpi_request *oci_pmpi_request_of(MPI_Request handle)
{
	struct oci_pmpi_request *self;

	/* Most are not ours. Whoever asks for one of ours has its handle from oci_pmpi_persist().
	 */
	if (!__atomic_load_n(bucket_of(handle), __ATOMIC_RELAXED))
		return NULL;
	oci_mpi_lock(&bucket_lock);
	self = *bucket_of(handle);
	while (self && self->carrier != handle)
		self = self->bucket;
	oci_mpi_unlock(&bucket_lock);
	return self;
}

void oci_pmpi_request_keep(struct oci_pmpi_request *self)
{
	struct oci_pmpi_request **bucket = bucket_of(self->carrier);

	oci_mpi_lock(&bucket_lock);
	self->bucket = *bucket;
	__atomic_store_n(bucket, self, __ATOMIC_RELAXED);
	oci_mpi_unlock(&bucket_lock);
}

void oci_pmpi_request_free(struct oci_pmpi_request *self)
{
	struct oci_pmpi_request **at = bucket_of(self->carrier);

	oci_mpi_lock(&bucket_lock);
	while (*at != self)
		at = &(*at)->bucket;
	__atomic_store_n(at, self->bucket, __ATOMIC_RELAXED);
	oci_mpi_unlock(&bucket_lock);
	oci_mpi_request_free(&self->mpi);
}

/* ---- driving ----------------------------------------------------------------------------------
 */

void oci_pmpi_drive(void)
{
	oc_progress();
	oci_mpi_requests_progress();
	oci_pmpi_comm_reap();
}

/*
 * To ask for a request that is not over is what makes MPICH move: for a receive from ourselves that
 * nobody sends to. Threads may ask at once, as nothing of it is changed. Atomic, relaxed: it is a
 * handle, which only the MPI looks behind.
 */
static MPI_Request never = MPI_REQUEST_NULL;

void oci_pmpi_mover_start(void)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	MPI_Request request;
	int error = MPI_SUCCESS;

	pthread_mutex_lock(&lock);
	if (never == MPI_REQUEST_NULL)
		error = PMPI(Irecv)(NULL, 0, MPI_BYTE, 0, oci_pmpi_job.tags - 1, oci_pmpi_job.self,
				    &request);
	if (never == MPI_REQUEST_NULL && !error)
		__atomic_store_n(&never, request, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&lock);
}

void oci_pmpi_mover_stop(void)
{
	if (never == MPI_REQUEST_NULL)
		return;
	PMPI(Cancel)(&never);
	PMPI(Wait)(&never, MPI_STATUS_IGNORE);
}

/* Where there was no memory for that receive, a probe moves MPICH, but none on MPI_COMM_SELF's
 * duplicate, and none that a message of the program matches. */
static void move(void)
{
	MPI_Request request = __atomic_load_n(&never, __ATOMIC_RELAXED);
	int tag = oci_pmpi_job.tags - 1, found;

	if (request == MPI_REQUEST_NULL)
		PMPI(Iprobe)(MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
	else
		PMPI(Request_get_status)(request, &found, MPI_STATUS_IGNORE);
}

int oci_pmpi_drive_from_engine(void)
{
	if (!oci_pmpi_may_call())
		return 0;
	move();
	if (oci_pmpi_attention())
		oci_mpi_requests_step();
	return __atomic_load_n(&oci_pmpi_windows, __ATOMIC_RELAXED) != 0;
}

/*
 * Ranks that ask for something of a window spin in MPICH and never yield: a target that yields to
 * them has the CPU back after milliseconds, so it spins, too, as it would in MPICH.
 */
void oci_pmpi_pause(uint32_t *turns)
{
	if (++*turns < 64)
		__builtin_ia32_pause();
	else
		oc_idle(__atomic_load_n(&oci_pmpi_windows, __ATOMIC_RELAXED) != 0);
}

int oci_port_test(MPI_Request *request, bool *over, MPI_Status *status)
{
	int done = 0, error = PMPI(Test)(request, &done, status);

	*over = done || error;
	return error;
}

int oci_port_wait(MPI_Request *request, MPI_Status *status)
{
	return oci_pmpi_attention() ? oci_pmpi_await(request, status) : PMPI(Wait)(request, status);
}

bool oci_port_told(MPI_Comm part)
{
	int told = 0;

	PMPI(Iprobe)(MPI_ANY_SOURCE, 0, part, &told, MPI_STATUS_IGNORE);
	return told;
}

int oci_pmpi_await(MPI_Request *request, MPI_Status *status)
{
	int done = 0, error;

	OCI_UNTIL(done, error, PMPI(Test)(request, &done, status));
	return error;
}
