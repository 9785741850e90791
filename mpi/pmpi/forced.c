/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Algorithms forced on one communicator by its info keys onecopy_NAME, as they are given to
 * MPI_Comm_set_info, MPI_Comm_dup_with_info and MPI_Comm_split_type. These are collective, so that
 * all members see the same words at the same place among their collectives. MPICH keeps no keys
 * that it does not know: MPI_Comm_get_info does not show ours, and MPI_Comm_dup does not copy them.
 */
#include "pmpi.h"

#include <string.h>

static const char *const keys[OC_COLLECTIVES] = OCI_INFO_KEYS;

static void force(struct oci_pmpi_comm *state, int i)
{
	/* All ranks have the same words; the first one speaks. */
	if (oc_team_force(state->team, oci_collective_name(i), state->forced[i]) &&
	    state->rank == 0)
		oci_mpi_warn("info key %s=%s of a communicator is ignored: %s", keys[i],
			     state->forced[i], oc_team_error(state->team));
}

void oci_pmpi_forced_take(struct oci_pmpi_comm *state, MPI_Info info)
{
	char words[MPI_MAX_INFO_VAL + 1];
	int found;

	if (info == MPI_INFO_NULL || state->reason)
		return;
	for (int i = 0; i < OC_COLLECTIVES; i++) {
		found = 0;
		PMPI(Info_get)(info, keys[i], MPI_MAX_INFO_VAL, words, &found);
		if (!found)
			continue;
		memset(state->forced[i], 0, OCI_FORCED_BYTES);
		memcpy(state->forced[i], words, strnlen(words, OCI_FORCED_BYTES - 1));
		if (state->team)
			force(state, i);
	}
}

void oci_pmpi_forced_apply(struct oci_pmpi_comm *state)
{
	for (int i = 0; i < OC_COLLECTIVES; i++)
		if (*state->forced[i])
			force(state, i);
}

void oci_pmpi_forced_copy(const struct oci_pmpi_comm *state, struct oc_team *team)
{
	/* What is wrong with a word was said when the communicator got it. */
	for (int i = 0; i < OC_COLLECTIVES; i++)
		if (*state->forced[i])
			oc_team_force(team, oci_collective_name(i), state->forced[i]);
}

/* The info keys of a communicator, which are there from its first call on. */
static int take_info(int error, const MPI_Comm *comm, MPI_Info info)
{
	struct oci_pmpi_comm *state = error ? NULL : oci_pmpi_comm_get(*comm);

	if (state)
		oci_pmpi_forced_take(state, info);
	return error;
}

int oci_pmpi_Comm_dup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm *made)
{
	return take_info(OCI_HELPED(PMPI(Comm_dup_with_info)(comm, info, made)), made, info);
}

int oci_pmpi_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *made)
{
	return take_info(OCI_HELPED(PMPI(Comm_split_type)(comm, type, key, info, made)), made,
			 info);
}

/* The MPI names the communicator at once, and its object needs nothing of what is still to be
 * agreed on. */
int oci_pmpi_Comm_idup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm *made, MPI_Request *request)
{
	return take_info(PMPI(Comm_idup_with_info)(comm, info, made, request), made, info);
}

int oci_pmpi_Comm_set_info(MPI_Comm comm, MPI_Info info)
{
	return take_info(PMPI(Comm_set_info)(comm, info), &comm, info);
}
