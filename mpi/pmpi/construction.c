/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls that make or end communicators.
 *
 * Most wait for all members and have no nonblocking twin. A barrier comes before them, in which we
 * drive what is outstanding: who is through it finds all members inside the call or on their way
 * into it, and none of them waits for us any more. It is left out where nothing can be outstanding
 * on any member, which all know alike. Processes of other jobs may come late, and may not have this
 * library: with them there is no barrier, and a helper drives, where something is outstanding here.
 */
#include "pmpi.h"

#include <stdlib.h>

/* Whether the members of a communicator may need us while they, or we, are inside a call. */
static bool concerned(const struct oci_pmpi_comm *state)
{
	return state && oci_pmpi_job.together && state->known && (state->inter || state->size > 1);
}

bool oci_pmpi_meet_on(MPI_Comm comm)
{
	MPI_Request all;

	if (!concerned(oci_pmpi_comm_get(comm)))
		return false;
	if (PMPI(Ibarrier)(comm, &all) == MPI_SUCCESS)
		oci_pmpi_await(&all, MPI_STATUS_IGNORE);
	return true;
}

bool oci_pmpi_enter(MPI_Comm comm)
{
	return !oci_pmpi_meet_on(comm) && oci_pmpi_help_on(comm);
}

/* `from`: the communicator whose members all make the call. */
#define MAKE(name, from, parameters, arguments)                                 \
	int oci_pmpi_##name(OCI_LIST parameters)                                \
	{                                                                       \
		bool helped = oci_pmpi_enter(from);                             \
                                                                                \
		return oci_pmpi_helped(helped, PMPI(name)(OCI_LIST arguments)); \
	}

/* clang-format off */
MAKE(Comm_dup, comm, (MPI_Comm comm, MPI_Comm *made), (comm, made))
MAKE(Comm_split, comm, (MPI_Comm comm, int color, int key, MPI_Comm *made),
     (comm, color, key, made))
MAKE(Comm_create, comm, (MPI_Comm comm, MPI_Group group, MPI_Comm *made), (comm, group, made))
MAKE(Intercomm_merge, comm, (MPI_Comm comm, int high, MPI_Comm *made), (comm, high, made))
MAKE(Cart_create, comm,
     (MPI_Comm comm, int ndims, const int dims[], const int periods[], int reorder,
      MPI_Comm *made),
     (comm, ndims, dims, periods, reorder, made))
MAKE(Cart_sub, comm, (MPI_Comm comm, const int remain[], MPI_Comm *made), (comm, remain, made))
MAKE(Graph_create, comm,
     (MPI_Comm comm, int nodes, const int indx[], const int edges[], int reorder,
      MPI_Comm *made),
     (comm, nodes, indx, edges, reorder, made))
MAKE(Dist_graph_create, comm,
     (MPI_Comm comm, int n, const int sources[], const int degrees[], const int destinations[],
      const int weights[], MPI_Info info, int reorder, MPI_Comm *made),
     (comm, n, sources, degrees, destinations, weights, info, reorder, made))
MAKE(Dist_graph_create_adjacent, comm,
     (MPI_Comm comm, int in, const int sources[], const int inweights[], int out,
      const int destinations[], const int outweights[], MPI_Info info, int reorder,
      MPI_Comm *made),
     (comm, in, sources, inweights, out, destinations, outweights, info, reorder, made))
/* clang-format on */

/* Other processes take part that are no members. */
#define REACH(name, from, parameters, arguments)                                \
	int oci_pmpi_##name(OCI_LIST parameters)                                \
	{                                                                       \
		bool helped;                                                    \
                                                                                \
		oci_pmpi_meet_on(from);                                         \
		helped = oci_pmpi_help();                                       \
		return oci_pmpi_helped(helped, PMPI(name)(OCI_LIST arguments)); \
	}

/* clang-format off */
REACH(Comm_accept, comm,
      (const char *port, MPI_Info info, int root, MPI_Comm comm, MPI_Comm *made),
      (port, info, root, comm, made))
REACH(Comm_connect, comm,
      (const char *port, MPI_Info info, int root, MPI_Comm comm, MPI_Comm *made),
      (port, info, root, comm, made))
