/* SPDX-License-Identifier: BSD-3-Clause */
/* Linked to a program: its MPI_Allgather delivers a wrong byte on the last rank. */
#include <mpi.h>

int MPI_Allgather(const void *send, int send_count, MPI_Datatype send_type, void *recv,
		  int recv_count, MPI_Datatype recv_type, MPI_Comm comm)
{
	int err = PMPI_Allgather(send, send_count, send_type, recv, recv_count, recv_type, comm);
	int rank = 0, size = 0;

	PMPI_Comm_rank(comm, &rank);
	PMPI_Comm_size(comm, &size);
	/* What a library tells itself is of other types. */
	if (!err && recv_count && recv_type == MPI_BYTE && rank == size - 1)
		((unsigned char *)recv)[recv_count - 1] ^= 1;
	return err;
}
