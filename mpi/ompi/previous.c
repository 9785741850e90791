/* SPDX-License-Identifier: BSD-3-Clause */
/* A call to the functions that were selected before ours, in each of the three forms. */
#include "component.h"

/* Arguments come in parentheses and end with a comma, so that there may be none. */
#define LIST(...) __VA_ARGS__

/* An argument that Open MPI's functions take without const, though they only read it. */
#define BUFFER(c) ((void *)(uintptr_t)(c)->sbuf)

#define SEND c->sbuf, (int)c->scount, c->stype,
#define SENDV c->sbuf, c->scounts, c->sdispls, c->stype,
#define SENDW c->sbuf, c->scounts, c->sdispls, c->stypes,
#define RECEIVE c->rbuf, (int)c->rcount, c->rtype,
#define RECEIVEV c->rbuf, c->rcounts, c->rdispls, c->rtype,
#define RECEIVEW c->rbuf, c->rcounts, c->rdispls, c->rtypes,
#define REDUCTION (int)c->scount, c->stype, c->op,

/* clang-format off */
#define DISPATCH(CALL)                                                                     \
	switch (c->collective) {                                                           \
	case OC_BARRIER: return CALL(barrier, ());                                         \
	case OC_BCAST: return CALL(bcast, (BUFFER(c), (int)c->scount, c->stype, c->root,)); \
	case OC_SCATTER: return CALL(scatter, (SEND RECEIVE c->root,));                    \
	case OC_GATHER: return CALL(gather, (SEND RECEIVE c->root,));                      \
	case OC_ALLGATHER: return CALL(allgather, (SEND RECEIVE));                         \
	case OC_ALLTOALL: return CALL(alltoall, (SEND RECEIVE));                           \
	case OC_REDUCE: return CALL(reduce, (c->sbuf, c->rbuf, REDUCTION c->root,));       \
	case OC_ALLREDUCE: return CALL(allreduce, (c->sbuf, c->rbuf, REDUCTION));          \
	case OC_SCATTERV: return CALL(scatterv, (SENDV RECEIVE c->root,));                 \
	case OC_GATHERV: return CALL(gatherv, (SEND RECEIVEV c->root,));                   \
	case OC_ALLGATHERV: return CALL(allgatherv, (SEND RECEIVEV));                      \
	case OC_ALLTOALLV:                                                                 \
		if (c->rtypes)                                                             \
			return CALL(alltoallw, (SENDW RECEIVEW));                          \
		return CALL(alltoallv, (SENDV RECEIVEV));                                  \
	case OC_REDUCE_SCATTER_BLOCK:                                                      \
		return CALL(reduce_scatter_block,                                          \
			    (c->sbuf, c->rbuf, (int)c->rcount, c->stype, c->op,));              \
	case OC_REDUCE_SCATTER:                                                            \
		return CALL(reduce_scatter,                                                \
			    (c->sbuf, c->rbuf, c->rcounts, c->stype, c->op,));             \
	case OC_SCAN: return CALL(scan, (c->sbuf, c->rbuf, REDUCTION));                    \
	case OC_EXSCAN: return CALL(exscan, (c->sbuf, c->rbuf, REDUCTION));                \
	default: return OMPI_ERR_NOT_SUPPORTED;                                            \
	}
/* clang-format on */

int oci_ompi_previous(struct oci_ompi_module *self, oci_ompi_comm *comm,
		      const struct oci_mpi_call *c)
{
	const mca_coll_base_comm_coll_t *p = &self->previous;

#define BLOCKING(name, arguments) p->coll_##name(LIST arguments comm, p->coll_##name##_module)
	DISPATCH(BLOCKING)
}

int oci_ompi_previous_start(struct oci_ompi_module *self, oci_ompi_comm *comm,
			    const struct oci_mpi_call *c, ompi_request_t **request)
{
	const mca_coll_base_comm_coll_t *p = &self->previous;

#define START(name, arguments) \
	p->coll_i##name(LIST arguments comm, request, p->coll_i##name##_module)
	DISPATCH(START)
}

int oci_ompi_previous_init(struct oci_ompi_module *self, oci_ompi_comm *comm,
			   const struct oci_mpi_call *c, struct ompi_info_t *info,
			   ompi_request_t **request)
{
	const mca_coll_base_comm_coll_t *p = &self->previous;

#define INIT(name, arguments) \
	p->coll_##name##_init(LIST arguments comm, info, request, p->coll_##name##_init_module)
	DISPATCH(INIT)
}
