/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Nonblocking and persistent calls: our own requests of Open MPI.
 *
 *   request.c     the objects: made, completed, freed
 *   outstanding.c those that are under way, and how progress finds them over
 *   start.c       one run: asked of the engine or handed back; nonblocking calls
 *   persistent.c  persistent calls, each with a team of its own
 *
 * A request is touched by the thread that starts it, by the one that has the turn in outstanding.c,
 * and, once complete, by the thread that frees it.
 */
#ifndef OC_OMPI_REQUEST_H
#define OC_OMPI_REQUEST_H

#include "component.h"

#include "ompi/mca/coll/base/coll_base_util.h"

enum oci_ompi_phase {
	OCI_OMPI_IDLE,
	OCI_OMPI_RUNNING, /* in the engine */
	OCI_OMPI_WAITING, /* handed back, but earlier ones may come to be handed back, too */
	OCI_OMPI_HANDED,  /* `inner` is under way */
};

struct oci_ompi_request {
	/* MPI_Ixxx and MPIX_xxx_init keep what they retain in it, whosever the request is. */
	ompi_coll_base_nbc_request_t super;
	struct oci_ompi_request *next; /* of those under way; of those to be reused */
	struct oci_ompi_module *module;
	oci_ompi_comm *comm; /* a reference, while it is not freed */
	struct oci_mpi_operation operation;
	struct oci_mpi_later *later; /* in place of the operation, which is not opened, or NULL */
	enum oci_mpi_path path;
	const char *reason; /* of OCI_MPI_BACK */
	enum oci_ompi_phase phase;
	struct oc_request *engine;
	ompi_request_t *inner;		  /* of the module below us */
	struct oci_ompi_channel *channel; /* of a persistent one; NULL: the communicator's team */
	uint32_t number;		  /* among the communicator's nonblocking calls */
	/* Started while the team was under creation, and may be handed back. Counted by module. */
	bool undecided;
	bool settled, freed; /* with the lock of request.c */
	unsigned int rounds; /* spent among the dead */
};
typedef struct oci_ompi_request oci_ompi_request;
OBJ_CLASS_DECLARATION(oci_ompi_request);

/* request.c */
/* NULL: no memory. Holds a reference to the communicator. */
struct oci_ompi_request *oci_ompi_request_new(struct oci_ompi_module *module, oci_ompi_comm *comm,
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
/* Looks at all of them; returns how many are over. Any thread, also from a waiting engine. */
int oci_ompi_outstanding_progress(void);
/* Are there any? */
bool oci_ompi_outstanding(void);

/* start.c */
/*
 * Asks the engine for a run of an opened operation: 0 it is among the outstanding; 1 done;
 * OC_HAND_BACK; or -errno.
 */
int oci_ompi_request_ask(struct oci_ompi_request *request);
/* Completes a run that was over at once, with the engine's 1 or -errno. */
int oci_ompi_request_settle(struct oci_ompi_request *request, int result);
/* Starts the run below us: 0 or an error code. */
int oci_ompi_request_hand_over(struct oci_ompi_request *request);
/* A look at one that is under way; true: it is over, with *error. `pass` numbers the looks. */
bool oci_ompi_request_look(struct oci_ompi_request *request, uint64_t pass, int *error);

/* persistent.c */
/* A team of one persistent call. */
struct oci_ompi_channel {
	struct oc_team *team;
	struct oci_ompi_module *module;
	struct oci_ompi_channel *next; /* of those whose team is under creation */
	bool growing, unwanted;
};
extern unsigned int oci_ompi_growing; /* channels on that list; atomic */
/* Drives their creation; by whoever has the turn. */
void oci_ompi_channel_grow(void);
void oci_ompi_channel_release(struct oci_ompi_channel *channel);
/* The communicator is gone: nothing of it may be driven any more. */
void oci_ompi_channel_forget(struct oci_ompi_module *module);

#endif
