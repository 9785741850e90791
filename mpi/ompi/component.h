/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the files of the Open MPI component share.
 *
 *   component.c    what Open MPI loads: version check, parameters, open and close
 *   presence.c     which processes of the job have the component in use
 *   module.c       one object per communicator: selection, the functions below us, its team
 *   bootstrap.c    how the members of a future team reach each other: point-to-point messages
 *   calls.c        what Open MPI calls: each collective in its three forms
 *   blocking.c     a blocking call run by the engine
 *   request.h      nonblocking and persistent calls
 *   number.c       the numbers that nonblocking calls have in the modules below us
 *   previous.c     the same calls of the modules below us
 *   neighbor.c     neighbourhood collectives, which are not served
 *   port.c         Open MPI's datatypes and operations, for mpi/common
 *   forced.c       algorithms that a communicator's info keys ask for
 *   failure.c      an engine's error as an MPI error code with the sentence
 */
#ifndef OC_OMPI_COMPONENT_H
#define OC_OMPI_COMPONENT_H

#include "ompi_config.h"

#include "mpi.h"
#include "ompi/communicator/communicator.h"
#include "ompi/datatype/ompi_datatype.h"
#include "ompi/mca/coll/base/base.h"
#include "ompi/mca/coll/coll.h"
#include "ompi/op/op.h"
#include "ompi/request/request.h"

#include <onecopy/onecopy.h>
#include <stdbool.h>
#include <stddef.h>

#include "common/later.h"
#include "common/operation.h"
#include "common/say.h"
#include "common/signature.h"

#if OMPI_MAJOR_VERSION != 4 || OMPI_MINOR_VERSION != 1
#error "this component is written for the internal interfaces of Open MPI 4.1"
#endif

/* Every collective that we take part in; X(name) names coll_NAME, coll_iNAME, coll_NAME_init. */
/* clang-format off */
#define OCI_OMPI_COLLECTIVES(X) OC_FUNCTION_ROWS(OCI_OMPI_NAME, X)
#define OCI_OMPI_NONBLOCKING(X) OC_FUNCTION_ROWS(OCI_OMPI_NAME_I, X)
#define OCI_OMPI_PERSISTENT(X) OC_FUNCTION_ROWS(OCI_OMPI_NAME_INIT, X)
#define OCI_OMPI_NAME(X, ID, name, ...) X(name)
#define OCI_OMPI_NAME_I(X, ID, name, ...) X(i##name)
#define OCI_OMPI_NAME_INIT(X, ID, name, ...) X(name##_init)
/* Never served, but they have a place among the nonblocking calls. */
#define OCI_OMPI_NEIGHBORS(X) \
	X(neighbor_allgather) X(neighbor_allgatherv) X(neighbor_alltoall) X(neighbor_alltoallv) \
	X(neighbor_alltoallw) OCI_OMPI_NEIGHBORS_NUMBERED(X)
#define OCI_OMPI_NEIGHBORS_NUMBERED(X) \
	X(ineighbor_allgather) X(ineighbor_allgatherv) \
	X(ineighbor_alltoall) X(ineighbor_alltoallv) X(ineighbor_alltoallw) \
	X(neighbor_allgather_init) X(neighbor_allgatherv_init) X(neighbor_alltoall_init) \
	X(neighbor_alltoallv_init) X(neighbor_alltoallw_init)
#define OCI_OMPI_ALL(X) \
	OCI_OMPI_COLLECTIVES(X) OCI_OMPI_NONBLOCKING(X) OCI_OMPI_PERSISTENT(X) \
	OCI_OMPI_NEIGHBORS(X)
/* Those that take a number (number.c). */
#define OCI_OMPI_NUMBERED(X) \
	OCI_OMPI_NONBLOCKING(X) OCI_OMPI_PERSISTENT(X) OCI_OMPI_NEIGHBORS_NUMBERED(X)
/* clang-format on */

/* Open MPI 4.1 has no large counts. */
#define OCI_COUNT int
#define OCI_DISPL int

/* Who makes a nonblocking call. */
enum oci_ompi_caller { OCI_OMPI_PROGRAM, OCI_OMPI_OWN };

/* One communicator. */
struct oci_ompi_module {
	mca_coll_base_module_t super;
	/* The functions selected before ours, each with a reference to its module. */
	mca_coll_base_comm_coll_t previous;
	bool disabled;		/* coll_module_disable() was passed on */
	struct oc_team *team;	/* NULL until the first served collective */
	bool refused;		/* there was no memory for a team: there will be none */
	bool agreed;		/* the team is ready or refused; atomic */
	unsigned int undecided; /* requests that wait for that (start.c); atomic */
	uint64_t held;		/* the last look at them that found one of these */
	/* Bootstraps of this communicator take turns, in the order of their creation. */
	uint64_t bootstraps, bootstrapped;
	uint64_t messages;		  /* allgathers of theirs so far */
	uint32_t numbers[2];		  /* of calls so far, by oci_ompi_caller; atomic */
	int counting;			  /* whose the numbers are (number.c); atomic */
	opal_recursive_mutex_t numbering; /* of c_nbc_tag, while the modules below us read it */
	uint32_t forced_seen;		  /* of oci_ompi_forced_generation */
	char forced[OC_COLLECTIVES]
		   [OCI_FORCED_BYTES]; /* words of info keys, as applied; "": none */
};
/* Open MPI's object macros want a type of one word. */
typedef struct oci_ompi_module oci_ompi_module;
OBJ_CLASS_DECLARATION(oci_ompi_module);

typedef struct ompi_communicator_t oci_ompi_comm;
typedef struct ompi_datatype_t oci_ompi_type;

