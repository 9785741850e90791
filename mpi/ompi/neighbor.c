/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Neighbourhood collectives, which are left to the modules below us. Those are to get the
 * nonblocking ones with all others of the communicator in the order of the calls, and the
 * persistent ones in their _init calls: so a nonblocking one stands behind what may yet be handed
 * back, and an _init call, which may wait for the members, waits for that.
 */
#include "component.h"

static void counted(const char *name)
{
	oc_count_handed_back(name, "neighbourhood collectives are left to the MPI");
}

static int start_later(mca_coll_base_module_t *module, oci_ompi_comm *comm,
		       struct oci_mpi_later *call, ompi_request_t **request)
{
	call->context = module;
	oci_mpi_neighbors(comm, &call->sblocks, &call->rblocks);
	return oci_ompi_start_later((struct oci_ompi_module *)module, comm, call, request);
}

static void init_begin(struct oci_ompi_module *module, oci_ompi_comm *comm)
{
	uint32_t number = oci_ompi_number(module, OCI_OMPI_PROGRAM);

	oci_ompi_await_decided(module);
	oci_ompi_number_begin(module, comm, number);
}

#define LIST(...) __VA_ARGS__
#define PREVIOUS(module) (&((struct oci_ompi_module *)(module))->previous)
#define CALL(previous, name, arguments, ...) \
	(previous)->coll_##name(LIST arguments comm, __VA_ARGS__, (previous)->coll_##name##_module)

