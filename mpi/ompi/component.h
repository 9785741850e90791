/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the files of the Open MPI component share.
 *
 *   component.c    what Open MPI loads: version check, parameters, open and close
 *   modex.c        which processes of the job have the component in use
 *   module.c       one object per communicator: selection, the functions of the modules below us
 *   calls.c        what Open MPI calls: each collective in its three forms
 *   request.c      our requests of Open MPI: nonblocking and persistent calls
 *   underlying.c   the same calls of the modules below us
 *   port.c         what mpi/common asks of Open MPI
 *   part.c         communicators of some members of one, for two levels
 *   forced.c       info keys of communicators that ask for algorithms
 *   version.h      what differs between the versions of Open MPI
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

#include "base/log.h"
#include "common/request.h"
#include "common/signature.h"

#include "version.h"

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

/* Open MPI up to 5.0 has no large counts. */
#define OCI_COUNT int
#define OCI_DISPL int

/* One communicator. */
struct oci_ompi_module {
	mca_coll_base_module_t super;
	/* The functions selected before ours, each with a reference to its module. */
	mca_coll_base_comm_coll_t underlying;
	bool disabled; /* coll_module_disable() was passed on */
	struct oci_mpi_comm comm;
	uint32_t forced_seen; /* of oci_ompi_forced_generation */
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
void oci_ompi_progress_stop(void);
/* In each turn of the MPI's: from the first request on. */
void oci_ompi_progress_often(void);

/* modex.c */
/* Tells the job's processes that this one takes part; in MPI_Init. False: it could not. */
bool oci_ompi_modex_publish(void);
/* Of a communicator inside the job, alike on all members: whether they are all known to take part,
 * if `spans` in two levels. */
bool oci_ompi_modex_all(oci_ompi_comm *comm, bool spans);
/* oc_node() of a member that takes part. */
uint64_t oci_ompi_modex_node(oci_ompi_comm *comm, uint32_t rank);

/* module.c */
mca_coll_base_module_t *oci_ompi_comm_query(oci_ompi_comm *comm, int *priority);
/* Ours of a communicator; NULL: it has none. */
struct oci_ompi_module *oci_ompi_module_of(const oci_ompi_comm *comm);

/* forced.c: algorithms that info keys of the communicator ask for. */
extern uint32_t oci_ompi_forced_generation;
void oci_ompi_forced_subscribe(oci_ompi_comm *comm);
void oci_ompi_forced_apply(struct oci_ompi_module *module);

/* Where a key was set somewhere since this module looked last. */
static inline void oci_ompi_forced_update(struct oci_ompi_module *module)
{
	if (OPAL_UNLIKELY(module->forced_seen !=
			  __atomic_load_n(&oci_ompi_forced_generation, __ATOMIC_RELAXED)))
		oci_ompi_forced_apply(module);
}

/* calls.c: fills in the functions of a module. */
void oci_ompi_serve(mca_coll_base_module_t *module, bool spans);

/* request.c */
/* Any nonblocking call. */
int oci_ompi_start(struct oci_ompi_module *module, const struct oci_mpi_call *call,
		   ompi_request_t **request);
/* Any persistent call. */
int oci_ompi_init(struct oci_ompi_module *module, const struct oci_mpi_call *call,
		  struct ompi_info_t *info, ompi_request_t **request);
/* At the end of the process. */
void oci_ompi_requests_drain(void);
/* Of those that the program has freed. */
void oci_ompi_requests_let_all_go(void);

/* underlying.c: the call as it was made, to the functions that were selected before ours. */
int oci_ompi_underlying(struct oci_ompi_module *module, const struct oci_mpi_call *call);
int oci_ompi_underlying_start(struct oci_ompi_module *module, const struct oci_mpi_call *call,
			      ompi_request_t **request);
int oci_ompi_underlying_init(struct oci_ompi_module *module, const struct oci_mpi_call *call,
			     struct ompi_info_t *info, ompi_request_t **request);

/* oci_port_type_get(), for who wants it inlined. */
static inline void oci_ompi_type_get(MPI_Datatype type, struct oci_port_type *shape)
{
	const opal_datatype_t *base = &type->super;

	shape->size = base->size;
	shape->extent = base->ub - base->lb;
	shape->true_lb = base->true_lb;
	shape->true_extent = base->true_ub - base->true_lb;
	shape->dense = (base->flags & OPAL_DATATYPE_FLAG_NO_GAPS) != 0;
	shape->contiguous = (base->flags & OPAL_DATATYPE_FLAG_CONTIGUOUS) != 0;
}

#endif
