/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks that call different things on one communicator: an error that names two of them, and no
 * rank stays behind. Each mismatch has a communicator of its own, as most such errors end its team.
 */
#include "case.h"

#include "support/process.h"

#include <stdio.h>
#include <string.h>

/* All return within so many seconds and so many times what as many matching calls take. */
enum { COUNT = 1000, LATER_CALLS = 20, ALL_RETURN_S = 5, TIMES = 5 };

static double in[4 * COUNT], out[4 * COUNT];

static int bcast_roots(MPI_Comm comm, int odd)
{
	return MPI_Bcast(in, COUNT, MPI_DOUBLE, odd, comm);
}

static int gather_roots(MPI_Comm comm, int odd)
{
	return MPI_Gather(in, 10, MPI_DOUBLE, out, 10, MPI_DOUBLE, odd, comm);
}

static int reduce_roots(MPI_Comm comm, int odd)
{
	return MPI_Reduce(in, out, COUNT, MPI_DOUBLE, MPI_SUM, odd, comm);
}

static int collectives(MPI_Comm comm, int odd)
{
	return odd ? MPI_Barrier(comm) : MPI_Allreduce(in, out, COUNT, MPI_DOUBLE, MPI_SUM, comm);
}

static int sizes(MPI_Comm comm, int odd)
{
	return MPI_Allreduce(in, out, odd ? COUNT / 2 : COUNT, MPI_DOUBLE, MPI_SUM, comm);
}

static int operations(MPI_Comm comm, int odd)
{
	return MPI_Allreduce(in, out, COUNT, MPI_DOUBLE, odd ? MPI_MAX : MPI_SUM, comm);
}

static const struct mismatch {
	const char *name;
	int (*call)(MPI_Comm comm, int odd);
} mismatches[] = {
	{ "roots of Bcast", bcast_roots },
	{ "roots of Gather", gather_roots },
	{ "roots of Reduce", reduce_roots },
	{ "collectives", collectives },
	{ "sizes", sizes },
	{ "operations", operations },
};
enum { MISMATCHES = sizeof(mismatches) / sizeof(mismatches[0]) };

/*
 * Two ranks that both take themselves for the root of a Bcast do not wait for each other, so it may
 * be a later call that notices; none may hang.
 */
static int calls_until_error(const struct mismatch *mismatch, MPI_Comm comm, int rank)
{
	int error = mismatch->call(comm, rank == 1);

	for (int i = 0; i < LATER_CALLS && error == MPI_SUCCESS; i++)
		error = MPI_Allreduce(in, out, COUNT, MPI_DOUBLE, MPI_SUM, comm);
	return error;
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

/* Whether this rank got an error that names two ranks; the peers of one that did may just be told.
 */
static int report(const char *name, int rank, int error)
{
	char sentence[MPI_MAX_ERROR_STRING];
	int length;

	if (error == MPI_SUCCESS)
		return 0;
	MPI_Error_string(error, sentence, &length);
	printf("different %s, rank %d: %s\n", name, rank, sentence);
	fflush(stdout);
	return ranks_named(sentence) == 2;
}

/* By point-to-point messages: how many ranks noticed. */
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

static void run(const struct mismatch *mismatch, int rank, int ranks)
{
	double start, waited, match, took;
	MPI_Comm comm;
	int noticed;

	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
	MPI_Allreduce(in, out, COUNT, MPI_DOUBLE, MPI_SUM, comm);
	start = case_seconds();
	for (int i = 0; i < LATER_CALLS; i++)
		MPI_Allreduce(in, out, COUNT, MPI_DOUBLE, MPI_SUM, comm);
	match = case_seconds() - start;
	waited = oct_waited_s();
	start = case_seconds();
	noticed = report(mismatch->name, rank, calls_until_error(mismatch, comm, rank));
	took = oct_given_s(start, waited);
	if (took > ALL_RETURN_S + TIMES * match)
		case_fail("different %s: it returned only after %.1f s; %d calls take %.3f s here",
			  mismatch->name, took, LATER_CALLS, match);
	if (!sum_of(noticed, rank, ranks))
		printf("WRONG: different %s: no rank got an error that names two\n",
		       mismatch->name);
	fflush(stdout);
	MPI_Comm_free(&comm);
}

/*
 * A short Bcast whose readers expect another length than the root gives: they get an error that
 * names the two, the root does not, and the communicator can be used as before.
 */
static int lengths(MPI_Comm comm, int rank, int ranks, int at_root, int elsewhere)
{
	double sum[2] = { rank, 1 }, all[2] = { 0, 0 };
	int error = MPI_Bcast(in, rank ? elsewhere : at_root, MPI_DOUBLE, 0, comm), wrong;

	wrong = rank ? !report("lengths", rank, error) : error != MPI_SUCCESS;
	error = MPI_Allreduce(sum, all, 2, MPI_DOUBLE, MPI_SUM, comm);
	return wrong || error != MPI_SUCCESS || (int)all[0] != ranks * (ranks - 1) / 2 ||
	       (int)all[1] != ranks;
}

static void run_lengths(int rank, int ranks)
{
	MPI_Comm comm;
	int wrong;

	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
	wrong = lengths(comm, rank, ranks, 1, 10) + lengths(comm, rank, ranks, 10, 1);
	if (sum_of(wrong, rank, ranks) && !rank)
		printf("WRONG: different lengths: not an error of the readers alone\n");
	fflush(stdout);
	MPI_Comm_free(&comm);
}

int main(int argc, char **argv)
{
	int ranks, rank;

	case_begin(&argc, &argv, &rank, &ranks);
	for (int i = 0; i < MISMATCHES; i++)
		run(&mismatches[i], rank, ranks);
	run_lengths(rank, ranks);
	return case_end("mismatch: %d kinds on %d ranks, each an error that names two ranks\n",
			MISMATCHES, ranks);
}
