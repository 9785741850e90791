/* SPDX-License-Identifier: BSD-3-Clause */
/* Open MPI or MPICH, as it is. Their default is to end the job on an error. */
#include "pingpong.h"

#include <mpi.h>
#include <stdlib.h>
#include <string.h>

static MPI_Win exposed = MPI_WIN_NULL;

void transport_open(struct transport *me, int *argc, char ***argv)
{
	int rank, size;

	MPI_Init(argc, argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	*me = (struct transport){ (uint32_t)rank, (uint32_t)size };
}

void transport_close(int status)
{
	if (status)
		MPI_Abort(MPI_COMM_WORLD, status);
	if (exposed != MPI_WIN_NULL) {
		MPI_Win_unlock_all(exposed);
		MPI_Win_free(&exposed);
	}
	MPI_Finalize();
	exit(status);
}

void transport_send(uint32_t peer, const void *buffer, size_t bytes)
{
	MPI_Send(buffer, (int)bytes, MPI_BYTE, (int)peer, 0, MPI_COMM_WORLD);
}

void transport_recv(uint32_t peer, void *buffer, size_t bytes)
{
	MPI_Recv(buffer, (int)bytes, MPI_BYTE, (int)peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

void transport_window(const struct window *w, size_t bytes)
{
	MPI_Request request[w->sends + w->receives];

	for (unsigned int i = 0; i < w->receives; i++)
		MPI_Irecv(w->recv + (w->one_place ? 0 : i * bytes), (int)bytes, MPI_BYTE,
			  (int)w->from[i], 0, MPI_COMM_WORLD, &request[i]);
	for (unsigned int i = 0; i < w->sends; i++)
		MPI_Isend(w->send, (int)bytes, MPI_BYTE, (int)w->to[i], 0, MPI_COMM_WORLD,
			  &request[w->receives + i]);
	for (unsigned int i = 0; i < w->sends + w->receives; i++)
		MPI_Wait(&request[i], MPI_STATUS_IGNORE);
}

void transport_alltoall(const void *send, void *recv, size_t bytes)
{
	MPI_Alltoall(send, (int)bytes, MPI_BYTE, recv, (int)bytes, MPI_BYTE, MPI_COMM_WORLD);
}

void *transport_expose(void *memory, size_t bytes)
{
	if (memory)
		MPI_Win_create(memory, (MPI_Aint)bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &exposed);
	else
		MPI_Win_allocate((MPI_Aint)bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory,
				 &exposed);
	MPI_Win_lock_all(MPI_MODE_NOCHECK, exposed);
	return memory;
}

void transport_meet(void)
{
	MPI_Win_sync(exposed);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_sync(exposed);
}

void transport_operate(enum operation operation, void *origin, size_t bytes)
{
	int n = (int)bytes;

	if (operation == OPERATION_PUT)
		MPI_Put(origin, n, MPI_BYTE, 1, 0, n, MPI_BYTE, exposed);
	else if (operation == OPERATION_GET)
		MPI_Get(origin, n, MPI_BYTE, 1, 0, n, MPI_BYTE, exposed);
	else
		MPI_Accumulate(origin, n, MPI_BYTE, 1, 0, n, MPI_BYTE, MPI_BXOR, exposed);
	MPI_Win_flush(1, exposed);
}

/* What a program that knows nothing of onecopy has. */
void *transport_memory(size_t bytes, bool shared)
{
	void *memory = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);

	(void)shared;
	if (memory)
		memset(memory, 0, bytes);
	return memory;
}
