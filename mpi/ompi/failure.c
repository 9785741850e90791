/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An engine's error as what a coll function returns: negative values are Open MPI's own codes,
 * which the MPI_ function maps to an MPI code, positive ones are MPI codes already; both reach the
 * communicator's error handler.
 *
 * Open MPI 4.1 has no error class for a dead process (MPI_ERR_PROC_FAILED came with ULFM, in 5.0).
 * So error codes of our own are added to the class MPI_ERR_OTHER, whose strings are the engine's
 * sentences: MPI_Error_string() and the default error handler then name the rank that died. Each
 * sentence has its code, which stays for the process's life: an error ends its communicator, so
 * they are few. When the table is full, the code is the class itself.
 */
#include "component.h"

#include "opal/threads/mutex.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_CODES 256

struct added {
	int code;
	char *text;
};

static opal_mutex_t lock = OPAL_MUTEX_STATIC_INIT;
static struct added added[MOST_CODES];
static int codes;

/* With the lock held. MPI_ERR_OTHER where no code can be added. */
static int code_of(const char *text)
{
	struct added *next = &added[codes];

	for (int i = 0; i < codes; i++)
		if (!strcmp(added[i].text, text))
			return added[i].code;
	if (codes == MOST_CODES)
		return MPI_ERR_OTHER;
	next->text = strdup(text);
	if (!next->text)
		return MPI_ERR_OTHER;
	if (PMPI_Add_error_code(MPI_ERR_OTHER, &next->code) != MPI_SUCCESS) {
		free(next->text);
		return MPI_ERR_OTHER;
	}
	PMPI_Add_error_string(next->code, text);
	codes++;
	return next->code;
}

int oci_ompi_failure(const struct oc_team *team, int error)
{
	const char *sentence = team ? oc_team_error(team) : "";
	char text[MPI_MAX_ERROR_STRING];
	int code;

	if (!*sentence)
		return error == -ENOMEM ? OMPI_ERR_OUT_OF_RESOURCE : OMPI_ERROR;
	if (error == -EINVAL)
		return OMPI_ERR_BAD_PARAM;
	snprintf(text, sizeof(text), "MPI_ERR_OTHER: onecopy: %s", sentence);
	opal_mutex_lock(&lock);
	code = code_of(text);
	opal_mutex_unlock(&lock);
	return code;
}
