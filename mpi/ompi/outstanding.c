/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The requests that are under way, in the order in which they were started.
 *
 * One thread at a time has the turn: it looks at each and takes out what is over. Others only add
 * at the end. So the lock of the list is held for a few instructions, never while something is
 * completed, and a look that comes from inside another one returns at once.
 */
#include "request.h"

#include "opal/threads/mutex.h"

static opal_mutex_t lock = OPAL_MUTEX_STATIC_INIT; /* of the list */
static struct oci_ompi_request *first, *last;
static unsigned int outstanding; /* their number; atomic */

static opal_mutex_t turn = OPAL_MUTEX_STATIC_INIT;

void oci_ompi_outstanding_add(struct oci_ompi_request *request)
{
	OPAL_THREAD_LOCK(&lock);
	request->next = NULL;
	if (last)
		last->next = request;
	else
		first = request;
	last = request;
	__atomic_add_fetch(&outstanding, 1, __ATOMIC_RELAXED);
	OPAL_THREAD_UNLOCK(&lock);
}

/* The one behind `request`, which is taken out where it is over. */
static struct oci_ompi_request *advance(struct oci_ompi_request *before,
					struct oci_ompi_request *request, bool over)
{
	struct oci_ompi_request *next;

	OPAL_THREAD_LOCK(&lock);
	next = request->next;
	if (over) {
		if (before)
			before->next = next;
		else
			first = next;
		if (last == request)
			last = before;
		__atomic_sub_fetch(&outstanding, 1, __ATOMIC_RELAXED);
	}
	OPAL_THREAD_UNLOCK(&lock);
	return next;
}

static int look_at_all(void)
{
	struct oci_ompi_request *before = NULL, *next;
	int count = 0;

	OPAL_THREAD_LOCK(&lock);
	next = first;
	OPAL_THREAD_UNLOCK(&lock);
	while (next) {
		struct oci_ompi_request *request = next;
		int error = MPI_SUCCESS;
		bool over = oci_ompi_request_look(request, &error);

		next = advance(before, request, over);
		if (over) {
			oci_ompi_request_complete(request, error);
			count++;
		} else {
			before = request;
		}
	}
	return count;
}

int oci_ompi_outstanding_progress(void)
{
	static _Thread_local bool looking __attribute__((tls_model("initial-exec")));
	int count;

	if (!__atomic_load_n(&outstanding, __ATOMIC_RELAXED))
		return 0;
	if (looking || OPAL_THREAD_TRYLOCK(&turn))
		return 0;
	looking = true;
	count = look_at_all();
	looking = false;
	OPAL_THREAD_UNLOCK(&turn);
	return count;
}
