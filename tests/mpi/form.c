/* SPDX-License-Identifier: BSD-3-Clause */
#include "form.h"

#ifdef OPEN_MPI
#include <mpi-ext.h>
/* Open MPI 4.1 has the persistent forms as extensions. */
#define PERSISTENT(name) MPIX_##name
#else
#define PERSISTENT(name) MPI_##name
#endif

const char *const form_names[FORMS] = { "blocking", "nonblocking", "persistent" };

/* X(ID, Name, Iname, Name_init, arguments...) */
#define ALL_COLLECTIVES(X)                                                                         \
	X(BARRIER, Barrier, Ibarrier, Barrier_init, a->comm)                                       \
	X(BCAST, Bcast, Ibcast, Bcast_init, a->recv, a->recv_count, a->recv_type, a->root,         \
	  a->comm)                                                                                 \
	X(SCATTER, Scatter, Iscatter, Scatter_init, a->send, a->send_count, a->send_type, a->recv, \
	  a->recv_count, a->recv_type, a->root, a->comm)                                           \
	X(GATHER, Gather, Igather, Gather_init, a->send, a->send_count, a->send_type, a->recv,     \
	  a->recv_count, a->recv_type, a->root, a->comm)                                           \
	X(ALLGATHER, Allgather, Iallgather, Allgather_init, a->send, a->send_count, a->send_type,  \
	  a->recv, a->recv_count, a->recv_type, a->comm)                                           \
	X(ALLTOALL, Alltoall, Ialltoall, Alltoall_init, a->send, a->send_count, a->send_type,      \
	  a->recv, a->recv_count, a->recv_type, a->comm)                                           \
	X(REDUCE, Reduce, Ireduce, Reduce_init, a->send, a->recv, a->recv_count, a->recv_type,     \
	  a->op, a->root, a->comm)                                                                 \
	X(ALLREDUCE, Allreduce, Iallreduce, Allreduce_init, a->send, a->recv, a->recv_count,       \
	  a->recv_type, a->op, a->comm)                                                            \
	X(SCATTERV, Scatterv, Iscatterv, Scatterv_init, a->send, a->send_counts, a->send_places,   \
	  a->send_type, a->recv, a->recv_count, a->recv_type, a->root, a->comm)                    \
	X(GATHERV, Gatherv, Igatherv, Gatherv_init, a->send, a->send_count, a->send_type, a->recv, \
	  a->recv_counts, a->recv_places, a->recv_type, a->root, a->comm)                          \
	X(ALLGATHERV, Allgatherv, Iallgatherv, Allgatherv_init, a->send, a->send_count,            \
	  a->send_type, a->recv, a->recv_counts, a->recv_places, a->recv_type, a->comm)            \
	X(ALLTOALLV, Alltoallv, Ialltoallv, Alltoallv_init, a->send, a->send_counts,               \
	  a->send_places, a->send_type, a->recv, a->recv_counts, a->recv_places, a->recv_type,     \
	  a->comm)                                                                                 \
	X(ALLTOALLW, Alltoallw, Ialltoallw, Alltoallw_init, a->send, a->send_counts,               \
	  a->send_places, a->send_types, a->recv, a->recv_counts, a->recv_places, a->recv_types,   \
	  a->comm)                                                                                 \
	X(REDUCE_SCATTER_BLOCK, Reduce_scatter_block, Ireduce_scatter_block,                       \
	  Reduce_scatter_block_init, a->send, a->recv, a->recv_count, a->recv_type, a->op,         \
	  a->comm)                                                                                 \
	X(REDUCE_SCATTER, Reduce_scatter, Ireduce_scatter, Reduce_scatter_init, a->send, a->recv,  \
	  a->recv_counts, a->recv_type, a->op, a->comm)                                            \
	X(SCAN, Scan, Iscan, Scan_init, a->send, a->recv, a->recv_count, a->recv_type, a->op,      \
	  a->comm)                                                                                 \
	X(EXSCAN, Exscan, Iexscan, Exscan_init, a->send, a->recv, a->recv_count, a->recv_type,     \
	  a->op, a->comm)

#define CALL_CASE(ID, blocking, nonblocking, persistent, ...) \
	case CASE_##ID:                                       \
		return MPI_##blocking(__VA_ARGS__);
#define START_CASE(ID, blocking, nonblocking, persistent, ...) \
	case CASE_##ID:                                        \
		return MPI_##nonblocking(__VA_ARGS__, request);
#define INIT_CASE(ID, blocking, nonblocking, persistent, ...) \
	case CASE_##ID:                                       \
		return PERSISTENT(persistent)(__VA_ARGS__, MPI_INFO_NULL, request);

int form_call(const struct arguments *a)
{
	switch (a->collective) {
		ALL_COLLECTIVES(CALL_CASE)
	default:
		case_fail("no collective has number %d", a->collective);
	}
}

int form_start(const struct arguments *a, MPI_Request *request)
{
	switch (a->collective) {
		ALL_COLLECTIVES(START_CASE)
	default:
		case_fail("no collective has number %d", a->collective);
	}
}

int form_init(const struct arguments *a, MPI_Request *request)
{
	switch (a->collective) {
		ALL_COLLECTIVES(INIT_CASE)
	default:
		case_fail("no collective has number %d", a->collective);
	}
}