REACH(Comm_spawn, comm,
     (const char *command, char *argv[], int most, MPI_Info info, int root, MPI_Comm comm,
      MPI_Comm *made, int codes[]),
     (command, argv, most, info, root, comm, made, codes))
REACH(Comm_spawn_multiple, comm,
     (int count, char *commands[], char **argvs[], const int most[], const MPI_Info infos[],
      int root, MPI_Comm comm, MPI_Comm *made, int codes[]),
     (count, commands, argvs, most, infos, root, comm, made, codes))
REACH(Comm_join, MPI_COMM_SELF, (int fd, MPI_Comm *made), (fd, made))
/* clang-format on */

/* ---- with more to do --------------------------------------------------------------------------
 */

/* The info keys of a new communicator, which are there from the first call on. */
static void take_info(int error, MPI_Comm comm, MPI_Info info)
{
	struct oci_pmpi_comm *state = error ? NULL : oci_pmpi_comm_get(comm);

	if (state)
		oci_pmpi_forced_take(state, info);
}

int oci_pmpi_Comm_dup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm *made)
{
	bool helped = oci_pmpi_enter(comm);
	int error = oci_pmpi_helped(helped, PMPI(Comm_dup_with_info)(comm, info, made));

	take_info(error, error ? MPI_COMM_NULL : *made, info);
	return error;
}

int oci_pmpi_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *made)
{
	bool helped = oci_pmpi_enter(comm);
	int error = oci_pmpi_helped(helped, PMPI(Comm_split_type)(comm, type, key, info, made));

	take_info(error, error ? MPI_COMM_NULL : *made, info);
	return error;
}

int oci_pmpi_Comm_idup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm *made, MPI_Request *request)
{
	int error = PMPI(Comm_idup_with_info)(comm, info, made, request);

	/* The MPI names the communicator at once, and its object needs nothing of what is still to
	 * be agreed on. */
	take_info(error, error ? MPI_COMM_NULL : *made, info);
	return error;
}

int oci_pmpi_Comm_set_info(MPI_Comm comm, MPI_Info info)
{
	int error = PMPI(Comm_set_info)(comm, info);

	take_info(error, comm, info);
	return error;
}

/* Only the group's members make the call. Two groups of one process, in two threads, have two tags.
 */
int oci_pmpi_Comm_create_group(MPI_Comm comm, MPI_Group group, int tag, MPI_Comm *made)
{
	bool helped = !oci_pmpi_meet_members(group, (uint32_t)tag) && oci_pmpi_help_on(comm);

	return oci_pmpi_helped(helped, PMPI(Comm_create_group)(comm, group, tag, made));
}

int oci_pmpi_Comm_create_from_group(MPI_Group group, const char *words, MPI_Info info,
				    MPI_Errhandler handler, MPI_Comm *made)
{
	bool helped = !oci_pmpi_meet_members(group, oci_pmpi_meeting_hash(words)) &&
		      oci_pmpi_help();

	return oci_pmpi_helped(helped,
			       PMPI(Comm_create_from_group)(group, words, info, handler, made));
}

/* Both sides name the leaders in other orders: the one with the lower rank in the job goes first.
 */
int oci_pmpi_Intercomm_create_from_groups(MPI_Group local, int leader, MPI_Group remote,
					  int remote_leader, const char *words, MPI_Info info,
					  MPI_Errhandler handler, MPI_Comm *made)
{
	int lead[2] = { MPI_UNDEFINED, MPI_UNDEFINED };
	MPI_Group all;
	bool helped, met = false;

	if (oci_pmpi_job.active && local != MPI_GROUP_NULL && remote != MPI_GROUP_NULL) {
		PMPI(Group_translate_ranks)(local, 1, &leader, oci_pmpi_job.group, &lead[0]);
		PMPI(Group_translate_ranks)
		(remote, 1, &remote_leader, oci_pmpi_job.group, &lead[1]);
	}
	if (lead[0] != MPI_UNDEFINED && lead[1] != MPI_UNDEFINED &&
	    PMPI(Group_union)(lead[0] < lead[1] ? local : remote,
			      lead[0] < lead[1] ? remote : local, &all) == MPI_SUCCESS) {
		met = oci_pmpi_meet_members(all, oci_pmpi_meeting_hash(words));
		PMPI(Group_free)(&all);
	}
	helped = !met && oci_pmpi_help();
	return oci_pmpi_helped(helped, PMPI(Intercomm_create_from_groups)(local, leader, remote,
									  remote_leader, words,
									  info, handler, made));
}

