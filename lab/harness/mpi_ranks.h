/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All ranks of MPI_COMM_WORLD at a barrier of ours. A header, as what includes it is built once for
 * each MPI.
 */
#ifndef HARNESS_MPI_RANKS_H
#define HARNESS_MPI_RANKS_H

#include <mpi.h>

#include "lab/harness/shm_barrier.h"

/* A rank that waits long in our barrier drives its MPI all the same; see shm_barrier.h. */
static inline void mpi_ranks_drive(void)
{
	int flag;

	MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
}

/* As shm_barrier_meet(). */
static inline int mpi_ranks_meet(struct shm_barrier *barrier, size_t samples)
{
	char name[SHM_BARRIER_NAME_CHARS];
	int rank, ranks, error;

	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (rank == 0)
		shm_barrier_name(name);
	MPI_Bcast(name, sizeof(name), MPI_CHAR, 0, MPI_COMM_WORLD);
	error = shm_barrier_meet(barrier, name, rank, ranks, samples);
	barrier->idle = mpi_ranks_drive;
	return error;
}

#endif