/* clang-format off */
#define NEIGHBOR(name, ID, LONG_DISPLS, parameters, arguments, kept, ...)                               \
	static int name(LIST parameters oci_ompi_comm *comm, mca_coll_base_module_t *module)       \
	{                                                                                          \
		const mca_coll_base_comm_coll_t *p = PREVIOUS(module);                             \
                                                                                                   \
		counted(#name);                                                                    \
		return p->coll_##name(LIST arguments comm, p->coll_##name##_module);               \
	}                                                                                          \
	static int start_##name(const struct oci_mpi_later *c, oci_ompi_comm *comm,                \
				ompi_request_t **request)                                          \
	{                                                                                          \
		return CALL(PREVIOUS(c->context), i##name, kept, request);                         \
	}                                                                                          \
	static int i##name(LIST parameters oci_ompi_comm *comm, ompi_request_t **request,          \
			   mca_coll_base_module_t *module)                                         \
	{                                                                                          \
		struct oci_mpi_later call = { .start = start_##name,                               \
					      .mpi.collective = ID,                                \
					      .mpi.long_displs = LONG_DISPLS,                       \
					      __VA_ARGS__ };                                       \
                                                                                                   \
		counted(#name);                                                                    \
		return start_later(module, comm, &call, request);                                  \
	}                                                                                          \
	static int name##_init(LIST parameters oci_ompi_comm *comm, struct ompi_info_t *info,      \
			       ompi_request_t **request, mca_coll_base_module_t *module)           \
	{                                                                                          \
		int error;                                                                         \
                                                                                                   \
		counted(#name);                                                                    \
		init_begin((struct oci_ompi_module *)module, comm);                                \
		error = CALL(PREVIOUS(module), name##_init, arguments, info, request);             \
		oci_ompi_number_end((struct oci_ompi_module *)module);                             \
		return error;                                                                      \
	}

#define SEND const void *sbuf, int scount, oci_ompi_type *stype,
#define SENDV const void *sbuf, const int *scounts, const int *sdispls, oci_ompi_type *stype,
#define SENDW const void *sbuf, const int *scounts, const MPI_Aint *sdispls, \
	oci_ompi_type *const *stypes,
#define RECEIVE void *rbuf, int rcount, oci_ompi_type *rtype,
#define RECEIVEV void *rbuf, const int *rcounts, const int *rdispls, oci_ompi_type *rtype,
#define RECEIVEW void *rbuf, const int *rcounts, const MPI_Aint *rdispls, \
	oci_ompi_type *const *rtypes,
#define SEND_ARGS sbuf, scount, stype,
#define SENDV_ARGS sbuf, scounts, sdispls, stype,
#define SENDW_ARGS sbuf, scounts, sdispls, stypes,
#define RECEIVE_ARGS rbuf, rcount, rtype,
#define RECEIVEV_ARGS rbuf, rcounts, rdispls, rtype,
#define RECEIVEW_ARGS rbuf, rcounts, rdispls, rtypes,
#define SEND_KEPT c->mpi.sbuf, (int)c->mpi.scount, c->mpi.stype,
#define SENDV_KEPT c->mpi.sbuf, c->mpi.scounts, c->mpi.sdispls, c->mpi.stype,
#define SENDW_KEPT c->mpi.sbuf, c->mpi.scounts, c->mpi.sdispls, c->mpi.stypes,
#define RECEIVE_KEPT c->mpi.rbuf, (int)c->mpi.rcount, c->mpi.rtype,
#define RECEIVEV_KEPT c->mpi.rbuf, c->mpi.rcounts, c->mpi.rdispls, c->mpi.rtype,
#define RECEIVEW_KEPT c->mpi.rbuf, c->mpi.rcounts, c->mpi.rdispls, c->mpi.rtypes,
#define SEND_FIELDS .mpi.sbuf = sbuf, .mpi.scount = scount, .mpi.stype = stype,
#define SENDV_FIELDS .mpi.sbuf = sbuf, .mpi.scounts = scounts, .mpi.sdispls = sdispls, .mpi.stype = stype,
#define SENDW_FIELDS .mpi.sbuf = sbuf, .mpi.scounts = scounts, .mpi.sdispls = sdispls, \
	.mpi.stypes = stypes,
#define RECEIVE_FIELDS .mpi.rbuf = rbuf, .mpi.rcount = rcount, .mpi.rtype = rtype,
#define RECEIVEV_FIELDS .mpi.rbuf = rbuf, .mpi.rcounts = rcounts, .mpi.rdispls = rdispls, \
	.mpi.rtype = rtype,
#define RECEIVEW_FIELDS .mpi.rbuf = rbuf, .mpi.rcounts = rcounts, .mpi.rdispls = rdispls, \
	.mpi.rtypes = rtypes,

NEIGHBOR(neighbor_allgather, OC_ALLGATHER, false, (SEND RECEIVE), (SEND_ARGS RECEIVE_ARGS),
	 (SEND_KEPT RECEIVE_KEPT), SEND_FIELDS RECEIVE_FIELDS)
NEIGHBOR(neighbor_allgatherv, OC_ALLGATHERV, false, (SEND RECEIVEV), (SEND_ARGS RECEIVEV_ARGS),
	 (SEND_KEPT RECEIVEV_KEPT), SEND_FIELDS RECEIVEV_FIELDS)
NEIGHBOR(neighbor_alltoall, OC_ALLTOALL, false, (SEND RECEIVE), (SEND_ARGS RECEIVE_ARGS),
	 (SEND_KEPT RECEIVE_KEPT), SEND_FIELDS RECEIVE_FIELDS)
NEIGHBOR(neighbor_alltoallv, OC_ALLTOALLV, false, (SENDV RECEIVEV), (SENDV_ARGS RECEIVEV_ARGS),
	 (SENDV_KEPT RECEIVEV_KEPT), SENDV_FIELDS RECEIVEV_FIELDS)
NEIGHBOR(neighbor_alltoallw, OC_ALLTOALLV, true, (SENDW RECEIVEW),
	 (SENDW_ARGS RECEIVEW_ARGS), (SENDW_KEPT RECEIVEW_KEPT), SENDW_FIELDS RECEIVEW_FIELDS)
/* clang-format on */

void oci_ompi_serve_neighbors(mca_coll_base_module_t *module)
{
#define SERVE(name) module->coll_##name = name;
	OCI_OMPI_NEIGHBORS(SERVE)
#undef SERVE
}
