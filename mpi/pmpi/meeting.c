/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Barriers and tokens of messages on our duplicate of MPI_COMM_WORLD, for calls that wait for other
 * processes and have no nonblocking twin: who waits here drives, who waits in the MPI does not.
 *
 * The lower half of the tags is for groups, the upper one for windows; the last one is the probes'.
 */
#include "pmpi.h"

#include <stdlib.h>

/* FNV-1a. */
uint32_t oci_pmpi_meeting_hash(const char *words)
{
	uint32_t hash = 2166136261u;

	for (; words && *words; words++)
		hash = (hash ^ (unsigned char)*words) * 16777619u;
	return hash;
}

int oci_pmpi_meeting_tag(uint32_t hash, bool of_window)
{
	uint32_t half = (uint32_t)oci_pmpi_job.tags / 2;

	return (int)((of_window ? half : 0) + hash % (half - 2));
}

int oci_pmpi_meeting_round(int to, int from, int tag)
{
	MPI_Request send, receive;
	int error = PMPI(Irecv)(NULL, 0, MPI_BYTE, from, tag, oci_pmpi_job.world, &receive);

	if (!error)
		error = PMPI(Isend)(NULL, 0, MPI_BYTE, to, tag, oci_pmpi_job.world, &send);
	if (!error)
		error = oci_pmpi_await(&receive, MPI_STATUS_IGNORE);
	if (!error)
		error = oci_pmpi_await(&send, MPI_STATUS_IGNORE);
	return error;
}

/* In round k a message goes to rank + 2^k and one comes from rank - 2^k: another rank each time. */
int oci_pmpi_meeting(const int *ranks, int size, int me, int tag)
{
	int error = MPI_SUCCESS;

	for (int far = 1; far < size && !error; far *= 2)
		error = oci_pmpi_meeting_round(ranks[(me + far) % size],
					       ranks[(me + size - far) % size], tag);
	return error;
}

int *oci_pmpi_meeting_ranks(MPI_Group group, int *size)
{
	int *ranks;
	bool known;

	*size = 0;
	if (!oci_pmpi_job.active || !oci_pmpi_job.together || group == MPI_GROUP_NULL)
		return NULL;
	PMPI(Group_size)(group, size);
	ranks = malloc((size_t)*size * sizeof(*ranks) + 1);
	known = ranks && oci_pmpi_world_ranks(group, *size, ranks);
	for (int r = 0; known && r < *size; r++)
		known = ranks[r] != MPI_UNDEFINED;
	if (known)
		return ranks;
	free(ranks);
	return NULL;
}

/* Are all members of our job? They find out alike. */
static bool all_ours(MPI_Group group, int size)
{
	int world;

	for (int r = 0; r < size; r++) {
		world = MPI_UNDEFINED;
		PMPI(Group_translate_ranks)(group, 1, &r, oci_pmpi_job.group, &world);
		if (world == MPI_UNDEFINED)
			return false;
	}
	return true;
}

/*
 * As oci_pmpi_meeting(), but without any memory of its own: there is nothing before this in which
 * a member could tell the others that it has none, and they would wait for it.
 */
bool oci_pmpi_meet_members(MPI_Group group, uint32_t hash)
{
	int size = 0, me = MPI_UNDEFINED, error = MPI_SUCCESS;

	if (!oci_pmpi_job.active || !oci_pmpi_job.together || group == MPI_GROUP_NULL)
		return false;
	PMPI(Group_size)(group, &size);
	PMPI(Group_rank)(group, &me);
	if (me == MPI_UNDEFINED || !all_ours(group, size))
		return false;
	for (int far = 1; far < size && !error; far *= 2) {
		int members[2] = { (me + far) % size, (me + size - far) % size };
		int world[2];

		error = PMPI(Group_translate_ranks)(group, 2, members, oci_pmpi_job.group, world);
		if (!error)
			error = oci_pmpi_meeting_round(world[0], world[1],
						       oci_pmpi_meeting_tag(hash, false));
	}
	return true;
}
