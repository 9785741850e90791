/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is not served yet: counted, with the reason, and passed to the module below us.
 *
 * Open MPI itself calls some of these on any communicator, from inside its progress too
 * (coll_iallreduce to choose context ids). Passing on never creates or enters a team, so it is
 * harmless there; the statistics count those calls with the program's.
 */
#include "component.h"

#define BLOCKING_REASON "this collective is not served yet"
#define NONBLOCKING_REASON "nonblocking collectives are not served yet"
#define PERSISTENT_REASON "persistent collectives are not served yet"

/* Parameters and arguments come in parentheses and end with a comma, so that there may be none. */
#define LIST(...) __VA_ARGS__

#define PASS(name, reason, parameters, arguments)                                \
	static int name(LIST parameters mca_coll_base_module_t *module)          \
	{                                                                        \
		struct oci_ompi_module *self = (struct oci_ompi_module *)module; \
                                                                                 \
		oc_count_handed_back(#name, reason);                             \
		return self->previous.coll_##name(                               \
			LIST arguments self->previous.coll_##name##_module);     \
	}

/* clang-format off */
#define PASS_BLOCKING(name, parameters, arguments)                                          \
	PASS(name, BLOCKING_REASON, (LIST parameters oci_ompi_comm *comm,),                 \
	     (LIST arguments comm,))

/* The nonblocking and the persistent form of a collective. */
#define PASS_STARTED(name, parameters, arguments)                                           \
	PASS(i##name, NONBLOCKING_REASON,                                                   \
	     (LIST parameters oci_ompi_comm *comm, ompi_request_t **request,),              \
	     (LIST arguments comm, request,))                                               \
	PASS(name##_init, PERSISTENT_REASON,                                                \
	     (LIST parameters oci_ompi_comm *comm, struct ompi_info_t *info,                \
	      ompi_request_t **request,),                                                   \
	     (LIST arguments comm, info, request,))

#define PASS_ALL(name, parameters, arguments)      \
	PASS_BLOCKING(name, parameters, arguments) \
	PASS_STARTED(name, parameters, arguments)

#define SEND const void *sbuf, int scount, oci_ompi_type *stype,
#define SENDV const void *sbuf, const int *scounts, const int *sdispls, oci_ompi_type *stype,
#define SENDW const void *sbuf, const int *scounts, const int *sdispls, \
	oci_ompi_type *const *stypes,
#define RECEIVE void *rbuf, int rcount, oci_ompi_type *rtype,
#define RECEIVEV void *rbuf, const int *rcounts, const int *rdispls, oci_ompi_type *rtype,
#define RECEIVEW void *rbuf, const int *rcounts, const int *rdispls, \
	oci_ompi_type *const *rtypes,
#define REDUCE const void *sbuf, void *rbuf, int count, oci_ompi_type *type, ompi_op_t *op,
#define REDUCEV const void *sbuf, void *rbuf, const int *counts, oci_ompi_type *type, ompi_op_t *op,
#define ROOT int root,
#define SEND_ARGS sbuf, scount, stype,
#define SENDV_ARGS sbuf, scounts, sdispls, stype,
#define SENDW_ARGS sbuf, scounts, sdispls, stypes,
#define RECEIVE_ARGS rbuf, rcount, rtype,
#define RECEIVEV_ARGS rbuf, rcounts, rdispls, rtype,
#define RECEIVEW_ARGS rbuf, rcounts, rdispls, rtypes,
#define REDUCE_ARGS sbuf, rbuf, count, type, op,
#define REDUCEV_ARGS sbuf, rbuf, counts, type, op,

PASS_STARTED(barrier, (), ())
PASS_STARTED(bcast, (void *buffer, int count, oci_ompi_type *type, ROOT),
	     (buffer, count, type, root,))
PASS_STARTED(scatter, (SEND RECEIVE ROOT), (SEND_ARGS RECEIVE_ARGS root,))
PASS_STARTED(gather, (SEND RECEIVE ROOT), (SEND_ARGS RECEIVE_ARGS root,))
PASS_STARTED(allgather, (SEND RECEIVE), (SEND_ARGS RECEIVE_ARGS))
PASS_STARTED(alltoall, (SEND RECEIVE), (SEND_ARGS RECEIVE_ARGS))
PASS_STARTED(reduce, (REDUCE ROOT), (REDUCE_ARGS root,))
PASS_STARTED(allreduce, (REDUCE), (REDUCE_ARGS))
PASS_ALL(scatterv, (SENDV RECEIVE ROOT), (SENDV_ARGS RECEIVE_ARGS root,))
PASS_ALL(gatherv, (SEND RECEIVEV ROOT), (SEND_ARGS RECEIVEV_ARGS root,))
PASS_ALL(allgatherv, (SEND RECEIVEV), (SEND_ARGS RECEIVEV_ARGS))
PASS_ALL(alltoallv, (SENDV RECEIVEV), (SENDV_ARGS RECEIVEV_ARGS))
PASS_ALL(alltoallw, (SENDW RECEIVEW), (SENDW_ARGS RECEIVEW_ARGS))
PASS_ALL(reduce_scatter, (REDUCEV), (REDUCEV_ARGS))
PASS_ALL(reduce_scatter_block, (REDUCE), (REDUCE_ARGS))
PASS_ALL(scan, (REDUCE), (REDUCE_ARGS))
PASS_ALL(exscan, (REDUCE), (REDUCE_ARGS))
/* clang-format on */

void oci_ompi_pass(mca_coll_base_module_t *module)
{
#define ASSIGN(name) module->coll_##name = name;
	OCI_OMPI_PASSED(ASSIGN)
#undef ASSIGN
}
