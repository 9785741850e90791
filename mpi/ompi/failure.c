/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An engine's error as what a coll function returns: negative values are Open MPI's own codes,
 * which the MPI_ function maps to an MPI code, positive ones are MPI codes already; both reach the
 * communicator's error handler.
 *
 * Open MPI 4.1 has no error class for a dead process (MPI_ERR_PROC_FAILED came with ULFM, in 5.0).
 * So an error code of our own is added to the class MPI_ERR_OTHER, whose string is the engine's
 * sentence: MPI_Error_string() and the default error handler then name the rank that died.
 */
#include "component.h"

#include "opal/threads/mutex.h"

#include <errno.h>
#include <stdio.h>

static opal_mutex_t lock = OPAL_MUTEX_STATIC_INIT;
static int added; /* the code; 0: not yet */

static int code_with_sentence(const char *sentence)
{
	char text[MPI_MAX_ERROR_STRING];
	int code = OMPI_ERROR;

	snprintf(text, sizeof(text), "MPI_ERR_OTHER: onecopy: %s", sentence);
	opal_mutex_lock(&lock);
	if (added || PMPI_Add_error_code(MPI_ERR_OTHER, &added) == MPI_SUCCESS) {
		PMPI_Add_error_string(added, text);
		code = added;
	}
	opal_mutex_unlock(&lock);
	return code;
}

int oci_ompi_failure(const struct oc_team *team, int error)
{
	const char *sentence;

	switch (error) {
	case -ENOMEM:
		return OMPI_ERR_OUT_OF_RESOURCE;
	case -EINVAL:
		return OMPI_ERR_BAD_PARAM;
	}
	sentence = team ? oc_team_error(team) : "";
	return *sentence ? code_with_sentence(sentence) : OMPI_ERROR;
}
