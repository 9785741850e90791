/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Algorithms forced on one communicator by its info keys onecopy_NAME, as they are given to
 * MPI_Comm_set_info, MPI_Comm_dup_with_info and MPI_Comm_split_type. These are collective, so that
 * all members see the same words at the same place among their collectives. MPICH keeps no keys
 * that it does not know: MPI_Comm_get_info does not show ours, and MPI_Comm_dup does not copy them.
 */
#include "pmpi.h"

/* They are there from the communicator's first call on. */
static void take_words(struct oci_pmpi_comm *state, MPI_Info info)
{
	char words[MPI_MAX_INFO_VAL + 1];
	int found;

	if (!state || (state->reason && !state->mpi.spans))
		return;
	for (int i = 0; i < OC_COLLECTIVES; i++) {
		found = 0;
		PMPI(Info_get)(info, oci_mpi_info_keys[i], MPI_MAX_INFO_VAL, words, &found);
		if (found)
			oci_mpi_force(&state->mpi, i, words);
	}
}

static int take_info(int error, const MPI_Comm *comm, MPI_Info info)
{
	if (!error && info != MPI_INFO_NULL)
		take_words(oci_pmpi_comm_get(*comm), info);
	return error;
}

int oci_pmpi_Comm_dup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm *made)
{
	return take_info(OCI_HELPED_CALLBACKS(PMPI(Comm_dup_with_info)(comm, info, made)), made,
			 info);
}

int oci_pmpi_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *made)
{
	return take_info(OCI_HELPED(PMPI(Comm_split_type)(comm, type, key, info, made)), made,
			 info);
}

/* The MPI names the communicator at once, but knows its members only when the request is over: who
 * asks before keeps it from ever knowing them. They are those of the one that it was made from. */
int oci_pmpi_Comm_idup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm *made, MPI_Request *request)
{
	int error = PMPI(Comm_idup_with_info)(comm, info, made, request);

	if (!error && info != MPI_INFO_NULL)
		take_words(oci_pmpi_comm_duplicate(*made, comm), info);
	return error;
}

int oci_pmpi_Comm_set_info(MPI_Comm comm, MPI_Info info)
{
	return take_info(PMPI(Comm_set_info)(comm, info), &comm, info);
}
