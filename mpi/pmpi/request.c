/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Outstanding operations and the requests that the program holds for them.
 *
 * The program's request is a carrier: a receive of no bytes from ourselves, on a private duplicate
 * of MPI_COMM_SELF, with a tag of its own. When the operation is over we send that message. So it
 * completes in each form of Wait and Test, beside any other requests, and a persistent one keeps
 * its handle. (MPICH's generalized requests are not polled while the program sits in other calls,
 * and cannot be persistent.)
 *
 * Operations start and end in any thread. One thread at a time drives them, without waiting for
 * that: who does not become the driver leaves the work to it. What has ended is told from our own
 * functions alone, not from inside the engine, by whoever comes, and with nothing held: to give
 * back a type may call functions of the program, which may call us.
 */
#include "pmpi.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

uint32_t oci_pmpi_attention_count;
uint32_t oci_record_persistents;

static pthread_mutex_t driver = PTHREAD_MUTEX_INITIALIZER; /* trylock alone */
/* Of the lists; nothing is called with it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct oci_record *first, **last = &first;
static struct oci_record *over, **over_last = &over; /* to be told, in the order of their ends */

/* Records are never given back before MPI_Finalize: each keeps its tag. */
static pthread_mutex_t pool_lock = PTHREAD_MUTEX_INITIALIZER;
static struct oci_record *pool, *made;
static struct oci_record *ending; /* their teams are to be destroyed, not from inside the engine */
static int next_tag;

#define BUCKETS 256
static pthread_mutex_t bucket_lock = PTHREAD_MUTEX_INITIALIZER;
static struct oci_record *buckets[BUCKETS];

/* ---- records ----------------------------------------------------------------------------------
 */

struct oci_record *oci_record_get(void)
{
	struct oci_record *record;

	pthread_mutex_lock(&pool_lock);
	record = pool;
	if (record) {
		pool = record->next;
	} else if (next_tag < oci_pmpi_job.tags - 1) { /* the last one is nobody's */
		record = calloc(1, sizeof(*record));
		if (record) {
			record->tag = next_tag++;
			record->made = made;
			made = record;
		}
	}
	pthread_mutex_unlock(&pool_lock);
	if (!record)
		return NULL;
	record->next = NULL;
	record->carrier = record->anchor = MPI_REQUEST_NULL;
	record->engine = NULL;
	record->team = NULL;
	record->persistent = record->active = record->freed = false;
	record->telling = 0;
	return record;
}

void oci_record_put(struct oci_record *record)
{
	pthread_mutex_lock(&pool_lock);
	record->next = pool;
	pool = record;
	pthread_mutex_unlock(&pool_lock);
}

static void push_ending(struct oci_record *record)
{
	pthread_mutex_lock(&pool_lock);
	record->next = ending;
	__atomic_store_n(&ending, record, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&pool_lock);
}

void oci_record_end(struct oci_record *record)
{
	PMPI(Request_free)(&record->carrier);
	oci_mpi_close(&record->operation);
	if (record->anchor != MPI_REQUEST_NULL)
		PMPI(Request_free)(&record->anchor);
	if (!record->team) {
		oci_record_put(record);
		return;
	}
	oci_pmpi_attend(1);
	push_ending(record);
}

static void reap_records(void)
{
	struct oci_record *record, *next;

	if (!__atomic_load_n(&ending, __ATOMIC_RELAXED))
		return;
	pthread_mutex_lock(&pool_lock);
	record = ending;
	__atomic_store_n(&ending, NULL, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&pool_lock);
	for (; record; record = next) {
		next = record->next;
		if (oc_team_destroy(record->team) == -EBUSY) {
			push_ending(record);
			continue;
		}
		record->team = NULL;
		oci_record_put(record);
		oci_pmpi_attend(-1);
	}
}

void oci_record_stop(void)
{
	struct oci_record *record, *next;

	for (record = made; record; record = next) {
		next = record->made;
		/* Of requests that the program has not freed. */
		if (record->persistent && record->team)
			oc_team_destroy(record->team);
		free(record);
	}
	made = pool = ending = NULL;
	next_tag = 0;
	first = over = NULL;
	last = &first;
	over_last = &over;
	memset(buckets, 0, sizeof(buckets));
	oci_record_persistents = 0;
}

