/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One-sided atomics on memory of malloc, by each rank on its own window and on its neighbor's. With
 * a malloc that is not the C library's MPICH 4.0.2 gets them wrong where UCX watches mappings.
 */
#include "case.h"

#include <stdlib.h>

enum { COUNTS = 100, TURNS = 2 };

static void count(int target, int from, MPI_Win window)
{
	for (int old = from; old < from + COUNTS; old++) {
		int next = old + 1, found = -1;

		MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, window);
		MPI_Compare_and_swap(&next, &old, &found, MPI_INT, target, 0, window);
		MPI_Win_unlock(target, window);
		if (found != old)
			case_fail("an atomic operation found %d, not %d", found, old);
	}
}

int main(int argc, char **argv)
{
	int rank, ranks, *counter;
	MPI_Win window;

	case_begin(&argc, &argv, &rank, &ranks);
	counter = malloc(sizeof(*counter));
	if (!counter)
		case_fail("no memory");
	*counter = 0;
	MPI_Win_create(counter, sizeof(*counter), sizeof(*counter), MPI_INFO_NULL, MPI_COMM_WORLD,
		       &window);
	for (int turn = 0; turn < TURNS; turn++) {
		count((rank + turn) % ranks, turn * COUNTS, window);
		case_barrier(MPI_COMM_WORLD);
	}
	MPI_Win_free(&window);
	free(counter);
	return case_end("atomics: %d of each rank right\n", TURNS * COUNTS);
}
