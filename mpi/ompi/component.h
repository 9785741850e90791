/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the files of the Open MPI component share.
 *
 *   component.c    what Open MPI loads: version check, parameters, open and close
 *   presence.c     which processes of the job have the component in use
 *   module.c       one object per communicator: selection, the functions below us, its team
 *   bootstrap.c    how a team is made, by collectives of the modules below us
 *   calls.c        what Open MPI calls: each collective in its three forms
 *   blocking.c     a blocking call run by the engine
 *   request.h      nonblocking and persistent calls
 *   previous.c     the same calls of the modules below us
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
#define OCI_OMPI_ALL(X) \
	OCI_OMPI_COLLECTIVES(X) OCI_OMPI_NONBLOCKING(X) OCI_OMPI_PERSISTENT(X)
/* clang-format on */

/* Open MPI 4.1 has no large counts. */
#define OCI_COUNT int
#define OCI_DISPL int

/* Why calls of a refused communicator are handed back; as the engine says it. */
#define OCI_OMPI_REFUSED "the ranks could not form a team"

/* One communicator. */
struct oci_ompi_module {
	mca_coll_base_module_t super;
	/* The functions selected before ours, each with a reference to its module. */
	mca_coll_base_comm_coll_t previous;
	bool disabled;	      /* coll_module_disable() was passed on */
	struct oc_team *team; /* ready; NULL: not made yet, or refused */
	bool making;	      /* under way, in a call of this rank */
	bool refused;	      /* there will be none, on any member */
	uint32_t forced_seen; /* of oci_ompi_forced_generation */
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
/*
 * The team of a communicator, made in the first of these calls, which waits for all members; 0, or
 * OC_HAND_BACK: there will be none, on any member.
 */
int oci_ompi_team(struct oci_ompi_module *module, oci_ompi_comm *comm);
mca_coll_base_module_t *oci_ompi_comm_query(oci_ompi_comm *comm, int *priority);
/*
 * Runs a call that every member makes; MPI_SUCCESS, OC_HAND_BACK or an Open MPI error. `prepared`:
 * what readying this rank's buffers came to, 0 or -errno; where that failed, the others are told.
 */
int oci_ompi_run(struct oci_ompi_module *module, oci_ompi_comm *comm, const struct oc_call *call,
		 int prepared);

/*
 * bootstrap.c: makes a team, in a call that all members are in; NULL: refused, on all alike.
 * `able`: this rank has memory for what the team is for.
 */
struct oc_team *oci_ompi_team_make(struct oci_ompi_module *module, oci_ompi_comm *comm, bool able);

/* forced.c: algorithms that info keys of the communicator ask for. */
extern uint32_t oci_ompi_forced_generation;
void oci_ompi_forced_subscribe(oci_ompi_comm *comm);
void oci_ompi_forced_apply(struct oci_ompi_module *module, oci_ompi_comm *comm);
/* Forces them on another team of the same communicator. */
void oci_ompi_forced_copy(const struct oci_ompi_module *module, struct oc_team *team);

/* Where a key was set somewhere since this module looked last. */
static inline void oci_ompi_forced_update(struct oci_ompi_module *module, oci_ompi_comm *comm)
{
	if (OPAL_UNLIKELY(module->forced_seen !=
			  __atomic_load_n(&oci_ompi_forced_generation, __ATOMIC_RELAXED)))
		oci_ompi_forced_apply(module, comm);
}

/* In the statistics. The reason: a literal. */
static inline void oci_ompi_count_back(const struct oci_mpi_call *call, const char *reason)
{
	oc_count_handed_back(oci_collective_name(call->collective), reason);
}

/* failure.c: -errno of the engine as a return value of a coll function. */
int oci_ompi_failure(const struct oc_team *team, int error);

/* calls.c: fills in the functions of a module. */
void oci_ompi_serve(mca_coll_base_module_t *module);

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
