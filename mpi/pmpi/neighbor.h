/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The five neighbourhood collectives in their three forms, with counts of OCI_COUNT, displacements
 * of OCI_DISPL and names as OCI_NAME makes them; included once for each kind of count.
 */
/* clang-format off */
#define NEIGHBOR(name, first, second) \
	int OCI_OURS(Neighbor_##name)(OCI_PARAMETERS(first, second, NIL) MPI_Comm comm) \
	{ \
		MPI_Request request; \
		int error; \
\
		if (!twin(counted(comm, "neighbor_" #name))) \
			return OCI_HELPED(OCI_THEIRS(Neighbor_##name)( \
				OCI_NAMES(first, second, NIL) comm)); \
		error = OCI_THEIRS(Ineighbor_##name)(OCI_NAMES(first, second, NIL) comm, &request); \
		return error ? error : oci_pmpi_await(&request, MPI_STATUS_IGNORE); \
	} \
	int OCI_OURS(Ineighbor_##name)(OCI_PARAMETERS(first, second, NIL) MPI_Comm comm, \
				       MPI_Request *request) \
	{ \
		counted(comm, "neighbor_" #name); \
		return OCI_THEIRS(Ineighbor_##name)(OCI_NAMES(first, second, NIL) comm, request); \
	} \
	int OCI_OURS(Neighbor_##name##_init)(OCI_PARAMETERS(first, second, NIL) MPI_Comm comm, \
					     MPI_Info info, MPI_Request *request) \
	{ \
		counted(comm, "neighbor_" #name); \
		return OCI_THEIRS(Neighbor_##name##_init)(OCI_NAMES(first, second, NIL) comm, info, \
							  request); \
	}

NEIGHBOR(allgather, SEND, RECV)
NEIGHBOR(allgatherv, SEND, RECVV)
NEIGHBOR(alltoall, SEND, RECV)
NEIGHBOR(alltoallv, SENDV, RECVV)
/* Displacements of bytes, of either kind of count. */
#undef OCI_DISPL
#define OCI_DISPL MPI_Aint
NEIGHBOR(alltoallw, SENDW, RECVW)
/* clang-format on */
#undef NEIGHBOR
