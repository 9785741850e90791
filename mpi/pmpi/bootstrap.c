/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The creation of a team, in a call that all members are inside: a blocking collective, or the
 * _init call of a persistent one. So the bootstrap's allgather is the MPI's own, on the program's
 * communicator (a duplicate would be one of MPICH's 2048 context ids), at the same place among its
 * collectives. They are nonblocking ones on all members, as blocking ones do not match these, and
 * as this process may be needed meanwhile for something else of ours.
 *
 * A member may lack the memory for its part. So all members first find out whether one does; the
 * team is then refused by all. From there on nothing is allocated here: the MPI gathers from the
 * engine's memory into the engine's.
 */
#include "pmpi.h"

#include <errno.h>

struct gather {
	MPI_Comm comm;
	enum { IDLE, WANTED, UNDER_WAY } state;
	const void *send;
	void *all;
	size_t bytes;
	MPI_Request request;
	int result; /* as allgather_test() returns it */
};

static int allgather_start(void *context, const void *send, size_t bytes, void *receive)
{
	struct gather *g = context;

	if (bytes > INT32_MAX)
		return -EMSGSIZE;
	g->send = send;
	g->all = receive;
	g->bytes = bytes;
	g->result = 0;
	g->state = WANTED;
	return 0;
}

static int allgather_test(void *context)
{
	const struct gather *g = context;

	return g->result;
}

/* The MPI is called here and not from inside the engine, which has its lock. */
static void gather_step(struct gather *g)
{
	int error = MPI_SUCCESS, done = 0;

	if (g->state == WANTED)
		error = PMPI(Iallgather)(g->send, (int)g->bytes, MPI_BYTE, g->all, (int)g->bytes,
					 MPI_BYTE, g->comm, &g->request);
	g->state = UNDER_WAY;
	if (!error)
		error = PMPI(Test)(&g->request, &done, MPI_STATUS_IGNORE);
	if (error || done) {
		g->result = error ? -EIO : 1;
		g->state = IDLE;
	}
}

/* True: it is ready; false: refused, on all members alike. */
static bool bring_up(struct oc_team *team, struct gather *g)
{
	uint32_t turns = 0;
	int result;

	while (!(result = oc_team_progress(team))) {
		if (g->state != IDLE)
			gather_step(g);
		else
			oci_pmpi_drive_from_engine();
		oci_pmpi_drive();
		oci_pmpi_pause(&turns);
	}
	return result > 0;
}

static bool all_have_memory(MPI_Comm comm, bool mine)
{
	int have = mine, all = 0;
	MPI_Request request;

	return PMPI(Iallreduce)(&have, &all, 1, MPI_INT, MPI_MIN, comm, &request) == MPI_SUCCESS &&
	       oci_pmpi_await(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS && all;
}

void oci_pmpi_team_abstain(struct oci_pmpi_comm *state)
{
	all_have_memory(state->comm, false);
}

struct oc_team *oci_pmpi_team_create(struct oci_pmpi_comm *state)
{
	struct gather gather = { .comm = state->comm };
	struct oc_bootstrap bootstrap = {
		.rank = state->rank,
		.size = state->size,
		.node_ranks = oci_pmpi_job.node_ranks,
		.context = &gather,
		.allgather_start = allgather_start,
		.allgather_test = allgather_test,
	};
	struct oc_team *team;
	bool mine = !oc_team_create(&team, &bootstrap);

	if (all_have_memory(state->comm, mine)) {
		if (bring_up(team, &gather))
			return team;
	} else {
		oci_mpi_info(
			"collectives of a communicator stay with the MPI: a rank has no memory for "
			"a team");
	}
	if (mine)
		oc_team_destroy(team);
	return NULL;
}
