// SPDX-License-Identifier: BSD-3-Clause
#include "mpi_call.h"

#include <errno.h>
#include <limits.h>
#include <mpi.h>
#include <stdlib.h>

/* Elements of one rank's block, or of the message: floats where they are added, else bytes. */
static int elements(const struct collective_call *call)
{
	size_t each = oci_is_reduction(call->collective) ? sizeof(float) : 1;

	return (int)(call->bytes / each);
}

int mpi_call_create(struct mpi_call *mpi, const struct collective_call *call)
{
	int n = elements(call), rank;

	*mpi = (struct mpi_call){ .call = call };
	if (!oci_has_counts(call->collective)) {
		return 0;
	}
	if (n > 0 && call->ranks - 1 > INT_MAX / n) {
		return -EOVERFLOW;
	}
	mpi->counts = malloc((size_t)call->ranks * sizeof(*mpi->counts));
	mpi->displs = malloc((size_t)call->ranks * sizeof(*mpi->displs));
	if (!mpi->counts || !mpi->displs) {
		return -ENOMEM;
	}
	for (rank = 0; rank < call->ranks; rank++) {
		mpi->counts[rank] = n;
		mpi->displs[rank] = rank * n;
	}
	return 0;
}

void mpi_call_destroy(struct mpi_call *mpi)
{
	free(mpi->counts);
	free(mpi->displs);
}

static void run_with_counts(const struct mpi_call *mpi, void *send, void *recv)
{
	const struct collective_call *call = mpi->call;
	const int *counts = mpi->counts, *displs = mpi->displs;
	MPI_Comm comm = MPI_COMM_WORLD;
	int n = counts[0];

	switch (call->collective) {
	case OC_SCATTERV:
		MPI_Scatterv(send, counts, displs, MPI_BYTE, recv, n, MPI_BYTE, call->root, comm);
		break;
	case OC_GATHERV:
		MPI_Gatherv(send, n, MPI_BYTE, recv, counts, displs, MPI_BYTE, call->root, comm);
		break;
	case OC_ALLGATHERV:
		MPI_Allgatherv(send, n, MPI_BYTE, recv, counts, displs, MPI_BYTE, comm);
		break;
	case OC_ALLTOALLV:
		MPI_Alltoallv(send, counts, displs, MPI_BYTE, recv, counts, displs, MPI_BYTE, comm);
		break;
	default:
		MPI_Reduce_scatter(send, recv, counts, MPI_FLOAT, MPI_SUM, comm);
	}
}

static void run_reduction(const struct collective_call *call, void *send, void *recv)
{
	MPI_Comm comm = MPI_COMM_WORLD;
	int n = elements(call);
	static float nothing;

	switch (call->collective) {
	case OC_REDUCE:
		MPI_Reduce(send, recv, n, MPI_FLOAT, MPI_SUM, call->root, comm);
		break;
	case OC_ALLREDUCE:
		MPI_Allreduce(send, recv, n, MPI_FLOAT, MPI_SUM, comm);
		break;
	case OC_REDUCE_SCATTER_BLOCK:
		MPI_Reduce_scatter_block(send, recv, n, MPI_FLOAT, MPI_SUM, comm);
		break;
	case OC_SCAN:
		MPI_Scan(send, recv, n, MPI_FLOAT, MPI_SUM, comm);
		break;
	default:
		/* Rank 0 gets nothing, but MPICH wants an address of it. */
		MPI_Exscan(send, recv ? recv : &nothing, n, MPI_FLOAT, MPI_SUM, comm);
	}
}

void mpi_call_run(const struct mpi_call *mpi, void *send, void *recv)
{
	const struct collective_call *call = mpi->call;
	MPI_Comm comm = MPI_COMM_WORLD;
	int n = elements(call);

	if (mpi->counts) {
		run_with_counts(mpi, send, recv);
		return;
	}
	switch (call->collective) {
	case OC_BCAST:
		MPI_Bcast(call->rank == call->root ? send : recv, n, MPI_BYTE, call->root, comm);
		break;
	case OC_SCATTER:
		MPI_Scatter(send, n, MPI_BYTE, recv, n, MPI_BYTE, call->root, comm);
		break;
	case OC_GATHER:
		MPI_Gather(send, n, MPI_BYTE, recv, n, MPI_BYTE, call->root, comm);
		break;
	case OC_ALLGATHER:
		MPI_Allgather(send, n, MPI_BYTE, recv, n, MPI_BYTE, comm);
		break;
	case OC_ALLTOALL:
		MPI_Alltoall(send, n, MPI_BYTE, recv, n, MPI_BYTE, comm);
		break;
	case OC_BARRIER:
		MPI_Barrier(comm);
		break;
	default:
		run_reduction(call, send, recv);
	}
}