/* The other side's leader in our job; MPI_UNDEFINED: of another one. Both leaders see it alike. */
static int world_leader(MPI_Comm peer_comm, int remote)
{
	int world = MPI_UNDEFINED, size = 0, inter = 0;
	MPI_Group group;

	if (peer_comm == MPI_COMM_NULL)
		return MPI_UNDEFINED;
	PMPI(Comm_test_inter)(peer_comm, &inter);
	if (inter)
		PMPI(Comm_remote_group)(peer_comm, &group);
	else
		PMPI(Comm_group)(peer_comm, &group);
	PMPI(Group_size)(group, &size);
	if (remote >= 0 && remote < size)
		PMPI(Group_translate_ranks)(group, 1, &remote, oci_pmpi_job.group, &world);
	PMPI(Group_free)(&group);
	return world;
}

/* The leader tells the others, whom its message also lets go on. */
static bool is_reached(struct oci_pmpi_comm *state, int leader, bool reached)
{
	MPI_Request told;

	if (concerned(state) && leader >= 0 && (uint32_t)leader < state->size &&
	    PMPI(Ibcast)(&reached, sizeof(reached), MPI_BYTE, leader, state->comm, &told) ==
		    MPI_SUCCESS)
		oci_pmpi_await(&told, MPI_STATUS_IGNORE);
	return reached;
}

/*
 * Each side meets, the leaders meet, and each leader tells its side; where the other leader is of
 * another job, they do not meet, and the side has helpers. The leaders' messages are not on the
 * program's communicator, where a receive from any rank with any tag would take them; their tag is
 * made of the program's, as two threads may be here, and is not that of an MPI_Comm_create_group.
 */
int oci_pmpi_Intercomm_create(MPI_Comm local, int leader, MPI_Comm peer_comm, int remote, int tag,
			      MPI_Comm *made)
{
	struct oci_pmpi_comm *state = oci_pmpi_comm_get(local);
	bool helped = false, reached;
	int other;

	/* The leaders decide alike, whoever else is on their sides. */
	if (state && oci_pmpi_job.together) {
		oci_pmpi_meet_on(local);
		other = MPI_UNDEFINED;
		if (state->rank == (uint32_t)leader)
			other = world_leader(peer_comm, remote);
		if (other != MPI_UNDEFINED)
			oci_pmpi_meeting_round(other, other,
					       oci_pmpi_meeting_tag(~(uint32_t)tag, false));
		reached = is_reached(state, leader, other != MPI_UNDEFINED);
		helped = !(reached && state->known) && oci_pmpi_help();
	}
	return oci_pmpi_helped(helped,
			       PMPI(Intercomm_create)(local, leader, peer_comm, remote, tag, made));
}

/* ---- ends -------------------------------------------------------------------------------------
 */

int oci_pmpi_Comm_free(MPI_Comm *comm)
{
	int error = PMPI(Comm_free)(comm);

	oci_pmpi_comm_reap();
	return error;
}

/* It waits until all that is outstanding on the communicator is over, ours too. */
int oci_pmpi_Comm_disconnect(MPI_Comm *comm)
{
	struct oci_pmpi_comm *state = comm ? oci_pmpi_comm_get(*comm) : NULL;
	uint32_t turns = 0;
	bool helped;
	int error;

	while (state && __atomic_load_n(&state->outstanding, __ATOMIC_ACQUIRE)) {
		oci_pmpi_drive_from_engine();
		oci_pmpi_drive();
		oci_pmpi_pause(&turns);
	}
	helped = comm && oci_pmpi_enter(*comm);
	error = oci_pmpi_helped(helped, PMPI(Comm_disconnect)(comm));
	oci_pmpi_comm_reap();
	return error;
}
