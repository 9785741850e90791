/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Nonblocking and persistent calls that the engine runs, from their start to the end of what the
 * program holds for them. Each front end has one of these in its own request.
 *
 * Operations start and end in any thread. One thread at a time looks at those under way, without
 * waiting for that: who does not get the turn leaves the work to it. The program is told of an end
 * by whoever comes, not from inside the engine, and with nothing held: to give back a type may call
 * functions of the program, which may call us.
 */
#ifndef OC_MPI_REQUEST_H
#define OC_MPI_REQUEST_H

#include "common/comm.h"

#include <pthread.h>

struct oci_mpi_request {
	/* Among those under way, in the order of their starts; then among those of which the
	 * program is to be told; then among those that have ended but cannot go yet. */
	struct oci_mpi_request *next;
	struct oci_mpi_comm *comm;
	/* The communicator's; of a persistent one its own, or NULL: it has nothing to do. */
	struct oc_team *team;
	struct oc_request *engine;
	/* In two levels instead (levels/): what it goes by, and its number there; of a persistent
	 * one its own. */
	struct oci_mpi_lane *lane;
	uint64_t ticket;
	bool awaited; /* by who started it: nobody is told */
	int error;    /* of the run that is over */
	bool persistent;
	/* With the lock of request.c: */
	bool active;
	bool freed;	  /* the program has it no more */
	uint32_t telling; /* how many threads are telling the program of an end */
	struct oci_mpi_operation operation;
};

/* Whether threads of this process may be inside at the same time: else nothing is locked. Written
 * while there is one thread. */
extern bool oci_mpi_threads;
void oci_mpi_set_threads(bool many);

static inline void oci_mpi_lock(pthread_mutex_t *mutex)
{
	if (oci_mpi_threads)
		pthread_mutex_lock(mutex);
}

static inline void oci_mpi_unlock(pthread_mutex_t *mutex)
{
	if (oci_mpi_threads)
		pthread_mutex_unlock(mutex);
}

/* ---- calls.c ----------------------------------------------------------------------------------
 */

/*
 * A nonblocking call on a communicator with a team: 0: it is to be added to those under way; 1:
 * over, with an MPI error code or MPI_SUCCESS; OC_HAND_BACK: the MPI's, which has been counted.
 * `request` NULL: this rank has no memory for one. The others are told, where they would wait.
 */
int oci_mpi_start(struct oci_mpi_comm *self, struct oci_mpi_request *request,
		  const struct oci_mpi_call *call, int *error);
/* The same of a part of such a call, whose types and arrays stay until it is over. */
int oci_mpi_start_part(struct oci_mpi_comm *self, struct oci_mpi_request *request,
		       const struct oci_mpi_call *part, int *error);
/* What a run came to that the engine has ended with 1 or -errno: an MPI error code. */
int oci_mpi_outcome(struct oci_mpi_request *request, int result);
/* A run of a persistent one. Results likewise, but never handed back. */
int oci_mpi_request_start(struct oci_mpi_request *request, int *error);
/*
 * The _init call of a persistent one: 0: the engine runs it, on all members alike; OC_HAND_BACK;
 * -ENOMEM. `request` as above.
 *
 * Members need not start their persistent calls in one order: what matches is the order of the
 * _init calls. The engine counts the operations of a team, so each persistent call has a team of
 * its own (7.6 KiB a rank in shared memory), also where the program asserts one order: what is
 * forced on the communicator later must not reach it. The _init call, which MPI lets wait for the
 * other members, makes it. There it is known for all runs whether they are the engine's.
 */
int oci_mpi_init(struct oci_mpi_comm *self, struct oci_mpi_request *request,
		 const struct oci_mpi_call *call);

/* ---- levels/start.c ---------------------------------------------------------------------------
 *
 * Both on a communicator that spans nodes (docs/adr/0029). As oci_mpi_start() and oci_mpi_init().
 */
int oci_mpi_levels_start(struct oci_mpi_comm *self, struct oci_mpi_request *request,
			 const struct oci_mpi_call *call, int *error);
int oci_mpi_levels_init(struct oci_mpi_comm *self, struct oci_mpi_request *request,
			const struct oci_mpi_call *call);
/* A run of a persistent one. */
void oci_mpi_levels_start_again(struct oci_mpi_request *request);
/* As far as it goes without waiting. True: it is over, request->error says how. */
bool oci_mpi_levels_step(struct oci_mpi_request *request);
/* What a persistent one has for itself. */
void oci_mpi_levels_end(struct oci_mpi_request *request);

/* ---- request.c --------------------------------------------------------------------------------
 */

/* One of nothing yet, for a call of a communicator with a team, or an _init call. */
void oci_mpi_request_open(struct oci_mpi_request *request, struct oci_mpi_comm *comm,
			  bool persistent);
/* To those under way. */
void oci_mpi_request_add(struct oci_mpi_request *request);
/* The same of one that the program does not have, until it is over. */
void oci_mpi_request_await(struct oci_mpi_request *request);
/* A run is over: the program is told. The request may be gone afterwards. */
void oci_mpi_request_finish(struct oci_mpi_request *request, int error);
/* The program has freed it, or is about to: it goes when its run is over. */
void oci_mpi_request_free(struct oci_mpi_request *request);
bool oci_mpi_request_is_active(const struct oci_mpi_request *request);

/* Some are under way. */
bool oci_mpi_outstanding(void);
/* Or to be told of, or to be let go: without any, oci_mpi_requests_progress() does nothing. */
bool oci_mpi_requests_pending(void);
/* Looks at all of them; also from inside the engine, where those in two levels alone may want it.
 */
void oci_mpi_requests_step(void);
void oci_mpi_requests_step_levels(void);
/* And tells the program, and lets go what has ended; not from inside the engine. How many were
 * over. */
int oci_mpi_requests_progress(void);
/* That last part alone, as progress may never be called where all are over as soon as begun. */
void oci_mpi_requests_let_go(void);
void oci_mpi_requests_stop(void); /* in MPI_Finalize */

/* ---- what each front end does -----------------------------------------------------------------
 */

/* One of the communicator's is under way (1); the program has been told of it (-1). */
void oci_port_outstanding(struct oci_mpi_comm *comm, int change);
/* Tells the program, or, where that has freed it, what else has to know. */
void oci_port_request_complete(struct oci_mpi_request *request, int error, bool freed);
/* It is over, freed, and nobody comes to it any more: gives it back. False: not yet, ask again. */
bool oci_port_request_end(struct oci_mpi_request *request);

#endif
