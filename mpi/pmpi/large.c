/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The functions with large counts (MPI_..._c) go to the MPI. They only keep the two rules of
 * pmpi.h, above all, they do not block without driving us, and their place among the collectives of
 * the communicator: MPICH numbers those in the order of the calls, the persistent ones in their
 * _init calls. So an _init call, which may wait, waits for what may yet be handed back, and a
 * nonblocking call stands behind it.
 */
#include "pmpi.h"

#define REASON "functions with large counts (MPI_..._c) are left to the MPI"

static struct oci_pmpi_comm *counted(MPI_Comm comm, const char *name)
{
	struct oci_pmpi_comm *state = oci_pmpi_comm_get(comm);

	if (!state)
		return NULL;
	oc_count_handed_back(name, REASON);
	return state;
}

/*
 * X(Name, Iname, name, ID, (parameters), (arguments), initialisers), as in calls.h: arguments read
 * `c`, a struct oci_mpi_later.
 */
#define LIST(...) __VA_ARGS__

/* clang-format off */
#define SEND_P const void *sbuf, MPI_Count scount, MPI_Datatype stype,
#define SENDV_P const void *sbuf, const MPI_Count scounts[], const MPI_Aint sdispls[], \
	MPI_Datatype stype,
#define SENDW_P const void *sbuf, const MPI_Count scounts[], const MPI_Aint sdispls[], \
	const MPI_Datatype stypes[],
#define RECV_P void *rbuf, MPI_Count rcount, MPI_Datatype rtype,
#define RECVV_P void *rbuf, const MPI_Count rcounts[], const MPI_Aint rdispls[], \
	MPI_Datatype rtype,
#define RECVW_P void *rbuf, const MPI_Count rcounts[], const MPI_Aint rdispls[], \
	const MPI_Datatype rtypes[],
#define REDUCE_P const void *sbuf, void *rbuf, MPI_Count scount, MPI_Datatype stype, MPI_Op op,
#define REDUCEV_P const void *sbuf, void *rbuf, const MPI_Count rcounts[], MPI_Datatype stype, \
	MPI_Op op,
#define ROOT_P int root,

#define SEND_A c->mpi.sbuf, c->scount, c->mpi.stype,
#define SENDV_A c->mpi.sbuf, c->scounts, c->sdispls, c->mpi.stype,
#define SENDW_A c->mpi.sbuf, c->scounts, c->sdispls, c->mpi.stypes,
#define RECV_A c->mpi.rbuf, c->rcount, c->mpi.rtype,
#define RECVV_A c->mpi.rbuf, c->rcounts, c->rdispls, c->mpi.rtype,
#define RECVW_A c->mpi.rbuf, c->rcounts, c->rdispls, c->mpi.rtypes,
#define REDUCE_A c->mpi.sbuf, c->mpi.rbuf, c->scount, c->mpi.stype, c->mpi.op,
#define REDUCEV_A c->mpi.sbuf, c->mpi.rbuf, c->rcounts, c->mpi.stype, c->mpi.op,
#define ROOT_A c->mpi.root,

#define SEND_I .mpi.sbuf = sbuf, .scount = scount, .mpi.stype = stype,
#define SENDV_I .mpi.sbuf = sbuf, .scounts = scounts, .sdispls = sdispls, .mpi.stype = stype,
#define SENDW_I .mpi.sbuf = sbuf, .scounts = scounts, .sdispls = sdispls, .mpi.stypes = stypes,
#define RECV_I .mpi.rbuf = rbuf, .rcount = rcount, .mpi.rtype = rtype,
#define RECVV_I .mpi.rbuf = rbuf, .rcounts = rcounts, .rdispls = rdispls, .mpi.rtype = rtype,
#define RECVW_I .mpi.rbuf = rbuf, .rcounts = rcounts, .rdispls = rdispls, .mpi.rtypes = rtypes,
#define REDUCE_I .mpi.sbuf = sbuf, .mpi.rbuf = rbuf, .scount = scount, .mpi.stype = stype, \
	.mpi.op = op,
#define REDUCEV_I .mpi.sbuf = sbuf, .mpi.rbuf = rbuf, .rcounts = rcounts, .mpi.stype = stype, \
	.mpi.op = op,
#define ROOT_I .mpi.root = root,

