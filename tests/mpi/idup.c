/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A communicator's first collective, in which what it takes is made, beside an MPI_Comm_idup: of
 * another communicator, which some ranks begin before the collective and others after it, and of
 * the same one.
 */
#include "case.h"

#include <unistd.h>

enum { ROUNDS = 20 };

static int rank, ranks;

static void reduce(MPI_Comm comm, const char *which)
{
	int sum;

	MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
	if (sum != ranks * (ranks - 1) / 2)
		case_fail("the sum on the %s communicator is %d", which, sum);
}

int main(int argc, char **argv)
{
	case_begin(&argc, &argv, &rank, &ranks);
	for (int round = 0; round < ROUNDS; round++) {
		MPI_Comm first, of, copy;
		MPI_Request request;
		int early = (rank + round) % 2;

		MPI_Comm_dup(MPI_COMM_WORLD, &first);
		of = round % 3 ? MPI_COMM_WORLD : first;
		early |= of == first;
		usleep(rank * 1000);
		if (early)
			MPI_Comm_idup(of, &copy, &request);
		reduce(first, "first");
		if (!early)
			MPI_Comm_idup(of, &copy, &request);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
		reduce(copy, "second");
		MPI_Comm_free(&copy);
		MPI_Comm_free(&first);
	}
	return case_end("idup: %d rounds on %d ranks\n", ROUNDS, ranks);
}
