/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The five neighbourhood collectives in their three forms, with counts of OCI_COUNT, displacements
 * of OCI_DISPL and names as OCI_NAME makes them; included once for each kind of count.
 */
/* clang-format off */
#define SEND_P const void *sbuf, OCI_COUNT scount, MPI_Datatype stype
#define SENDV_P const void *sbuf, const OCI_COUNT scounts[], const OCI_DISPL sdispls[], \
	MPI_Datatype stype
#define SENDW_P const void *sbuf, const OCI_COUNT scounts[], const MPI_Aint sdispls[], \
	const MPI_Datatype stypes[]
#define RECV_P void *rbuf, OCI_COUNT rcount, MPI_Datatype rtype
#define RECVV_P void *rbuf, const OCI_COUNT rcounts[], const OCI_DISPL rdispls[], \
	MPI_Datatype rtype
#define RECVW_P void *rbuf, const OCI_COUNT rcounts[], const MPI_Aint rdispls[], \
	const MPI_Datatype rtypes[]

#define SEND_A sbuf, scount, stype
#define SENDV_A sbuf, scounts, sdispls, stype
#define SENDW_A sbuf, scounts, sdispls, stypes
#define RECV_A rbuf, rcount, rtype
#define RECVV_A rbuf, rcounts, rdispls, rtype
#define RECVW_A rbuf, rcounts, rdispls, rtypes

#define NEIGHBOR(Name, Iname, Init, name, parameters, arguments) \
	int OCI_OURS(Name)(OCI_LIST parameters, MPI_Comm comm) \
	{ \
		MPI_Request request; \
		int error; \
\
		if (!twin(counted(comm, name))) \
			return OCI_HELPED(OCI_THEIRS(Name)(OCI_LIST arguments, comm)); \
		error = OCI_THEIRS(Iname)(OCI_LIST arguments, comm, &request); \
		return error ? error : oci_pmpi_await(&request, MPI_STATUS_IGNORE); \
	} \
	int OCI_OURS(Iname)(OCI_LIST parameters, MPI_Comm comm, MPI_Request *request) \
	{ \
		counted(comm, name); \
		return OCI_THEIRS(Iname)(OCI_LIST arguments, comm, request); \
	} \
	int OCI_OURS(Init)(OCI_LIST parameters, MPI_Comm comm, MPI_Info info, MPI_Request *request) \
	{ \
		counted(comm, name); \
		return OCI_THEIRS(Init)(OCI_LIST arguments, comm, info, request); \
	}

NEIGHBOR(Neighbor_allgather, Ineighbor_allgather, Neighbor_allgather_init, "neighbor_allgather",
	 (SEND_P, RECV_P), (SEND_A, RECV_A))
NEIGHBOR(Neighbor_allgatherv, Ineighbor_allgatherv, Neighbor_allgatherv_init,
	 "neighbor_allgatherv", (SEND_P, RECVV_P), (SEND_A, RECVV_A))
NEIGHBOR(Neighbor_alltoall, Ineighbor_alltoall, Neighbor_alltoall_init, "neighbor_alltoall",
	 (SEND_P, RECV_P), (SEND_A, RECV_A))
NEIGHBOR(Neighbor_alltoallv, Ineighbor_alltoallv, Neighbor_alltoallv_init, "neighbor_alltoallv",
	 (SENDV_P, RECVV_P), (SENDV_A, RECVV_A))
NEIGHBOR(Neighbor_alltoallw, Ineighbor_alltoallw, Neighbor_alltoallw_init, "neighbor_alltoallw",
	 (SENDW_P, RECVW_P), (SENDW_A, RECVW_A))
/* clang-format on */
