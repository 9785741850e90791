/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Wait and Test in all forms, and what frees requests.
 *
 * Carriers complete as the MPI's own requests do. What is added: while something of ours is
 * outstanding, a Wait becomes a loop around Test that drives us; and an operation of ours that
 * failed, which a carrier cannot tell, is told by whatever function completes its request.
 */
#include "pmpi.h"

#include <stdlib.h>
#include <string.h>

/* ---- failures ---------------------------------------------------------------------------------
 */

/* A request whose operation failed, until the program has completed it. */
struct failed {
	struct failed *next;
	MPI_Request request;
	MPI_Comm comm;
	int code;
};

static struct failed *list;
static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t failures; /* how many; atomic */

MPI_Errhandler oci_pmpi_hush(MPI_Comm comm)
{
	MPI_Errhandler handler = MPI_ERRHANDLER_NULL;

	PMPI(Comm_get_errhandler)(comm, &handler);
	PMPI(Comm_set_errhandler)(comm, MPI_ERRORS_RETURN);
	return handler;
}

void oci_pmpi_unhush(MPI_Comm comm, MPI_Errhandler handler)
{
	if (handler == MPI_ERRHANDLER_NULL)
		return;
	PMPI(Comm_set_errhandler)(comm, handler);
	PMPI(Errhandler_free)(&handler);
}

/* To compare with what MPI defines. */
static MPI_Errhandler handler_of(MPI_Comm comm)
{
	MPI_Errhandler handler = MPI_ERRORS_ARE_FATAL, copy;

	PMPI(Comm_get_errhandler)(comm, &handler);
	copy = handler;
	PMPI(Errhandler_free)(&handler);
	return copy;
}

/* Of the attribute below: fails once. */
static int fail_once(MPI_Comm comm, int keyval, void *value, void *extra)
{
	int *error = value, now = *error;

	(void)comm;
	(void)keyval;
	(void)extra;
	*error = MPI_SUCCESS;
	return now;
}

/*
 * MPICH gives some communicators no handler, those of MPI_Comm_create and duplicates of such, and
 * calls that of MPI_COMM_WORLD for them: but not in MPI_Comm_call_errhandler, which ends the job,
 * and not where the handler is asked for, which is MPI_ERRORS_ARE_FATAL then. So an error is made,
 * of an attribute that does not go; which is the end where the program has said that errors are
 * fatal. Meanwhile another thread's error on MPI_COMM_WORLD is returned alone.
 */
static bool lacks_handler(MPI_Comm comm, int code)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	MPI_Errhandler handler;
	bool lacks = false;
	int keyval;

	if (handler_of(comm) != MPI_ERRORS_ARE_FATAL ||
	    PMPI(Comm_create_keyval)(MPI_COMM_NULL_COPY_FN, fail_once, &keyval, NULL))
		return false;
	pthread_mutex_lock(&lock);
	if (handler_of(MPI_COMM_WORLD) != MPI_ERRORS_ARE_FATAL) {
		handler = oci_pmpi_hush(MPI_COMM_WORLD);
		if (!PMPI(Comm_set_attr)(comm, keyval, &code)) {
			PMPI(Comm_delete_attr)(comm, keyval);
			PMPI(Comm_delete_attr)(comm, keyval);
		}
		oci_pmpi_unhush(MPI_COMM_WORLD, handler);
		lacks = true;
	}
	pthread_mutex_unlock(&lock);
	PMPI(Comm_free_keyval)(&keyval);
	return lacks;
}

int oci_pmpi_raise(MPI_Comm comm, int code)
{
	if (comm == MPI_COMM_NULL || (comm != MPI_COMM_WORLD && lacks_handler(comm, code)))
		comm = MPI_COMM_WORLD;
	PMPI(Comm_call_errhandler)(comm, code);
	return code;
}

bool oci_pmpi_raises_elsewhere(MPI_Comm comm)
{
	MPI_Errhandler own;

	if (comm == MPI_COMM_WORLD || comm == MPI_COMM_NULL)
		return false;
	own = handler_of(comm);
	return (own != MPI_ERRORS_ARE_FATAL && own != MPI_ERRORS_RETURN) ||
	       own != handler_of(MPI_COMM_WORLD);
}