void oci_record_activate(struct oci_record *record)
{
	oci_pmpi_attend(1);
	__atomic_fetch_add(&record->state->outstanding, 1, __ATOMIC_RELAXED);
	pthread_mutex_lock(&lock);
	record->next = NULL;
	record->link = last;
	/* Release: pairs with the acquires of the driver, who walks the list without the lock. */
	__atomic_store_n(last, record, __ATOMIC_RELEASE);
	last = &record->next;
	pthread_mutex_unlock(&lock);
	if (oci_pmpi_job.threads)
		oci_pmpi_helper_wake();
}

bool oci_pmpi_outstanding(void)
{
	return __atomic_load_n(&first, __ATOMIC_RELAXED);
}

static struct oci_record *find_carrier(struct oci_record *list, MPI_Request request)
{
	while (list && list->carrier != request)
		list = list->next;
	return list;
}

bool oci_record_is_active(MPI_Request request, MPI_Comm *comm)
{
	struct oci_record *record;

	pthread_mutex_lock(&lock);
	record = find_carrier(first, request);
	if (!record)
		record = find_carrier(over, request);
	if (record)
		*comm = record->state->comm;
	pthread_mutex_unlock(&lock);
	return record;
}

static struct oci_record **bucket_of(MPI_Request request)
{
	uintptr_t handle = (uintptr_t)request;

	return &buckets[(handle ^ handle >> 8) % BUCKETS];
}

struct oci_record *oci_record_of(MPI_Request request)
{
	struct oci_record *record;

	if (!__atomic_load_n(&oci_record_persistents, __ATOMIC_RELAXED))
		return NULL;
	pthread_mutex_lock(&bucket_lock);
	record = *bucket_of(request);
	while (record && record->carrier != request)
		record = record->bucket;
	pthread_mutex_unlock(&bucket_lock);
	return record;
}

void oci_record_keep(struct oci_record *record)
{
	struct oci_record **bucket = bucket_of(record->carrier);

	pthread_mutex_lock(&bucket_lock);
	record->bucket = *bucket;
	*bucket = record;
	pthread_mutex_unlock(&bucket_lock);
	__atomic_fetch_add(&oci_record_persistents, 1, __ATOMIC_RELAXED);
}

static void unlist(struct oci_record *record)
{
	struct oci_record **at = bucket_of(record->carrier);

	pthread_mutex_lock(&bucket_lock);
	while (*at != record)
		at = &(*at)->bucket;
	*at = record->bucket;
	pthread_mutex_unlock(&bucket_lock);
	__atomic_fetch_sub(&oci_record_persistents, 1, __ATOMIC_RELAXED);
}

/* With the lock: nobody else comes to it any more. */
static bool is_ours_to_end(const struct oci_record *record)
{
	return record->freed && !record->active && !record->telling;
}

void oci_record_free(struct oci_record *record)
{
	bool ends;

	unlist(record);
	/* The lock: the operation may be ending in another thread. */
	pthread_mutex_lock(&lock);
	record->freed = true;
	ends = is_ours_to_end(record);
	pthread_mutex_unlock(&lock);
	if (ends)
		oci_record_end(record);
}

/* ---- driving ----------------------------------------------------------------------------------
 */

/*
 * The carrier's receive is posted, so the send completes at once. Behind it a persistent record may
 * be started again, or freed: whoever is the last to leave a freed one ends it.
 */
void oci_record_finish(struct oci_record *record, int error)
{
	bool persistent = record->persistent, freed, ends;

	if (!persistent)
		oci_mpi_close(&record->operation);
	pthread_mutex_lock(&lock);
	record->active = false;
	record->telling++;
	freed = record->freed;
	pthread_mutex_unlock(&lock);
	/* A request that was freed tells nobody, and its handle comes back as another's. */
	if (error && !freed)
		oci_pmpi_failed(record->carrier, record->state, error);
	PMPI(Send)(NULL, 0, MPI_BYTE, 0, record->tag, oci_pmpi_job.self);
	pthread_mutex_lock(&lock);
	record->telling--;
	ends = is_ours_to_end(record);
	pthread_mutex_unlock(&lock);
	if (ends)
		oci_record_end(record);
	else if (!persistent)
		oci_record_put(record);
}

