/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The functions with large counts (MPI_..._c) go to the MPI. They only keep the two rules of
 * pmpi.h: above all, they do not block without driving us. MPICH numbers the persistent ones in
 * their _init calls, which may wait, so these come behind what may yet be handed back; nonblocking
 * ones may not wait (docs/adr/0008).
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

#define LIST(...) __VA_ARGS__

/* clang-format off */
#define SEND_P const void *sbuf, MPI_Count scount, MPI_Datatype stype
#define SENDV_P const void *sbuf, const MPI_Count scounts[], const MPI_Aint sdispls[], \
	MPI_Datatype stype
#define SENDW_P const void *sbuf, const MPI_Count scounts[], const MPI_Aint sdispls[], \
	const MPI_Datatype stypes[]
#define RECV_P void *rbuf, MPI_Count rcount, MPI_Datatype rtype
#define RECVV_P void *rbuf, const MPI_Count rcounts[], const MPI_Aint rdispls[], \
	MPI_Datatype rtype
#define RECVW_P void *rbuf, const MPI_Count rcounts[], const MPI_Aint rdispls[], \
	const MPI_Datatype rtypes[]
#define REDUCE_P const void *sbuf, void *rbuf, MPI_Count count, MPI_Datatype type, MPI_Op op
#define REDUCEV_P const void *sbuf, void *rbuf, const MPI_Count counts[], MPI_Datatype type, \
	MPI_Op op
#define SEND_A sbuf, scount, stype
#define SENDV_A sbuf, scounts, sdispls, stype
#define SENDW_A sbuf, scounts, sdispls, stypes
#define RECV_A rbuf, rcount, rtype
#define RECVV_A rbuf, rcounts, rdispls, rtype
#define RECVW_A rbuf, rcounts, rdispls, rtypes
#define REDUCE_A sbuf, rbuf, count, type, op
#define REDUCEV_A sbuf, rbuf, counts, type, op

#define COLLECTIVE(Name, Iname, name, parameters, arguments) \
	int oci_pmpi_##Name##_c(LIST parameters, MPI_Comm comm) \
	{ \
		struct oci_pmpi_comm *state = counted(comm, name); \
		MPI_Request request; \
		int error = MPI_SUCCESS; \
\
		if (!state || oci_pmpi_meet(state, &error) == OCI_BACK_BLOCKING) \
			return error ? error : PMPI(Name##_c)(LIST arguments, comm); \
		error = PMPI(Iname##_c)(LIST arguments, comm, &request); \
		return error ? error : oci_pmpi_await(&request, MPI_STATUS_IGNORE); \
	} \
	int oci_pmpi_##Iname##_c(LIST parameters, MPI_Comm comm, MPI_Request *request) \
	{ \
		counted(comm, name); \
		return PMPI(Iname##_c)(LIST arguments, comm, request); \
	} \
	int oci_pmpi_##Name##_init_c(LIST parameters, MPI_Comm comm, MPI_Info info, \
				     MPI_Request *request) \
	{ \
		struct oci_pmpi_comm *state = counted(comm, name); \
\
		if (state) \
			oci_pmpi_await_decided(state); \
		return PMPI(Name##_init_c)(LIST arguments, comm, info, request); \
	}

COLLECTIVE(Bcast, Ibcast, "bcast", (void *buffer, MPI_Count count, MPI_Datatype type, int root),
	   (buffer, count, type, root))
COLLECTIVE(Scatter, Iscatter, "scatter", (SEND_P, RECV_P, int root), (SEND_A, RECV_A, root))
COLLECTIVE(Scatterv, Iscatterv, "scatterv", (SENDV_P, RECV_P, int root), (SENDV_A, RECV_A, root))
COLLECTIVE(Gather, Igather, "gather", (SEND_P, RECV_P, int root), (SEND_A, RECV_A, root))
COLLECTIVE(Gatherv, Igatherv, "gatherv", (SEND_P, RECVV_P, int root), (SEND_A, RECVV_A, root))
COLLECTIVE(Allgather, Iallgather, "allgather", (SEND_P, RECV_P), (SEND_A, RECV_A))
COLLECTIVE(Allgatherv, Iallgatherv, "allgatherv", (SEND_P, RECVV_P), (SEND_A, RECVV_A))
COLLECTIVE(Alltoall, Ialltoall, "alltoall", (SEND_P, RECV_P), (SEND_A, RECV_A))
COLLECTIVE(Alltoallv, Ialltoallv, "alltoallv", (SENDV_P, RECVV_P), (SENDV_A, RECVV_A))
COLLECTIVE(Alltoallw, Ialltoallw, "alltoallw", (SENDW_P, RECVW_P), (SENDW_A, RECVW_A))
COLLECTIVE(Reduce, Ireduce, "reduce", (REDUCE_P, int root), (REDUCE_A, root))
COLLECTIVE(Allreduce, Iallreduce, "allreduce", (REDUCE_P), (REDUCE_A))
COLLECTIVE(Reduce_scatter, Ireduce_scatter, "reduce_scatter", (REDUCEV_P), (REDUCEV_A))
COLLECTIVE(Reduce_scatter_block, Ireduce_scatter_block, "reduce_scatter_block", (REDUCE_P),
	   (REDUCE_A))
COLLECTIVE(Scan, Iscan, "scan", (REDUCE_P), (REDUCE_A))
COLLECTIVE(Exscan, Iexscan, "exscan", (REDUCE_P), (REDUCE_A))
/* clang-format on */

#define OCI_COUNT MPI_Count
#define OCI_NAME(name) name##_c
#include "twin.h"