void oci_pmpi_failed(MPI_Request request, MPI_Comm comm, int code)
{
	struct failed *failed = malloc(sizeof(*failed));

	if (!failed) /* the communicator's next call tells it */
		return;
	pthread_mutex_lock(&list_lock);
	*failed = (struct failed){ list, request, comm, code };
	list = failed;
	pthread_mutex_unlock(&list_lock);
	oci_pmpi_attend(1);
	/* Release: pairs with the acquire of whoever sees the request complete. */
	__atomic_fetch_add(&failures, 1, __ATOMIC_RELEASE);
}

/* Takes the failure of a request that was completed: its code, or MPI_SUCCESS. */
static int take(MPI_Request request, MPI_Comm *comm)
{
	int code = MPI_SUCCESS;

	pthread_mutex_lock(&list_lock);
	for (struct failed **at = &list, *failed; (failed = *at) != NULL; at = &failed->next) {
		if (failed->request != request)
			continue;
		code = failed->code;
		*comm = failed->comm;
		*at = failed->next;
		free(failed);
		__atomic_fetch_sub(&failures, 1, __ATOMIC_RELAXED);
		oci_pmpi_attend(-1);
		break;
	}
	pthread_mutex_unlock(&list_lock);
	return code;
}

void oci_pmpi_failure_comm_gone(MPI_Comm comm)
{
	pthread_mutex_lock(&list_lock);
	for (struct failed *failed = list; failed; failed = failed->next)
		if (failed->comm == comm)
			failed->comm = MPI_COMM_NULL;
	pthread_mutex_unlock(&list_lock);
}

/* ---- Wait and Test ----------------------------------------------------------------------------
 */

/* Handles as they were before the MPI replaced those that have completed. */
struct before {
	MPI_Request few[64], *all;
};

static bool remember(struct before *before, int count, const MPI_Request *requests)
{
	size_t bytes = (size_t)(count > 0 ? count : 0) * sizeof(*requests);

	before->all = before->few;
	if (bytes > sizeof(before->few))
		before->all = malloc(bytes);
	if (!before->all)
		return false;
	if (requests)
		memcpy(before->all, requests, bytes);
	return true;
}

static void forget(struct before *before)
{
	if (before->all != before->few)
		free(before->all);
}

static bool any_failed(void)
{
	return OCI_UNLIKELY(__atomic_load_n(&failures, __ATOMIC_ACQUIRE) != 0);
}

/* A single request has completed. */
static int tell(MPI_Request request, MPI_Status *status)
{
	MPI_Comm comm;
	int code;

	if (!any_failed())
		return MPI_SUCCESS;
	code = take(request, &comm);
	if (!code)
		return MPI_SUCCESS;
	if (status != MPI_STATUS_IGNORE)
		status->MPI_ERROR = code;
	return oci_pmpi_raise(comm, code);
}

/*
 * `done` requests have completed, whose places are in `indices` (NULL: all, in order). As MPI has
 * it, the statuses then hold an error code each. `error`: what the MPI itself has raised.
 */
static int tell_some(const struct before *before, int done, const int *indices,
		     MPI_Status *statuses, int error)
{
	MPI_Comm comm = MPI_COMM_NULL, of;
	int failed = 0, code;

	if (!any_failed() || (error && error != MPI_ERR_IN_STATUS))
		return error;
	for (int i = 0; i < done; i++) {
		code = take(before->all[indices ? indices[i] : i], &of);
		if (statuses != MPI_STATUSES_IGNORE && (code || !error))
			statuses[i].MPI_ERROR = code;
		if (code) {
			failed++;
			comm = of;
		}
	}
	return failed && !error ? oci_pmpi_raise(comm, MPI_ERR_IN_STATUS) : error;
}

int oci_pmpi_Wait(MPI_Request *request, MPI_Status *status)
{
	MPI_Request before;
	int error;

	if (!oci_pmpi_attention() || !request)
		return PMPI(Wait)(request, status);
	before = *request;
	error = oci_pmpi_await(request, status);
	return error ? error : tell(before, status);
}

int oci_pmpi_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
	MPI_Request before;
	int error;

	if (!oci_pmpi_attention() || !request || !flag)
		return PMPI(Test)(request, flag, status);
	before = *request;
	oci_pmpi_drive();
	error = PMPI(Test)(request, flag, status);
	return error || !*flag ? error : tell(before, status);
}

