/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The five neighbourhood collectives in their three forms, with counts of OCI_COUNT, displacements
 * of OCI_DISPL and names as OCI_NAME makes them; included once for each kind of count.
 */
#define START_OF(name) OCI_PASTE(start_, name)
#define START(name) START_OF(OCI_NAME(name))

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

#define SEND_A c->mpi.sbuf, (OCI_COUNT)c->mpi.scount, c->mpi.stype
#define SENDV_A c->mpi.sbuf, c->mpi.scounts, c->mpi.sdispls, c->mpi.stype
#define SENDW_A c->mpi.sbuf, c->mpi.scounts, c->mpi.sdispls, c->mpi.stypes
#define RECV_A c->mpi.rbuf, (OCI_COUNT)c->mpi.rcount, c->mpi.rtype
#define RECVV_A c->mpi.rbuf, c->mpi.rcounts, c->mpi.rdispls, c->mpi.rtype
#define RECVW_A c->mpi.rbuf, c->mpi.rcounts, c->mpi.rdispls, c->mpi.rtypes

#define SEND_I .mpi.sbuf = sbuf, .mpi.scount = scount, .mpi.stype = stype
#define SENDV_I .mpi.sbuf = sbuf, .mpi.scounts = scounts, .mpi.sdispls = sdispls, .mpi.stype = stype
#define SENDW_I .mpi.sbuf = sbuf, .mpi.scounts = scounts, .mpi.sdispls = sdispls, .mpi.stypes = stypes
#define RECV_I .mpi.rbuf = rbuf, .mpi.rcount = rcount, .mpi.rtype = rtype
#define RECVV_I .mpi.rbuf = rbuf, .mpi.rcounts = rcounts, .mpi.rdispls = rdispls, .mpi.rtype = rtype
#define RECVW_I .mpi.rbuf = rbuf, .mpi.rcounts = rcounts, .mpi.rdispls = rdispls, .mpi.rtypes = rtypes

#define NEIGHBOR(Name, Iname, Init, name, ID, Displ, parameters, arguments, ...) \
	static int START(Iname)(const struct oci_mpi_later *c, MPI_Comm comm, \
				MPI_Request *request) \
	{ \
		return OCI_THEIRS(Iname)(OCI_LIST arguments, comm, request); \
	} \
	int OCI_OURS(Name)(OCI_LIST parameters, MPI_Comm comm) \
	{ \
		struct oci_mpi_later call = { __VA_ARGS__ }, *c = &call; \
		struct oci_pmpi_comm *state = counted(comm, name); \
		MPI_Request request; \
		int error; \
\
		if (!twin(state)) { \
			bool helped = oci_pmpi_help_on(comm); \
\
			return oci_pmpi_helped(helped, OCI_THEIRS(Name)(OCI_LIST arguments, comm)); \
		} \
		oci_pmpi_await_decided(state); \
		error = OCI_THEIRS(Iname)(OCI_LIST arguments, comm, &request); \
		return error ? error : oci_pmpi_await(&request, MPI_STATUS_IGNORE); \
	} \
	int OCI_OURS(Iname)(OCI_LIST parameters, MPI_Comm comm, MPI_Request *request) \
	{ \
		struct oci_mpi_later call = { \
			.start = START(Iname), \
			.mpi.collective = ID, \
			.mpi.long_counts = sizeof(OCI_COUNT) > sizeof(int), \
			.mpi.long_displs = sizeof(Displ) > sizeof(int), \
			__VA_ARGS__ \
		}; \
\
		return start_later(&call, counted(comm, name), comm, request); \
	} \
	int OCI_OURS(Init)(OCI_LIST parameters, MPI_Comm comm, MPI_Info info, MPI_Request *request) \
	{ \
		struct oci_mpi_later call = { __VA_ARGS__ }, *c = &call; \
		struct oci_pmpi_comm *state = counted(comm, name); \
\
		if (state) \
			oci_pmpi_await_decided(state); \
		return OCI_THEIRS(Init)(OCI_LIST arguments, comm, info, request); \
	}

NEIGHBOR(Neighbor_allgather, Ineighbor_allgather, Neighbor_allgather_init, "neighbor_allgather",
	 OC_ALLGATHER, int, (SEND_P, RECV_P), (SEND_A, RECV_A), SEND_I, RECV_I)
NEIGHBOR(Neighbor_allgatherv, Ineighbor_allgatherv, Neighbor_allgatherv_init,
	 "neighbor_allgatherv", OC_ALLGATHERV, OCI_DISPL, (SEND_P, RECVV_P), (SEND_A, RECVV_A),
	 SEND_I, RECVV_I)
NEIGHBOR(Neighbor_alltoall, Ineighbor_alltoall, Neighbor_alltoall_init, "neighbor_alltoall",
	 OC_ALLTOALL, int, (SEND_P, RECV_P), (SEND_A, RECV_A), SEND_I, RECV_I)
NEIGHBOR(Neighbor_alltoallv, Ineighbor_alltoallv, Neighbor_alltoallv_init, "neighbor_alltoallv",
	 OC_ALLTOALLV, OCI_DISPL, (SENDV_P, RECVV_P), (SENDV_A, RECVV_A), SENDV_I, RECVV_I)
NEIGHBOR(Neighbor_alltoallw, Ineighbor_alltoallw, Neighbor_alltoallw_init, "neighbor_alltoallw",
	 OC_ALLTOALLV, MPI_Aint, (SENDW_P, RECVW_P), (SENDW_A, RECVW_A), SENDW_I, RECVW_I)
/* clang-format on */
