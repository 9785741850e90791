/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A communicator whose collectives the engine may serve: its team, and its calls in all three
 * forms. Each front end has one of these in its own object of a communicator.
 */
#ifndef OC_MPI_COMM_H
#define OC_MPI_COMM_H

#include "common/operation.h"

/* Why calls of a refused communicator are handed back; as the engine says it. */
#define OCI_MPI_REFUSED "the ranks could not form a team"

/*
 * Room for the words of an info key that forces an algorithm, kept without any allocation, as a
 * rank that lacks them would go another way than the others. All that are valid fit.
 */
#define OCI_FORCED_BYTES 48

struct oci_mpi_comm {
	MPI_Comm comm;
	uint32_t rank, size;
	struct oc_team *team; /* ready; NULL: not made yet, or refused */
	bool making;	      /* under way, in a call of this rank */
	bool refused;	      /* there will be none, on any member */
	bool spans;	      /* its members are on several nodes: it has levels, no team */
	struct oci_mpi_levels *levels; /* levels/; as the team */
	bool wants_lanes;	       /* for its nonblocking calls: in its next blocking one */
	bool quiet;		       /* what is wrong with its words another says */
	const uint32_t *names;	       /* of its ranks in the program's communicator; NULL: it is */
	const char *why;	       /* the reason for which it has none; a literal */
	struct oci_mpi_graph *graph;   /* NULL: not asked for yet, or there is none */
	char forced[OC_COLLECTIVES][OCI_FORCED_BYTES]; /* the words of info keys; "": none */
};

/* Of one with a topology: who is whose neighbor. NULL: no memory to know it. */
static inline const struct oci_mpi_graph *oci_mpi_graph(struct oci_mpi_comm *self)
{
	if (!self->graph)
		oci_mpi_graph_create(&self->graph, self->comm);
	return self->graph;
}

/* ---- team.c -----------------------------------------------------------------------------------
 *
 * Under docs/adr/0020: the team is made in the first call that may wait for all members, a blocking
 * collective or the _init call of a persistent one, which all of them are in.
 */

/* ONECOPY says that this process does not take part. */
bool oci_mpi_switched_off(void);
/* A new team of the members, that is ready; by all of them. NULL: refused, on all alike. `able`:
 * this rank has memory for what the team is for. */
struct oc_team *oci_mpi_team_make(struct oci_mpi_comm *self, bool able);
struct oc_team *oci_mpi_team_first(struct oci_mpi_comm *self);

/* The communicator's team, for a call that may wait; NULL: there is none, on all members alike. */
static inline struct oc_team *oci_mpi_team(struct oci_mpi_comm *self)
{
	return OCI_LIKELY(self->team) ? self->team : oci_mpi_team_first(self);
}

/* ---- forced.c ---------------------------------------------------------------------------------
 *
 * Algorithms forced on one communicator by its info keys onecopy_NAME, with the same words at the
 * same place among the collectives of all members.
 */
extern char oci_mpi_info_keys[OC_COLLECTIVES][32]; /* not const, as Open MPI takes them so */

/* The communicator has been given words for a collective, now or before. */
void oci_mpi_force(struct oci_mpi_comm *self, int collective, const char *words);
/* All of them, on a team of the communicator. `warn`: of wrong ones. */
void oci_mpi_force_team(const struct oci_mpi_comm *self, struct oc_team *team, bool warn);

/* ---- calls.c ----------------------------------------------------------------------------------
 */

/*
 * A blocking call, which every member makes: MPI_SUCCESS; OC_HAND_BACK: it is the MPI's, which has
 * been counted; or an MPI error code.
 */
int oci_mpi_run(struct oci_mpi_comm *self, const struct oci_mpi_call *call);
/* In the statistics, as handed back. The reason: a literal. */
void oci_mpi_count_back(const struct oci_mpi_call *call, const char *reason);

/* ---- levels/ ----------------------------------------------------------------------------------
 *
 * Blocking collectives (the others: request.h) of a communicator that spans nodes, all of whose
 * members take part, in two levels (docs/adr/0029). As oci_mpi_run().
 */
int oci_mpi_levels_run(struct oci_mpi_comm *self, const struct oci_mpi_call *call);
/* Words for a collective hold for the nodes' teams, too. */
void oci_mpi_levels_force(struct oci_mpi_comm *self, int collective);
/* With the communicator. */
void oci_mpi_levels_free(struct oci_mpi_comm *self);

/* ---- failure.c --------------------------------------------------------------------------------
 */

/* -errno of the engine as an MPI error code, whose string is the engine's sentence. */
int oci_mpi_failure(const struct oc_team *team, int error);
/* One that stands for a sentence of ours. */
int oci_mpi_failure_as(const char *sentence);

/* ---- the way of every blocking call -----------------------------------------------------------
 */

/* What is handed back as there is no team: counted; OC_HAND_BACK. */
int oci_mpi_refuse(const struct oci_mpi_comm *self, enum oc_collective collective);

/*
 * As oci_mpi_run(), of a call that is ready. `prepared`: what readying this rank's buffers came to,
 * 0 or -errno; where that failed, the others are told.
 */
static inline int oci_mpi_run_engine(struct oci_mpi_comm *self, const struct oc_call *call,
				     int prepared)
{
	int error;

	if (OCI_UNLIKELY(!oci_mpi_team(self)))
		return oci_mpi_refuse(self, call->collective);
	error = OCI_LIKELY(!prepared) ? oc_collective(self->team, call) :
					oc_team_abandon(self->team, call, prepared);
	return OCI_LIKELY(error >= 0) ? error : oci_mpi_failure(self->team, error);
}

#endif
