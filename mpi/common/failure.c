/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An engine's error as an MPI error code whose string is the engine's sentence, so that
 * MPI_Error_string() and the default error handler name the rank that died.
 *
 * Each sentence has a code of its own, which stays for the process's life: most errors end their
 * communicator, so they are few. When the table is full, the code is MPI_ERR_OTHER.
 */
#include "common/comm.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_CODES 256

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	int code;
	char *text;
} added[MOST_CODES];
static int codes;

/* With the lock. */
static int code_of(const char *text)
{
	for (int i = 0; i < codes; i++)
		if (!strcmp(added[i].text, text))
			return added[i].code;
	if (codes == MOST_CODES)
		return MPI_ERR_OTHER;
	added[codes].text = strdup(text);
	if (!added[codes].text)
		return MPI_ERR_OTHER;
	if (oci_port_error_add(text, &added[codes].code) != MPI_SUCCESS) {
		free(added[codes].text);
		return MPI_ERR_OTHER;
	}
	return added[codes++].code;
}

int oci_mpi_failure_as(const char *sentence)
{
	char text[MPI_MAX_ERROR_STRING];
	int code;

	snprintf(text, sizeof(text), "onecopy: %s", sentence);
	pthread_mutex_lock(&lock);
	code = code_of(text);
	pthread_mutex_unlock(&lock);
	return code;
}

int oci_mpi_failure(const struct oc_team *team, int error)
{
	const char *sentence = team ? oc_team_error(team) : "";

	if (!*sentence)
		return error == -ENOMEM ? MPI_ERR_NO_MEM : MPI_ERR_OTHER;
	return oci_mpi_failure_as(sentence);
}
