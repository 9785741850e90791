/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Totals over 2 GiB: byte offsets beyond what an int holds, while every count is an int, or not.
 *
 * Exits with 77 and a sentence where the machine's memory is too short.
 */
#include "checked.h"
#include "support/process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
	COUNT = 280 * 1000 * 1000,
	STEP = 1009,
	SKIPPED = 77,
	HUGE_PAGE = 2 << 20
}; /* of doubles: 2.09 GiB */

static int rank, ranks;
static double *buffer;

static double value(int from, long i)
{
	return (double)(from * 3 + i % 100003);
}

/*
 * What is looked at: every so many doubles, and the last ones. All else is moved, too, but is
 * nobody's affair: to write and to check it would be most of the time.
 */
static long next(long i, long count)
{
	return i + (i + STEP < count - STEP ? STEP : 1);
}

static void fill(long first, long count)
{
	for (long i = 0; i < count; i = next(i, count))
		buffer[first + i] = value(rank, i);
}

static void clear(long first, long count)
{
	for (long i = 0; i < count; i = next(i, count))
		buffer[first + i] = -1;
}

static void check(long first, long count, int from, int sum, const char *what)
{
	for (long i = 0; i < count; i = next(i, count)) {
		double should = value(from, i);

		for (int r = 1; sum && r < ranks; r++)
			should += value(r, i);
		if (buffer[first + i] != should)
			case_fail("%s: double %ld of %ld is %g, not %g", what, first + i, count,
				  buffer[first + i], should);
	}
}

static void bcast(int root, enum form form)
{
	MPI_Request request;

	clear(0, COUNT);
	if (rank == root)
		fill(0, COUNT);
	if (form == FORM_BLOCKING) {
		MPI_Bcast(buffer, COUNT, MPI_DOUBLE, root, MPI_COMM_WORLD);
	} else {
		MPI_Ibcast(buffer, COUNT, MPI_DOUBLE, root, MPI_COMM_WORLD, &request);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
	}
	case_count(CASE_BCAST, 1);
	check(0, COUNT, root, 0, "Bcast");
}

#ifdef MPICH_VERSION
/* Each rank counts in its way; bytes are more than an int can count. */
static void bcast_of_large_counts(void)
{
	clear(0, COUNT);
	if (!rank)
		fill(0, COUNT);
	if (rank % 2)
		MPI_Bcast_c(buffer, COUNT * sizeof(double), MPI_BYTE, 0, MPI_COMM_WORLD);
	else
		MPI_Bcast(buffer, COUNT, MPI_DOUBLE, 0, MPI_COMM_WORLD);
	case_count(CASE_BCAST, 1);
	check(0, COUNT, 0, 0, "Bcast with large counts");
}
#else
static void bcast_of_large_counts(void) /* Open MPI 4.1 has none */
{
}
#endif

static void allgather(int with_counts)
{
	int counts[CHECKED_RANKS], places[CHECKED_RANKS], block = COUNT / ranks;

	for (int r = 0; r < ranks; r++) {
		clear((long)r * block, block);
		counts[r] = block;
		places[r] = r * block;
	}
	fill((long)rank * block, block);
	if (with_counts)
		MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DOUBLE, buffer, counts, places, MPI_DOUBLE,
			       MPI_COMM_WORLD);
	else
		MPI_Allgather(MPI_IN_PLACE, 0, MPI_DOUBLE, buffer, block, MPI_DOUBLE,
			      MPI_COMM_WORLD);
	case_count(with_counts ? CASE_ALLGATHERV : CASE_ALLGATHER, 1);
	for (int r = 0; r < ranks; r++)
		check((long)r * block, block, r, 0, with_counts ? "Allgatherv" : "Allgather");
}

/* From the buffer's end backwards: every displacement is negative, the first beyond -2 GiB. Nearly
 * all of it is the others', and of two ranks one block; the root's own one moves, too. */
static void gatherv(void)
{
	enum { OWN = 1000 };
	int counts[CHECKED_RANKS], places[CHECKED_RANKS], root = ranks - 1;
	int block = ranks > 1 ? (COUNT - OWN) / (ranks - 1) : 0;
	double own[OWN];

	for (int i = 0; i < OWN; i++)
		own[i] = value(root, i);
	for (int r = 0; r < ranks; r++) {
		counts[r] = r == root ? OWN : block;
		places[r] = r * block - COUNT;
		clear((long)r * block, counts[r]);
	}
	if (rank != root)
		fill(0, block);
	MPI_Gatherv(rank == root ? own : buffer, counts[rank], MPI_DOUBLE, buffer + COUNT, counts,
		    places, MPI_DOUBLE, root, MPI_COMM_WORLD);
	case_count(CASE_GATHERV, 1);
	for (int r = 0; rank == root && r < ranks; r++)
		check((long)r * block, counts[r], r, 0, "Gatherv");
}

static void allreduce(void)
{
	fill(0, COUNT);
	MPI_Allreduce(MPI_IN_PLACE, buffer, COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	case_count(CASE_ALLREDUCE, 1);
	check(0, COUNT, 0, 1, "Allreduce");
}

/* Blocks that begin beyond 2 GiB, and a type of which one element is over 2 GiB long. */
static void far_apart(void)
{
	MPI_Datatype type;

	memset(buffer, 0, COUNT * sizeof(double));
	MPI_Type_vector(2, 1000, COUNT - 2000, MPI_DOUBLE, &type);
	MPI_Type_commit(&type);
	if (!rank) {
		fill(0, 1000);
		fill(COUNT - 2000, 1000);
	}
	MPI_Bcast(buffer, 1, type, 0, MPI_COMM_WORLD);
	case_count(CASE_BCAST, 1);
	check(0, 1000, 0, 0, "Bcast of a long vector");
	check(COUNT - 2000, 1000, 0, 0, "Bcast of a long vector");
	for (long i = 1000; i < COUNT - 2000; i += STEP)
		if (buffer[i] != 0)
			case_fail("Bcast of a long vector wrote between its blocks");
	MPI_Type_free(&type);
}

int main(int argc, char **argv)
{
	long need, have = oct_field("/proc/meminfo", "MemAvailable: %ld") / 1024;

	case_begin(&argc, &argv, &rank, &ranks);
	need = ranks * (COUNT / 1000 * 8 / 1000) * 3 / 2;
	MPI_Bcast(&have, 1, MPI_LONG, 0, MPI_COMM_WORLD);
	if (have < need) {
		if (!rank)
			printf("skipped: %ld MiB of memory are available, this test takes %ld\n",
			       have, need);
		MPI_Finalize();
		return SKIPPED;
	}
	buffer = aligned_alloc(HUGE_PAGE,
			       (COUNT * sizeof(double) + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE);
	if (!buffer)
		case_fail("no memory");
	/* A third of the time. */
	madvise(buffer, COUNT * sizeof(double), MADV_HUGEPAGE);
	bcast(ranks - 1, FORM_BLOCKING);
	bcast(0, FORM_NONBLOCKING);
	bcast_of_large_counts();
	allgather(0);
	allgather(1);
	gatherv();
	allreduce();
	far_apart();
	free(buffer);
	return case_end("big: %.2f GiB on each of %d ranks, in all ways, right\n",
			COUNT * 8.0 / (1 << 30), ranks);
}