/* ---- Waitall ----------------------------------------------------------------------------------
 */

/* How many requests are asked for in one turn: who waits for thousands asks for these first. */
#define WINDOW 64

struct waitall {
	MPI_Status *statuses; /* NULL: the program wants none */
	int error;	      /* what the call returns */
	bool raised;	      /* by the MPI */
	MPI_Comm comm;	      /* else here it is */
};

/* MPI_ERROR is left alone until there is an error in one status; then there is a code in each. */
static void tell_one(struct waitall *all, int place, const MPI_Status *status, int code)
{
	MPI_Status *to = all->statuses ? &all->statuses[place] : NULL;
	int kept;

	if (code && !all->error) {
		all->error = MPI_ERR_IN_STATUS;
		for (int i = 0; to && i < place; i++)
			all->statuses[i].MPI_ERROR = MPI_SUCCESS;
	}
	if (!to)
		return;
	kept = to->MPI_ERROR;
	*to = *status;
	to->MPI_ERROR = all->error ? code : kept;
}

/*
 * By Testsome, which tells errors as Waitall does. Request_get_status would not do: MPICH moves
 * some requests, such as those of MPI_File_iwrite(), only in calls that complete them.
 * (PMPI_Testall() fails on persistent collectives in MPICH 4.0.2.) What is over is not asked for
 * again: MPICH before 4.2 takes persistent collectives that are over for active. Returns an error
 * that is not one of a request.
 */
static int await_window(struct waitall *all, int first, int count, MPI_Request requests[])
{
	MPI_Request left[WINDOW];
	MPI_Status some[WINDOW], status[WINDOW];
	int places[WINDOW], codes[WINDOW] = { MPI_SUCCESS }, done, error;

	memcpy(left, requests, (size_t)count * sizeof(left[0]));
	/* Null and inactive ones have empty statuses. */
	PMPI(Request_get_status)(MPI_REQUEST_NULL, &done, &status[0]);
	for (int i = 1; i < count; i++)
		status[i] = status[0];
	do {
		if (oci_pmpi_attention()) {
			OCI_UNTIL(done, error, PMPI(Testsome)(count, left, &done, places, some));
		} else {
			error = PMPI(Waitsome)(count, left, &done, places, some);
		}
		if (error && error != MPI_ERR_IN_STATUS)
			return error;
		for (int i = 0; done != MPI_UNDEFINED && i < done; i++) {
			int place = places[i];

			status[place] = some[i];
			if (error)
				codes[place] = some[i].MPI_ERROR;
			if (codes[place])
				all->raised = true;
			else if (any_failed())
				codes[place] = take(requests[place], &all->comm);
			requests[place] = left[place];
			left[place] = MPI_REQUEST_NULL;
		}
	} while (done != MPI_UNDEFINED);
	for (int i = 0; i < count; i++)
		tell_one(all, first + i, &status[i], codes[i]);
	return MPI_SUCCESS;
}

int oci_pmpi_Waitall(int count, MPI_Request requests[], MPI_Status statuses[])
{
	struct waitall all = {
		.statuses = statuses == MPI_STATUSES_IGNORE ? NULL : statuses,
		.comm = MPI_COMM_NULL,
	};
	int error;

	/* A small operation is over with the first step that its peers wait for. */
	if (oci_pmpi_attention())
		oci_pmpi_drive();
	if (!oci_pmpi_attention() || count <= 0 || !requests)
		return PMPI(Waitall)(count, requests, statuses);
	for (int at = 0; at < count; at += WINDOW) {
		error = await_window(&all, at, count - at < WINDOW ? count - at : WINDOW,
				     &requests[at]);
		if (error)
			return error;
	}
	return all.error && !all.raised ? oci_pmpi_raise(all.comm, all.error) : all.error;
}

int oci_pmpi_Testall(int count, MPI_Request requests[], int *flag, MPI_Status statuses[])
{
	struct before before;
	int error;

	if (!oci_pmpi_attention() || count <= 0 || !requests || !flag)
		return PMPI(Testall)(count, requests, flag, statuses);
	oci_pmpi_drive();
	if (!remember(&before, count, requests))
		return oci_pmpi_raise(MPI_COMM_WORLD, MPI_ERR_NO_MEM);
	error = PMPI(Testall)(count, requests, flag, statuses);
	if ((!error || error == MPI_ERR_IN_STATUS) && *flag)
		error = tell_some(&before, count, NULL, statuses, error);
	forget(&before);
	return error;
}

