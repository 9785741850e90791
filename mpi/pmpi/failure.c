/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An engine's error as an MPI error code whose string is the engine's sentence, so that
 * MPI_Error_string() and the default error handler name the rank that died.
 *
 * Each sentence has a code of its own, of one class, which stay for the process's life: an error
 * ends its communicator, so they are few. When the table is full, the code is MPI_ERR_OTHER.
 */
#include "pmpi.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_CODES 256

static struct {
	int code;
	char *text;
} added[MOST_CODES];
static int codes, class = MPI_ERR_OTHER;
static pthread_mutex_t code_lock = PTHREAD_MUTEX_INITIALIZER;

/* A request whose operation failed, until the program has completed it. */
struct failed {
	struct failed *next;
	MPI_Request request;
	MPI_Comm comm;
	int code;
};

static struct failed *list;
static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
uint32_t oci_pmpi_failures;

static int code_of(const char *text)
{
	for (int i = 0; i < codes; i++)
		if (!strcmp(added[i].text, text))
			return added[i].code;
	if (codes == MOST_CODES)
		return MPI_ERR_OTHER;
	if (class == MPI_ERR_OTHER && PMPI(Add_error_class)(&class) == MPI_SUCCESS)
		PMPI(Add_error_string)(class, "onecopy: a collective failed");
	added[codes].text = strdup(text);
	if (!added[codes].text)
		return MPI_ERR_OTHER;
	if (PMPI(Add_error_code)(class, &added[codes].code) != MPI_SUCCESS) {
		free(added[codes].text);
		return MPI_ERR_OTHER;
	}
	PMPI(Add_error_string)(added[codes].code, text);
	return added[codes++].code;
}

int oci_pmpi_failure(const struct oc_team *team, int error)
{
	const char *sentence = team ? oc_team_error(team) : "";
	char text[MPI_MAX_ERROR_STRING];
	int code;

	if (!*sentence)
		return error == -ENOMEM ? MPI_ERR_NO_MEM : MPI_ERR_OTHER;
	snprintf(text, sizeof(text), "onecopy: %s", sentence);
	pthread_mutex_lock(&code_lock);
	code = code_of(text);
	pthread_mutex_unlock(&code_lock);
	return code;
}

int oci_pmpi_raise(MPI_Comm comm, int code)
{
	PMPI(Comm_call_errhandler)(comm == MPI_COMM_NULL ? MPI_COMM_WORLD : comm, code);
	return code;
}

void oci_pmpi_failed(MPI_Request request, struct oci_pmpi_comm *state, int code)
{
	struct failed *failed = malloc(sizeof(*failed));

	if (!failed) /* the communicator's next call tells it */
		return;
	pthread_mutex_lock(&list_lock);
	*failed = (struct failed){ list, request, state->comm, code };
	list = failed;
	pthread_mutex_unlock(&list_lock);
	oci_pmpi_attend(1);
	/* Release: pairs with the acquire of whoever sees the request complete. */
	__atomic_fetch_add(&oci_pmpi_failures, 1, __ATOMIC_RELEASE);
}

int oci_pmpi_failure_take(MPI_Request request, MPI_Comm *comm)
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
		__atomic_fetch_sub(&oci_pmpi_failures, 1, __ATOMIC_RELAXED);
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
