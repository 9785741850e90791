/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Functions with large counts (MPI_..._c, MPICH alone): datatypes of their constructors, and calls
 * of each collective that some ranks make with large counts and the others with int ones, which
 * match, in all three forms. With a word as argument: such calls where they are the MPI's.
 */
#include "large.h"
#include "case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_RANKS = 8, MOST_BLOCK = 9000, INTS = MOST_RANKS * MOST_BLOCK };
enum form { BLOCKING, NONBLOCKING, PERSISTENT, FORMS };

static int rank, ranks, block;
static MPI_Comm comm;

static int in[INTS], out[INTS], wanted[INTS];
static int counts[MOST_RANKS], places[MOST_RANKS], byte_places[MOST_RANKS];
static MPI_Count large_counts[MOST_RANKS];
static MPI_Aint large_places[MOST_RANKS], large_byte_places[MOST_RANKS];
static MPI_Datatype types[MOST_RANKS];

static void set_block(int ints)
{
	block = ints;
	for (int r = 0; r < ranks; r++) {
		large_counts[r] = counts[r] = block;
		large_places[r] = places[r] = r * block;
		large_byte_places[r] = byte_places[r] = r * block * (int)sizeof(int);
		types[r] = MPI_INT;
	}
}

/* Element i of what a rank gives. */
static int given(int of, int i)
{
	return 100003 * (of + 1) + i;
}

/* Block `from` of a rank's as block `at` of the result; sums over the ranks below `end`. */
static void want(int at, int of, int from)
{
	for (int i = 0; i < block; i++)
		wanted[at * block + i] = given(of, from * block + i);
}

static void want_from_all(int from)
{
	for (int r = 0; r < ranks; r++)
		want(r, r, from);
}

static void want_sums(int end, int from)
{
	for (int i = 0; end && i < block; i++) {
		wanted[i] = 0;
		for (int r = 0; r < end; r++)
			wanted[i] += given(r, from * block + i);
	}
}

#define ALL in, block, MPI_INT, out, block, MPI_INT
#define SUM in, out, block, MPI_INT, MPI_SUM
#define ROOT(arrives) (rank ? (void)0 : (arrives))

/* X(name, Name, Iname, ID, (int arguments), (large ones), what is to arrive) */
#define COLLECTIVES(X)                                                                             \
	X(bcast, Bcast, Ibcast, BCAST, (rank ? out : in, block, MPI_INT, 0),                       \
	  (rank ? out : in, block, MPI_INT, 0), rank ? want(0, 0, 0) : (void)0)                    \
	X(scatter, Scatter, Iscatter, SCATTER, (ALL, 0), (ALL, 0), want(0, 0, rank))               \
	X(scatterv, Scatterv, Iscatterv, SCATTERV,                                                 \
	  (in, counts, places, MPI_INT, out, block, MPI_INT, 0),                                   \
	  (in, large_counts, large_places, MPI_INT, out, block, MPI_INT, 0), want(0, 0, rank))     \
	X(gather, Gather, Igather, GATHER, (ALL, 0), (ALL, 0), ROOT(want_from_all(0)))             \
	X(gatherv, Gatherv, Igatherv, GATHERV,                                                     \
	  (in, block, MPI_INT, out, counts, places, MPI_INT, 0),                                   \
	  (in, block, MPI_INT, out, large_counts, large_places, MPI_INT, 0),                       \
	  ROOT(want_from_all(0)))                                                                  \
	X(allgather, Allgather, Iallgather, ALLGATHER, (ALL), (ALL), want_from_all(0))             \
	X(allgatherv, Allgatherv, Iallgatherv, ALLGATHERV,                                         \
	  (in, block, MPI_INT, out, counts, places, MPI_INT),                                      \
	  (in, block, MPI_INT, out, large_counts, large_places, MPI_INT), want_from_all(0))        \
	X(alltoall, Alltoall, Ialltoall, ALLTOALL, (ALL), (ALL), want_from_all(rank))              \
	X(alltoallv, Alltoallv, Ialltoallv, ALLTOALLV,                                             \
	  (in, counts, places, MPI_INT, out, counts, places, MPI_INT),                             \
	  (in, large_counts, large_places, MPI_INT, out, large_counts, large_places, MPI_INT),     \
	  want_from_all(rank))                                                                     \
	X(alltoallw, Alltoallw, Ialltoallw, ALLTOALLW,                                             \
	  (in, counts, byte_places, types, out, counts, byte_places, types),                       \
	  (in, large_counts, large_byte_places, types, out, large_counts, large_byte_places,       \
	   types),                                                                                 \
	  want_from_all(rank))                                                                     \
	X(reduce, Reduce, Ireduce, REDUCE, (SUM, 0), (SUM, 0), ROOT(want_sums(ranks, 0)))          \
	X(allreduce, Allreduce, Iallreduce, ALLREDUCE, (SUM), (SUM), want_sums(ranks, 0))          \
	X(reduce_scatter, Reduce_scatter, Ireduce_scatter, REDUCE_SCATTER,                         \
	  (in, out, counts, MPI_INT, MPI_SUM), (in, out, large_counts, MPI_INT, MPI_SUM),          \
	  want_sums(ranks, rank))                                                                  \
	X(reduce_scatter_block, Reduce_scatter_block, Ireduce_scatter_block, REDUCE_SCATTER_BLOCK, \
	  (SUM), (SUM), want_sums(ranks, rank))                                                    \
	X(scan, Scan, Iscan, SCAN, (SUM), (SUM), want_sums(rank + 1, 0))                           \
	X(exscan, Exscan, Iexscan, EXSCAN, (SUM), (SUM), want_sums(rank, 0))

