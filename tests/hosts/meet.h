/* SPDX-License-Identifier: BSD-3-Clause */
/* How programs over hosts begin together, without a collective, what time it is, and the order of
 * what they measured. */
#ifndef OC_TESTS_HOSTS_MEET_H
#define OC_TESTS_HOSTS_MEET_H

#include <mpi.h>
#include <time.h>

static int rank, ranks;

static inline double now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}

static inline void meet(void)
{
	for (int step = 1; step < ranks; step *= 2)
		MPI_Sendrecv(NULL, 0, MPI_BYTE, (rank + step) % ranks, 1, NULL, 0, MPI_BYTE,
			     (rank + ranks - step) % ranks, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static inline int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

#endif