/* What is held is on a communicator with a team, so `size` is the length of the arrays. */
#define COLLECTIVE(Name, Iname, name, ID, parameters, arguments, ...) \
	static int start_##Iname(const struct oci_mpi_later *c, MPI_Comm comm, \
				 MPI_Request *request) \
	{ \
		return PMPI(Iname##_c)(LIST arguments comm, request); \
	} \
	int oci_pmpi_##Name##_c(LIST parameters MPI_Comm comm) \
	{ \
		struct oci_pmpi_comm *state = counted(comm, name); \
		struct oci_mpi_later call = { __VA_ARGS__ }, *c = &call; \
		MPI_Request request; \
		int error = MPI_SUCCESS; \
\
		if (!state || oci_pmpi_meet(state, &error) == OCI_BACK_BLOCKING) \
			return error ? error : PMPI(Name##_c)(LIST arguments comm); \
		error = PMPI(Iname##_c)(LIST arguments comm, &request); \
		return error ? error : oci_pmpi_await(&request, MPI_STATUS_IGNORE); \
	} \
	int oci_pmpi_##Iname##_c(LIST parameters MPI_Comm comm, MPI_Request *request) \
	{ \
		struct oci_pmpi_comm *state = counted(comm, name); \
		struct oci_mpi_later call = { \
			.start = start_##Iname, \
			.mpi.collective = ID, \
			.sblocks = state ? state->size : 0, \
			.rblocks = state ? state->size : 0, \
			.count_bytes = sizeof(MPI_Count), \
			.displ_bytes = sizeof(MPI_Aint), \
			__VA_ARGS__ \
		}; \
\
		return oci_pmpi_start_later(&call, state, comm, request); \
	} \
	int oci_pmpi_##Name##_init_c(LIST parameters MPI_Comm comm, MPI_Info info, \
				     MPI_Request *request) \
	{ \
		struct oci_pmpi_comm *state = counted(comm, name); \
		struct oci_mpi_later call = { __VA_ARGS__ }, *c = &call; \
\
		if (state) \
			oci_pmpi_await_decided(state); \
		return PMPI(Name##_init_c)(LIST arguments comm, info, request); \
	}

COLLECTIVE(Bcast, Ibcast, "bcast", OC_BCAST,
	   (void *sbuf, MPI_Count scount, MPI_Datatype stype, ROOT_P),
	   ((void *)(uintptr_t)c->mpi.sbuf, c->scount, c->mpi.stype, ROOT_A), SEND_I ROOT_I)
COLLECTIVE(Scatter, Iscatter, "scatter", OC_SCATTER, (SEND_P RECV_P ROOT_P),
	   (SEND_A RECV_A ROOT_A), SEND_I RECV_I ROOT_I)
COLLECTIVE(Scatterv, Iscatterv, "scatterv", OC_SCATTERV, (SENDV_P RECV_P ROOT_P),
	   (SENDV_A RECV_A ROOT_A), SENDV_I RECV_I ROOT_I)
COLLECTIVE(Gather, Igather, "gather", OC_GATHER, (SEND_P RECV_P ROOT_P), (SEND_A RECV_A ROOT_A),
	   SEND_I RECV_I ROOT_I)
COLLECTIVE(Gatherv, Igatherv, "gatherv", OC_GATHERV, (SEND_P RECVV_P ROOT_P),
	   (SEND_A RECVV_A ROOT_A), SEND_I RECVV_I ROOT_I)
COLLECTIVE(Allgather, Iallgather, "allgather", OC_ALLGATHER, (SEND_P RECV_P), (SEND_A RECV_A),
	   SEND_I RECV_I)
COLLECTIVE(Allgatherv, Iallgatherv, "allgatherv", OC_ALLGATHERV, (SEND_P RECVV_P),
	   (SEND_A RECVV_A), SEND_I RECVV_I)
COLLECTIVE(Alltoall, Ialltoall, "alltoall", OC_ALLTOALL, (SEND_P RECV_P), (SEND_A RECV_A),
	   SEND_I RECV_I)
COLLECTIVE(Alltoallv, Ialltoallv, "alltoallv", OC_ALLTOALLV, (SENDV_P RECVV_P),
	   (SENDV_A RECVV_A), SENDV_I RECVV_I)
COLLECTIVE(Alltoallw, Ialltoallw, "alltoallw", OC_ALLTOALLV, (SENDW_P RECVW_P),
	   (SENDW_A RECVW_A), SENDW_I RECVW_I)
COLLECTIVE(Reduce, Ireduce, "reduce", OC_REDUCE, (REDUCE_P ROOT_P), (REDUCE_A ROOT_A),
	   REDUCE_I ROOT_I)
COLLECTIVE(Allreduce, Iallreduce, "allreduce", OC_ALLREDUCE, (REDUCE_P), (REDUCE_A), REDUCE_I)
COLLECTIVE(Reduce_scatter, Ireduce_scatter, "reduce_scatter", OC_REDUCE_SCATTER, (REDUCEV_P),
	   (REDUCEV_A), REDUCEV_I)
COLLECTIVE(Reduce_scatter_block, Ireduce_scatter_block, "reduce_scatter_block",
	   OC_REDUCE_SCATTER_BLOCK, (REDUCE_P), (REDUCE_A), REDUCE_I)
COLLECTIVE(Scan, Iscan, "scan", OC_SCAN, (REDUCE_P), (REDUCE_A), REDUCE_I)
COLLECTIVE(Exscan, Iexscan, "exscan", OC_EXSCAN, (REDUCE_P), (REDUCE_A), REDUCE_I)
/* clang-format on */

#define OCI_COUNT MPI_Count
#define OCI_NAME(name) name##_c
#include "twin.h"