/* True: over, *error is what came of it. */
static bool step(struct oci_record *record, int *error)
{
	int result = oc_peek(record->engine);

	if (!result)
		return false;
	record->engine = NULL;
	*error = result < 0 ? oci_pmpi_failure(record->team, result) :
			      oci_mpi_store(&record->operation);
	return true;
}

static void move_to_over(struct oci_record *record)
{
	pthread_mutex_lock(&lock);
	__atomic_store_n(record->link, record->next, __ATOMIC_RELAXED);
	if (record->next)
		record->next->link = record->link;
	else
		last = record->link;
	record->next = NULL;
	__atomic_store_n(over_last, record, __ATOMIC_RELAXED);
	over_last = &record->next;
	pthread_mutex_unlock(&lock);
}

/* The driver that is called again, by the engine or the MPI that it drives, leaves at once. */
static void step_records(void)
{
	struct oci_record *record, *next;

	if (!__atomic_load_n(&first, __ATOMIC_RELAXED) || pthread_mutex_trylock(&driver))
		return;
	/* Acquire: pairs with the release of oci_record_activate(). Nobody else takes records off.
	 */
	for (record = __atomic_load_n(&first, __ATOMIC_ACQUIRE); record; record = next) {
		bool ended = step(record, &record->error);

		next = __atomic_load_n(&record->next, __ATOMIC_ACQUIRE);
		if (ended)
			move_to_over(record);
	}
	pthread_mutex_unlock(&driver);
}

static void tell_records(void)
{
	struct oci_pmpi_comm *state;
	struct oci_record *record;

	while (__atomic_load_n(&over, __ATOMIC_RELAXED)) {
		pthread_mutex_lock(&lock);
		record = over;
		if (record)
			__atomic_store_n(&over, record->next, __ATOMIC_RELAXED);
		if (!over)
			over_last = &over;
		pthread_mutex_unlock(&lock);
		if (!record)
			return;
		state = record->state;
		oci_record_finish(record, record->error);
		/* Release: pairs with the acquire of whoever destroys the communicator's object. */
		__atomic_fetch_sub(&state->outstanding, 1, __ATOMIC_RELEASE);
		oci_pmpi_attend(-1);
	}
}

void oci_pmpi_drive(void)
{
	oc_progress();
	step_records();
	tell_records();
	reap_records();
	oci_pmpi_comm_reap();
}

/*
 * The probe is what makes MPICH move. It is for a message that nobody sends, on a duplicate of
 * MPI_COMM_WORLD: one on a duplicate of MPI_COMM_SELF moves nothing in MPICH 4.0.2.
 */
int oci_pmpi_drive_from_engine(void)
{
	int found;

	if (!oci_pmpi_may_call())
		return 0;
	PMPI(Iprobe)
	(MPI_ANY_SOURCE, oci_pmpi_job.tags - 1, oci_pmpi_job.world, &found, MPI_STATUS_IGNORE);
	if (oci_pmpi_attention())
		step_records();
	return __atomic_load_n(&oci_pmpi_windows, __ATOMIC_RELAXED) != 0;
}

/*
 * Ranks that ask for something of a window spin in MPICH and never yield: a target that yields to
 * them has the CPU back after milliseconds, so it spins, too, as it would in MPICH.
 */
void oci_pmpi_pause(uint32_t *turns)
{
	if (++*turns < 64 || __atomic_load_n(&oci_pmpi_windows, __ATOMIC_RELAXED))
		__builtin_ia32_pause();
	else
		sched_yield();
}

int oci_pmpi_await(MPI_Request *request, MPI_Status *status)
{
	uint32_t turns = 0;
	int done = 0, error;

	for (;;) {
		oci_pmpi_drive();
		error = PMPI(Test)(request, &done, status);
		if (error || done)
			return error;
		oci_pmpi_pause(&turns);
	}
}