/* component.c */
extern int oci_ompi_priority;
/* Lets the MPI drive the engine and the engine drive the MPI; from the first served communicator.
 */
void oci_ompi_progress_start(void);

/* presence.c */
/* Tells the job's processes that this one takes part; in MPI_Init. False: it could not. */
bool oci_ompi_presence_publish(void);
/* Whether all members of a communicator inside the job and node take part; alike on all. */
bool oci_ompi_presence_everywhere(oci_ompi_comm *comm);

/* module.c */
/* Makes the team of a communicator; 0, or OC_HAND_BACK: there will be none, on any member. */
int oci_ompi_team(struct oci_ompi_module *module, oci_ompi_comm *comm);
mca_coll_base_module_t *oci_ompi_comm_query(oci_ompi_comm *comm, int *priority);
/*
 * Runs a call that every member makes; MPI_SUCCESS, OC_HAND_BACK or an Open MPI error. `prepared`:
 * what readying this rank's buffers came to, 0 or -errno; where that failed, the others are told.
 */
int oci_ompi_run(struct oci_ompi_module *module, oci_ompi_comm *comm, const struct oc_call *call,
		 int prepared);

/* bootstrap.c: the communicator is kept alive until the engine has released the bootstrap. */
int oci_ompi_bootstrap_create(struct oci_ompi_module *module, oci_ompi_comm *comm,
			      struct oc_bootstrap *bootstrap);
/* Instead, where there is no memory for a team: waits until the team is refused on all members. */
void oci_ompi_bootstrap_abstain(struct oci_ompi_module *module, oci_ompi_comm *comm);
/* This thread is inside the engine and now in the point-to-point layer. */
bool oci_ompi_bootstrap_sends(void);
/*
 * Gives back communicators whose bootstrap was released. Not from inside the engine: the last
 * reference destroys the communicator and with it a team.
 */
void oci_ompi_bootstrap_reap(void);
/* oc_team_destroy() from the destruction of the team's communicator. */
int oci_ompi_bootstrap_team_destroy(struct oc_team *team);

/* forced.c: algorithms that info keys of the communicator ask for. */
/* The collective's name in the statistics; a literal. */
extern uint32_t oci_ompi_forced_generation;
void oci_ompi_forced_subscribe(oci_ompi_comm *comm);
void oci_ompi_forced_apply(struct oci_ompi_module *module, oci_ompi_comm *comm);
/* Forces them on another team of the same communicator. */
void oci_ompi_forced_copy(struct oci_ompi_module *module, oci_ompi_comm *comm,
			  struct oc_team *team);

/* A key was set somewhere since this module looked last. */
static inline bool oci_ompi_forced_changed(const struct oci_ompi_module *module)
{
	return module->forced_seen !=
	       __atomic_load_n(&oci_ompi_forced_generation, __ATOMIC_RELAXED);
}

/* failure.c: -errno of the engine as a return value of a coll function. */
int oci_ompi_failure(const struct oc_team *team, int error);

/* calls.c, neighbor.c: fill in the functions of a module. */
void oci_ompi_serve(mca_coll_base_module_t *module);
void oci_ompi_serve_neighbors(mca_coll_base_module_t *module);

/* blocking.c: any blocking call; what Open MPI's function returns. */
int oci_ompi_blocking(struct oci_ompi_module *module, oci_ompi_comm *comm,
		      const struct oci_mpi_call *call);

/* start.c: any nonblocking call. */
int oci_ompi_start(struct oci_ompi_module *module, oci_ompi_comm *comm,
		   const struct oci_mpi_call *call, ompi_request_t **request);
/*
 * One that Open MPI makes for itself when it creates a communicator, from inside its progress and
 * not at the same place among the program's calls on all members: never the engine's.
 */
int oci_ompi_start_own(struct oci_ompi_module *module, oci_ompi_comm *comm,
		       const struct oci_mpi_call *call, ompi_request_t **request);
/* A nonblocking call that is not the engine's, in its place among those of the communicator. */
int oci_ompi_start_later(struct oci_ompi_module *module, oci_ompi_comm *comm,
			 const struct oci_mpi_later *call, ompi_request_t **request);
/* Until no call waits for the communicator's team. Only in calls that may wait for the members. */
void oci_ompi_await_decided(struct oci_ompi_module *module);
/* number.c: the next number; of the program's calls each takes one, in their order. */
uint32_t oci_ompi_number(struct oci_ompi_module *module, enum oci_ompi_caller caller);
/* Around a call of the modules below us: it has that number. */
void oci_ompi_number_begin(struct oci_ompi_module *module, oci_ompi_comm *comm, uint32_t number);
void oci_ompi_number_end(struct oci_ompi_module *module);

/* persistent.c: any persistent call. */
int oci_ompi_init(struct oci_ompi_module *module, oci_ompi_comm *comm,
		  const struct oci_mpi_call *call, struct ompi_info_t *info,
		  ompi_request_t **request);

/* previous.c: the call as it was made, to the functions that were selected before ours. */
int oci_ompi_previous(struct oci_ompi_module *module, oci_ompi_comm *comm,
		      const struct oci_mpi_call *call);
int oci_ompi_previous_start(struct oci_ompi_module *module, oci_ompi_comm *comm,
			    const struct oci_mpi_call *call, ompi_request_t **request);
int oci_ompi_previous_init(struct oci_ompi_module *module, oci_ompi_comm *comm,
			   const struct oci_mpi_call *call, struct ompi_info_t *info,
			   ompi_request_t **request);

/* port.c: one element directly follows the other and neither has a gap. */
static inline bool oci_ompi_dense(const oci_ompi_type *type)
{
	return type->super.flags & OPAL_DATATYPE_FLAG_NO_GAPS;
}

#endif