static int any(int count, MPI_Request requests[], int *index, int *flag, MPI_Status *status,
	       bool wait)
{
	struct before before;
	int error;

	if (!remember(&before, count, requests))
		return oci_pmpi_raise(MPI_COMM_WORLD, MPI_ERR_NO_MEM);
	OCI_UNTIL(*flag || !wait, error, PMPI(Testany)(count, requests, index, flag, status));
	if (!error && *flag && *index != MPI_UNDEFINED)
		error = tell(before.all[*index], status);
	forget(&before);
	return error;
}

int oci_pmpi_Waitany(int count, MPI_Request requests[], int *index, MPI_Status *status)
{
	int flag = 0;

	if (!oci_pmpi_attention() || !index)
		return PMPI(Waitany)(count, requests, index, status);
	return any(count, requests, index, &flag, status, true);
}

int oci_pmpi_Testany(int count, MPI_Request requests[], int *index, int *flag, MPI_Status *status)
{
	if (!oci_pmpi_attention() || !index || !flag)
		return PMPI(Testany)(count, requests, index, flag, status);
	return any(count, requests, index, flag, status, false);
}

static int some(int count, MPI_Request requests[], int *done, int indices[], MPI_Status statuses[],
		bool wait)
{
	struct before before;
	int error;

	if (!remember(&before, count, requests))
		return oci_pmpi_raise(MPI_COMM_WORLD, MPI_ERR_NO_MEM);
	OCI_UNTIL(*done || !wait, error, PMPI(Testsome)(count, requests, done, indices, statuses));
	if (!error || error == MPI_ERR_IN_STATUS)
		error = tell_some(&before, *done == MPI_UNDEFINED ? 0 : *done, indices, statuses,
				  error);
	forget(&before);
	return error;
}

int oci_pmpi_Waitsome(int count, MPI_Request requests[], int *done, int indices[],
		      MPI_Status statuses[])
{
	if (!oci_pmpi_attention() || !done)
		return PMPI(Waitsome)(count, requests, done, indices, statuses);
	return some(count, requests, done, indices, statuses, true);
}

int oci_pmpi_Testsome(int count, MPI_Request requests[], int *done, int indices[],
		      MPI_Status statuses[])
{
	if (!oci_pmpi_attention() || !done)
		return PMPI(Testsome)(count, requests, done, indices, statuses);
	return some(count, requests, done, indices, statuses, false);
}

/*
 * MPI forbids it of a nonblocking collective that is under way, and MPICH refuses it. An active
 * persistent one goes on; its object and its carrier are given back at its end, as MPICH 4.0.2 is
 * lost when a thread frees a receive that another one completes.
 */
int oci_pmpi_Request_free(MPI_Request *request)
{
	struct oci_pmpi_request *self = request ? oci_pmpi_request_of(*request) : NULL;
	MPI_Comm comm;

	if (request && !self && oci_pmpi_attention() && oci_pmpi_request_is_active(*request, &comm))
		return oci_pmpi_raise(comm, MPI_ERR_REQUEST);
	if (request && any_failed())
		take(*request, &comm);
	if (!self)
		return PMPI(Request_free)(request);
	oci_pmpi_request_free(self);
	*request = MPI_REQUEST_NULL;
	return MPI_SUCCESS;
}

/* MPI forbids it of collectives, and MPICH refuses it; our carrier would be cancelled instead. */
int oci_pmpi_Cancel(MPI_Request *request)
{
	struct oci_pmpi_request *self = request ? oci_pmpi_request_of(*request) : NULL;
	MPI_Comm comm;

	if (self)
		return oci_pmpi_raise(self->mpi.comm->comm, MPI_ERR_REQUEST);
	if (request && oci_pmpi_attention() && oci_pmpi_request_is_active(*request, &comm))
		return oci_pmpi_raise(comm, MPI_ERR_REQUEST);
	return PMPI(Cancel)(request);
}
