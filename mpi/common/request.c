/* SPDX-License-Identifier: BSD-3-Clause */
#include "common/request.h"

#include <string.h>

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER; /* trylock alone */
static bool inside; /* what the turn is where there is one thread */
/* Of the lists, and of what is said there; nothing is called with it. */
static pthread_mutex_t lists = PTHREAD_MUTEX_INITIALIZER;
static struct oci_mpi_request *first, **last = &first;
static struct oci_mpi_request *over, **over_last = &over; /* in the order of their ends */
static struct oci_mpi_request *ending;
static uint32_t in_levels; /* of those under way; atomic */
bool oci_mpi_threads = true;

void oci_mpi_set_threads(bool many)
{
	oci_mpi_threads = many;
	oc_set_threads(many);
}

void oci_mpi_request_open(struct oci_mpi_request *request, struct oci_mpi_comm *comm,
			  bool persistent)
{
	memset(request, 0, offsetof(struct oci_mpi_request, operation));
	request->comm = comm;
	request->team = persistent ? NULL : comm->team;
	request->persistent = persistent;
}

static void append(struct oci_mpi_request *request)
{
	oci_mpi_lock(&lists);
	request->active = true;
	request->next = NULL;
	/* Release: pairs with the acquire in step_all(), which walks the list without the lock. */
	__atomic_store_n(last, request, __ATOMIC_RELEASE);
	last = &request->next;
	oci_mpi_unlock(&lists);
	if (!request->lane)
		return;
	/* Its first step, as nothing of it has been started yet. */
	__atomic_fetch_add(&in_levels, 1, __ATOMIC_RELAXED);
	oci_mpi_requests_step();
}

void oci_mpi_request_add(struct oci_mpi_request *request)
{
	oci_port_outstanding(request->comm, 1);
	append(request);
}

void oci_mpi_request_await(struct oci_mpi_request *request)
{
	uint32_t turns = 0;

	request->awaited = true;
	append(request);
	while (oci_mpi_request_is_active(request))
		oci_port_turn(request->comm, &turns);
}

bool oci_mpi_outstanding(void)
{
	return __atomic_load_n(&first, __ATOMIC_RELAXED);
}

bool oci_mpi_requests_pending(void)
{
	return oci_mpi_outstanding() || __atomic_load_n(&over, __ATOMIC_RELAXED) ||
	       __atomic_load_n(&ending, __ATOMIC_RELAXED);
}

bool oci_mpi_request_is_active(const struct oci_mpi_request *request)
{
	bool active;

	oci_mpi_lock(&lists);
	active = request->active;
	oci_mpi_unlock(&lists);
	return active;
}

/* ---- the end of one ---------------------------------------------------------------------------
 */

static void push_ending(struct oci_mpi_request *request)
{
	oci_mpi_lock(&lists);
	request->next = ending;
	__atomic_store_n(&ending, request, __ATOMIC_RELAXED);
	oci_mpi_unlock(&lists);
}

static void end(struct oci_mpi_request *request)
{
	if (!oci_port_request_end(request))
		push_ending(request);
}

/* With the lock: nobody else comes to it any more. */
static bool is_ours_to_end(const struct oci_mpi_request *request)
{
	return request->freed && !request->active && !request->telling;
}

void oci_mpi_request_free(struct oci_mpi_request *request)
{
	bool ends;

	/* The lock: the run may be ending in another thread. */
	oci_mpi_lock(&lists);
	request->freed = true;
	ends = is_ours_to_end(request);
	oci_mpi_unlock(&lists);
	if (ends)
		end(request);
}

/* As soon as the program is told it may start a persistent one again, or free it: whoever is the
 * last to leave a freed one ends it. */
void oci_mpi_request_finish(struct oci_mpi_request *request, int error)
{
	bool freed, ends;

	if (!request->persistent)
		oci_mpi_close(&request->operation);
	oci_mpi_lock(&lists);
	request->active = false;
	request->telling++;
	freed = request->freed;
	oci_mpi_unlock(&lists);
	oci_port_request_complete(request, error, freed);
	oci_mpi_lock(&lists);
	request->telling--;
	ends = is_ours_to_end(request);
	oci_mpi_unlock(&lists);
	if (ends)
		end(request);
}

void oci_mpi_requests_let_go(void)
{
	struct oci_mpi_request *request, *next;

	if (!__atomic_load_n(&ending, __ATOMIC_RELAXED))
		return;
	oci_mpi_lock(&lists);
	request = ending;
	__atomic_store_n(&ending, NULL, __ATOMIC_RELAXED);
	oci_mpi_unlock(&lists);
	for (; request; request = next) {
		next = request->next;
		end(request);
	}
}

/* ---- all of them ------------------------------------------------------------------------------
 */

static bool step(struct oci_mpi_request *request)
{
	int result;

	if (request->lane)
		return oci_mpi_levels_step(request);
	result = oc_peek(request->engine);
	if (!result)
		return false;
	request->error = oci_mpi_outcome(request, result);
	return true;
}

/* With the turn: nobody else takes requests off. */
static void step_all(void)
{
	struct oci_mpi_request **at = &first, *request;

	/* Acquire: pairs with the release of oci_mpi_request_add(). */
	while ((request = __atomic_load_n(at, __ATOMIC_ACQUIRE))) {
		if (!step(request)) {
			at = &request->next;
			continue;
		}
		oci_mpi_lock(&lists);
		__atomic_store_n(at, request->next, __ATOMIC_RELAXED);
		if (last == &request->next)
			last = at;
		if (request->lane)
			__atomic_fetch_sub(&in_levels, 1, __ATOMIC_RELAXED);
		if (request->awaited) {
			request->active = false; /* and gone */
		} else {
			request->next = NULL;
			__atomic_store_n(over_last, request, __ATOMIC_RELAXED);
			over_last = &request->next;
		}
		oci_mpi_unlock(&lists);
	}
}

/* Who is called again, by the engine or the MPI that it drives, leaves at once. */
void oci_mpi_requests_step(void)
{
	bool locks = oci_mpi_threads;

	if (!oci_mpi_outstanding() || (locks ? pthread_mutex_trylock(&turn) : inside))
		return;
	inside = true;
	step_all();
	inside = false;
	if (locks)
		pthread_mutex_unlock(&turn);
}

void oci_mpi_requests_step_levels(void)
{
	if (__atomic_load_n(&in_levels, __ATOMIC_RELAXED))
		oci_mpi_requests_step();
}

static struct oci_mpi_request *take_over(void)
{
	struct oci_mpi_request *request;

	oci_mpi_lock(&lists);
	request = over;
	if (request)
		__atomic_store_n(&over, request->next, __ATOMIC_RELAXED);
	if (!over)
		over_last = &over;
	oci_mpi_unlock(&lists);
	return request;
}

int oci_mpi_requests_progress(void)
{
	struct oci_mpi_request *request;
	int count = 0;

	oci_mpi_requests_step();
	while (__atomic_load_n(&over, __ATOMIC_RELAXED) && (request = take_over())) {
		struct oci_mpi_comm *comm = request->comm;

		oci_mpi_request_finish(request, request->error);
		oci_port_outstanding(comm, -1);
		count++;
	}
	oci_mpi_requests_let_go();
	return count;
}

void oci_mpi_requests_stop(void)
{
	first = over = ending = NULL;
	last = &first;
	over_last = &over;
}