#define LIST(...) __VA_ARGS__
#define FUNCTION(name, Name, Iname, ID, arguments, large, arrives)                 \
	static void name(int with_large, enum form form, MPI_Request *r)           \
	{                                                                          \
		arrives;                                                           \
		if (form == BLOCKING && with_large)                                \
			MPI_##Name##_c(LIST large, comm);                          \
		else if (form == BLOCKING)                                         \
			MPI_##Name(LIST arguments, comm);                          \
		else if (form == NONBLOCKING && with_large)                        \
			MPI_##Iname##_c(LIST large, comm, r);                      \
		else if (form == NONBLOCKING)                                      \
			MPI_##Iname(LIST arguments, comm, r);                      \
		else if (with_large)                                               \
			MPI_##Name##_init_c(LIST large, comm, MPI_INFO_NULL, r);   \
		else                                                               \
			MPI_##Name##_init(LIST arguments, comm, MPI_INFO_NULL, r); \
	}
COLLECTIVES(FUNCTION)

static const struct kind {
	const char *name;
	enum case_collective collective;
	void (*call)(int with_large, enum form form, MPI_Request *request);
} kinds[] = {
#define ENTRY(name, Name, Iname, ID, ...) { #name, CASE_##ID, name },
	COLLECTIVES(ENTRY)
};
enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

static void prepare(void)
{
	for (int i = 0; i < ranks * block; i++) {
		in[i] = given(rank, i);
		out[i] = wanted[i] = -1;
	}
}

static void check(const struct kind *kind, enum form form, int with_large)
{
	static const char *const forms[] = { "blocking", "nonblocking", "persistent" };

	for (int i = 0; i < ranks * block; i++)
		if (out[i] != wanted[i])
			case_fail("%s %s, %s counts here: int %d is %d, not %d", forms[form],
				  kind->name, with_large ? "large" : "int", i, out[i], wanted[i]);
}

/* `which`: the ranks that have large counts, a bit each. */
static void one_call(const struct kind *kind, enum form form, unsigned int which, int served)
{
	int with_large = which >> rank & 1;
	MPI_Request request = MPI_REQUEST_NULL;

	prepare();
	kind->call(with_large, form, &request);
	for (int run = 0; run < (form == PERSISTENT ? 2 : 1); run++) {
		if (run)
			memset(out, 0xff, sizeof(out));
		if (form == PERSISTENT)
			MPI_Start(&request);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
		check(kind, form, with_large);
		if (served)
			case_count(kind->collective, 1);
	}
	if (form == PERSISTENT)
		MPI_Request_free(&request);
}

static int all_calls(int served)
{
	static const unsigned int masks[] = { 0x1, 0x2, 0xfe, 0xff };
	static const int blocks[] = { 3, MOST_BLOCK };
	int calls = 0;

	for (int b = 0; b < 2; b++) {
		set_block(blocks[b]);
		for (int k = 0; k < KINDS; k++)
			/* MPICH 4.0.2 by itself fails in persistent ones. */
			for (int form = 0; form < (served ? FORMS : PERSISTENT); form++, calls++)
				one_call(&kinds[k], (enum form)form, masks[(unsigned int)calls % 4],
					 served);
	}
	return calls;
}

/* A communicator whose collectives are all the MPI's. */
static void forced_to_the_mpi(void)
{
	MPI_Info info;
	char key[64];

	MPI_Info_create(&info);
	for (int c = CASE_BARRIER; c <= CASE_EXSCAN; c++) {
		case_info_key(key, sizeof(key), (enum case_collective)c);
		MPI_Info_set(info, key, "mpi");
	}
	MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &comm);
	MPI_Info_free(&info);
}

/* Who has more than an int can count takes large counts, each rank by itself. */
static void decided_by_each(void)
{
	set_block(1000);
	prepare();
	want_from_all(0);
	if (rank == ranks - 1)
		MPI_Gatherv_c(in, block, MPI_INT, out, large_counts, large_places, MPI_INT, 0,
			      MPI_COMM_WORLD);
	else
		MPI_Gatherv(in, block, MPI_INT, out, counts, places, MPI_INT, 0, MPI_COMM_WORLD);
	case_count(CASE_GATHERV, 1);
	if (!rank)
		check(&(struct kind){ .name = "gatherv, decided by each" }, BLOCKING, 0);
}

/* More bytes than there are addresses: an error on all ranks, nothing done and nobody left waiting.
 */
static void beyond_all_memory(void)
{
	MPI_Datatype huge;
	int error;

	MPI_Type_contiguous(1 << 30, MPI_DOUBLE, &huge);
	MPI_Type_commit(&huge);
	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
	error = MPI_Bcast_c(in, (MPI_Count)1 << 31, huge, 0, comm);
	if (error == MPI_SUCCESS)
		case_fail("a Bcast of 2^64 bytes succeeded");
	MPI_Comm_free(&comm);
	MPI_Type_free(&huge);
}

int main(int argc, char **argv)
{
	int calls, moved = 0, stock = getenv("OC_TEST_STOCK") != NULL;

	case_begin(&argc, &argv);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (ranks > MOST_RANKS)
		case_fail("this needs at most %d ranks", MOST_RANKS);
	if (argc > 1) {
		forced_to_the_mpi();
		calls = all_calls(0);
		MPI_Comm_free(&comm);
	} else {
		comm = MPI_COMM_WORLD;
		moved = large_types();
		calls = all_calls(!stock);
		decided_by_each();
		case_report();
		case_stop_counting();
		if (!stock)
			beyond_all_memory();
	}
	if (!rank)
		printf("large: %d layouts, %d calls of ranks with large and with int counts\n",
		       moved, calls);
	MPI_Finalize();
	return 0;
}
