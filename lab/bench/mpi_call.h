/* SPDX-License-Identifier: BSD-3-Clause */
/* A collective as a call of MPI. */
#ifndef BENCH_MPI_CALL_H
#define BENCH_MPI_CALL_H

#include "collective.h"

struct mpi_call {
	const struct collective_call *call;
	int *counts; /* of a v-variant, else NULL: elements of each rank's block */
	int *displs; /* and where it begins */
};

/*
 * Makes ready what the calls of a cell have in common. @call must outlive it. Returns 0, -ENOMEM,
 * or -EOVERFLOW where MPI's ints cannot say where the last block begins. Undone by
 * mpi_call_destroy, also after a failure.
 */
int mpi_call_create(struct mpi_call *mpi, const struct collective_call *call);
void mpi_call_destroy(struct mpi_call *mpi);

void mpi_call_run(const struct mpi_call *mpi, void *send, void *recv);

#endif
