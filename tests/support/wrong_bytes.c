/* SPDX-License-Identifier: BSD-3-Clause */
/* Linked to a program: its MPI_Allgather delivers a wrong byte. */
#include <mpi.h>

int MPI_Allgather(const void *send, int send_count, MPI_Datatype send_type, void *recv,
		  int recv_count, MPI_Datatype recv_type, MPI_Comm comm)
{
	int err = PMPI_Allgather(send, send_count, send_type, recv, recv_count, recv_type, comm);

	/* What a library tells itself is of other types. */
	if (!err && recv_count && recv_type == MPI_BYTE)
		((unsigned char *)recv)[recv_count - 1] ^= 1;
	return err;
}
