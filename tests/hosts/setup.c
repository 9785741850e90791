/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * setup: what a communicator over hosts takes. Rank 0 prints "NAME RANKS VALUE" of: the first
 * MPI_Allreduce, as long as its last rank takes, and one of later ones, in us; what a rank has
 * allocated more, in KiB, after blocking calls and after nonblocking ones, of the rank in the
 * middle and of that which has least, as an MPI's lists of messages that come early are in it, too.
 * (What is resident varies with what the kernel takes back.) Results of the calls are checked.
 * Before the first call the ranks have met by messages, so that connections of the MPI's own are
 * there where these go.
 */
#include "meet.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

enum { LATER = 20, WORDS = 1000 };

static double allocated_kib(void)
{
	struct mallinfo2 now = mallinfo2();

	return (double)(now.uordblks + now.hblkhd) / 1024;
}

static void must(int right, const char *what)
{
	if (right)
		return;
	fprintf(stderr, "setup: rank %d of %d: %s is wrong\n", rank, ranks, what);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

enum what { LEAST, MIDDLE, LARGEST };

/* To rank 0, by messages. */
static void print(const char *name, double value, enum what what)
{
	double *all;

	if (rank) {
		MPI_Send(&value, 1, MPI_DOUBLE, 0, 2, MPI_COMM_WORLD);
		return;
	}
	all = malloc((size_t)ranks * sizeof(*all));
	if (!all)
		MPI_Abort(MPI_COMM_WORLD, 1);
	all[0] = value;
	for (int r = 1; r < ranks; r++)
		MPI_Recv(&all[r], 1, MPI_DOUBLE, r, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	qsort(all, (size_t)ranks, sizeof(all[0]), by_value);
	printf("%s %d %.1f\n", name, ranks, all[(int)what * (ranks - 1) / 2]);
	fflush(stdout);
	free(all);
}

static double allreduce_us(void)
{
	double one = 1, sum = 0, begin = now_us();

	MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	begin = now_us() - begin;
	must(sum == ranks, "Allreduce");
	return begin;
}

static void blocking(void)
{
	int *all = calloc((size_t)ranks, sizeof(*all)), words[WORDS];

	if (!all)
		MPI_Abort(MPI_COMM_WORLD, 1);
	for (int i = 0; i < WORDS; i++)
		words[i] = rank ? 0 : i;
	MPI_Bcast(words, WORDS, MPI_INT, 0, MPI_COMM_WORLD);
	for (int i = 0; i < WORDS; i++)
		must(words[i] == i, "Bcast");
	MPI_Allgather(&rank, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD);
	for (int r = 0; r < ranks; r++)
		must(all[r] == r, "Allgather");
	MPI_Gather(&rank, 1, MPI_INT, all, 1, MPI_INT, 0, MPI_COMM_WORLD);
	for (int r = 0; r < ranks && !rank; r++)
		must(all[r] == r, "Gather");
	free(all);
}

/* The barrier makes what those behind it need. */
static void nonblocking(void)
{
	MPI_Request request;

	for (int i = 0; i < 4; i++) {
		int one = 1, sum = 0;

		MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
		must(sum == ranks, "Iallreduce");
		if (!i)
			MPI_Barrier(MPI_COMM_WORLD);
	}
}

int main(int argc, char **argv)
{
	double first, us[LATER], before, after, blocking_kib, nonblocking_kib;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	meet();
	before = allocated_kib();
	meet();
	first = allreduce_us();
	blocking();
	after = allocated_kib();
	blocking_kib = after - before;
	print("first_us", first, LARGEST);
	for (int i = 0; i < LATER; i++) {
		meet();
		us[i] = allreduce_us();
	}
	qsort(us, LATER, sizeof(us[0]), by_value);
	print("later_us", us[LATER / 2], LARGEST);
	print("memory_kib", blocking_kib, MIDDLE);
	print("memory_least_kib", blocking_kib, LEAST);
	after = allocated_kib();
	nonblocking();
	nonblocking_kib = allocated_kib() - after;
	print("nonblocking_kib", nonblocking_kib, MIDDLE);
	print("nonblocking_least_kib", nonblocking_kib, LEAST);
	MPI_Finalize();
	return 0;
}
