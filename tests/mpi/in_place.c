/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Alltoall, Alltoallv and Alltoallw in place, large blocks, where less address space is left than
 * the blocks have: a rank needs no second buffer.
 */
#include "case.h"
#include "support/process.h"

#include <stdlib.h>
#include <sys/resource.h>

enum { MOST_RANKS = 8, BLOCK = 8 << 20, LEFT = 12 << 20, WORDS = BLOCK / 8 };

static int rank, ranks;
static int counts[MOST_RANKS], displs[MOST_RANKS], byte_displs[MOST_RANKS];
static MPI_Datatype types[MOST_RANKS];
static uint64_t *words;

static uint64_t word_of(int from, int to, int i)
{
	return ((uint64_t)from << 48 | (uint64_t)to << 40 | (uint64_t)i) * 0x9e3779b97f4a7c15u;
}

static void fill(void)
{
	for (int to = 0; to < ranks; to++)
		for (int i = 0; i < WORDS; i++)
			words[(size_t)to * WORDS + (size_t)i] = word_of(rank, to, i);
}

static void check(const char *what)
{
	for (int from = 0; from < ranks; from++)
		for (int i = 0; i < counts[from]; i++)
			if (words[(size_t)from * WORDS + (size_t)i] != word_of(from, rank, i))
				case_fail("%s: word %d of rank %d's is wrong", what, i, from);
}

static void all(void)
{
	for (int r = 0; r < ranks; r++) {
		/* Alike for both of a pair; with some that are not large. */
		counts[r] = (r + rank) % 3 == 2 ? 100 : WORDS;
		displs[r] = r * WORDS;
		byte_displs[r] = r * BLOCK;
		types[r] = MPI_UINT64_T;
	}
	fill();
	MPI_Alltoallv(MPI_IN_PLACE, NULL, NULL, MPI_UINT64_T, words, counts, displs, MPI_UINT64_T,
		      MPI_COMM_WORLD);
	check("Alltoallv");
	fill();
	MPI_Alltoallw(MPI_IN_PLACE, NULL, NULL, NULL, words, counts, byte_displs, types,
		      MPI_COMM_WORLD);
	check("Alltoallw");
	fill();
	for (int r = 0; r < ranks; r++)
		counts[r] = WORDS;
	MPI_Alltoall(MPI_IN_PLACE, 0, MPI_UINT64_T, words, WORDS, MPI_UINT64_T, MPI_COMM_WORLD);
	check("Alltoall");
	case_count(CASE_ALLTOALL, 1);
	case_count(CASE_ALLTOALLV, 1);
	case_count(CASE_ALLTOALLW, 1);
}

int main(int argc, char **argv)
{
	case_begin(&argc, &argv, &rank, &ranks);
	if (ranks < 3 || ranks > MOST_RANKS)
		case_fail("this test needs 3 to %d ranks", MOST_RANKS);
	words = malloc((size_t)ranks * BLOCK);
	if (!words)
		case_fail("no memory");
	/* The team comes up before there is a limit. */
	case_barrier(MPI_COMM_WORLD);
	if (oct_limit_address_space(LEFT))
		case_fail("no limit");
	all();
	oct_limit(RLIMIT_AS, RLIM_INFINITY);
	return case_end("in_place: blocks of %d bytes with %d bytes of address space left\n", BLOCK,
			LEFT);
}
