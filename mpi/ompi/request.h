/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Nonblocking and persistent calls that the engine runs: our own requests of Open MPI.
 *
 *   request.c     the objects: made, completed, freed
 *   outstanding.c those that are under way, and how progress finds them over
 *   start.c       one run; nonblocking calls
 *   persistent.c  persistent calls, each with a team of its own
 *
 * A request is touched by the thread that starts it, by the one that has the turn in outstanding.c,
 * and, once complete, by the thread that frees it.
 */
#ifndef OC_OMPI_REQUEST_H
#define OC_OMPI_REQUEST_H

#include "component.h"

#include "ompi/mca/coll/base/coll_base_util.h"

struct oci_ompi_request {
	/* MPI_Ixxx and MPIX_xxx_init keep what they retain in it, whosever the request is. */
	ompi_coll_base_nbc_request_t super;
	struct oci_ompi_request *next; /* of those under way; of those to be reused */
	oci_ompi_comm *comm;	       /* a reference, while it is not freed */
	/* The communicator's; of a persistent one its own, or NULL: it has nothing to do. */
	struct oc_team *team;
	struct oci_mpi_operation operation;
	struct oc_request *engine;
	bool settled, freed; /* with the lock of request.c */
	unsigned int rounds; /* spent among the dead */
};
typedef struct oci_ompi_request oci_ompi_request;
OBJ_CLASS_DECLARATION(oci_ompi_request);

/* request.c */
/* NULL: no memory. Holds a reference to the communicator. */
struct oci_ompi_request *oci_ompi_request_new(oci_ompi_comm *comm, struct oc_team *team,
					      bool persistent);
/* Instead of giving it to the program. */
void oci_ompi_request_discard(struct oci_ompi_request *request);
/* Its run is over, with an error code of MPI or Open MPI. It may be gone afterwards. */
void oci_ompi_request_complete(struct oci_ompi_request *request, int error);
/* Gives back what was freed; not from inside the engine. */
void oci_ompi_request_reap(void);
/* At the end of the process. */
void oci_ompi_request_drain(void);

/* outstanding.c */
void oci_ompi_outstanding_add(struct oci_ompi_request *request);
/* Looks at all of them; returns how many are over. Any thread. */
int oci_ompi_outstanding_progress(void);

/* start.c */
/*
 * Asks the engine for a run of an opened operation: 0 it is among the outstanding; 1 done;
 * OC_HAND_BACK; or -errno.
 */
int oci_ompi_request_ask(struct oci_ompi_request *request);
/* Completes a run that was over at once, with the engine's 1 or -errno. */
void oci_ompi_request_settle(struct oci_ompi_request *request, int result);
/* A look at one that is under way; true: it is over, with *error. */
bool oci_ompi_request_look(struct oci_ompi_request *request, int *error);

#endif
