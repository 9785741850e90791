/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks that call different things on one communicator: an error that names two of them, and no
 * rank stays behind. Each mismatch has a communicator of its own, as the error ends its team.
 */
#include "case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROOT, COLLECTIVE, SIZE, OPERATION, MISMATCHES };
enum { COUNT = 1000, ALL_RETURN_S = 5 };

static double in[4 * COUNT], out[4 * COUNT];

static int wrong_call(int which, MPI_Comm comm, int rank)
{
	int odd = rank == 1;

	switch (which) {
	case ROOT:
		return MPI_Bcast(in, COUNT, MPI_DOUBLE, odd, comm);
	case COLLECTIVE:
		return odd ? MPI_Barrier(comm) :
			     MPI_Allreduce(in, out, COUNT, MPI_DOUBLE, MPI_SUM, comm);
	case SIZE:
		return MPI_Allreduce(in, out, odd ? COUNT / 2 : COUNT, MPI_DOUBLE, MPI_SUM, comm);
	default:
		return MPI_Allreduce(in, out, COUNT, MPI_DOUBLE, odd ? MPI_MAX : MPI_SUM, comm);
	}
}

/* How many different ranks the sentence names as "rank N". */
static int ranks_named(const char *sentence)
{
	int first = -1, found = 0, rank;

	while ((sentence = strstr(sentence, "rank "))) {
		if (sscanf(sentence, "rank %d", &rank) == 1 && rank != first) {
			first = rank;
			found++;
		}
		sentence += 5;
	}
	return found;
}

/* Only the ranks that notice get the error; to those that are through, nothing was wrong. */
static int report(int which, int rank, int error)
{
	char sentence[MPI_MAX_ERROR_STRING];
	int length;

	if (error == MPI_SUCCESS)
		return 0;
	MPI_Error_string(error, sentence, &length);
	printf("mismatch %d, rank %d: %s\n", which, rank, sentence);
	if (ranks_named(sentence) < 2)
		printf("WRONG: the sentence does not name two ranks\n");
	fflush(stdout);
	return 1;
}

/* By point-to-point messages: how many ranks got an error. */
static int sum_of(int mine, int rank, int ranks)
{
	int sum = mine, other;

	if (rank) {
		MPI_Send(&mine, 1, MPI_INT, 0, 3, MPI_COMM_WORLD);
		MPI_Recv(&sum, 1, MPI_INT, 0, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		return sum;
	}
	for (int r = 1; r < ranks; r++) {
		MPI_Recv(&other, 1, MPI_INT, r, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		sum += other;
	}
	for (int r = 1; r < ranks; r++)
		MPI_Send(&sum, 1, MPI_INT, r, 4, MPI_COMM_WORLD);
	return sum;
}

int main(int argc, char **argv)
{
	int ranks, rank;

	case_begin(&argc, &argv);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	for (int which = 0; which < MISMATCHES; which++) {
		double start;
		MPI_Comm comm;
		int noticed;

		MPI_Comm_dup(MPI_COMM_WORLD, &comm);
		MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
		MPI_Allreduce(in, out, COUNT, MPI_DOUBLE, MPI_SUM, comm);
		start = case_seconds();
		noticed = report(which, rank, wrong_call(which, comm, rank));
		if (case_seconds() - start > ALL_RETURN_S)
			case_fail("mismatch %d: it returned only after %.1f s", which,
				  case_seconds() - start);
		if (!sum_of(noticed, rank, ranks))
			case_fail("mismatch %d: no rank got an error", which);
		MPI_Comm_free(&comm);
	}
	if (!rank)
		printf("mismatch: %d kinds on %d ranks, each an error that names two ranks\n",
		       MISMATCHES, ranks);
	MPI_Finalize();
	return 0;
}
