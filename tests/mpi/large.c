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
static MPI_Comm comm, graph; /* what is called now; in that one all are neighbors */

static int in[INTS], out[INTS], wanted[INTS];
static int counts[MOST_RANKS], places[MOST_RANKS];
static MPI_Count counts_c[MOST_RANKS];
static MPI_Aint places_c[MOST_RANKS];
static MPI_Datatype types[MOST_RANKS];

static void set_block(int ints)
{
	block = ints;
	for (int r = 0; r < ranks; r++) {
		counts_c[r] = counts[r] = block;
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

/* MPI_IN_PLACE is for no call here, and rank 0 is the root. */
static void want_result(enum case_collective function)
{
	enum oc_collective collective = case_of(function);
	int from = oci_function_sends_each(case_function(function)) ? rank : 0;

	if (collective == OC_BCAST) {
		if (rank)
			want(0, 0, 0);
	} else if (!oci_receives(collective, !rank)) {
		return;
	} else if (oci_is_reduction(collective)) {
		want_sums(oci_is_exclusive(collective) ? rank :
			  oci_is_prefix(collective)    ? rank + 1 :
							 ranks,
			  from);
	} else if (oci_receives_each(collective)) {
		want_from_all(from);
	} else {
		want(0, 0, from);
	}
}

/* What the arguments of MPI's functions are here. */
#define GIVEN_buffer rank ? out : in
#define GIVEN_sbuf in
#define GIVEN_rbuf out
#define GIVEN_count block
#define GIVEN_scount block
#define GIVEN_rcount block
#define GIVEN_scounts NAME(counts)
#define GIVEN_rcounts NAME(counts)
#define GIVEN_sdispls NAME(places)
#define GIVEN_rdispls NAME(places)
#define GIVEN_sadispls places_c
#define GIVEN_radispls places_c
#define GIVEN_type MPI_INT
#define GIVEN_stype MPI_INT
#define GIVEN_rtype MPI_INT
#define GIVEN_stypes types
#define GIVEN_rtypes types
#define GIVEN_op MPI_SUM
#define GIVEN_root 0
#define GIVEN(name) GIVEN_##name,

#define FUNCTION(X, ID, name, Name, key, first, second, root, ...)                           \
	static void NAME(call_##name)(enum form form, MPI_Request * r)                       \
	{                                                                                    \
		if (form == BLOCKING)                                                        \
			NAME(MPI_##Name)(OC_SIGNATURE(GIVEN, first, second, root) comm);     \
		else if (form == NONBLOCKING)                                                \
			NAME(MPI_I##name)(OC_SIGNATURE(GIVEN, first, second, root) comm, r); \
		else                                                                         \
			NAME(MPI_##Name##_init)                                              \
		(OC_SIGNATURE(GIVEN, first, second, root) comm, MPI_INFO_NULL, r);           \
	}
#define NAME(name) name
OC_FUNCTION_ROWS_WITH_COUNTS(FUNCTION, )
#undef NAME
#define NAME(name) name##_c
OC_FUNCTION_ROWS_WITH_COUNTS(FUNCTION, )

static const struct kind {
	const char *name;
	enum case_collective function;
	int places_are_bytes;
	void (*calls[2])(enum form form, MPI_Request *request); /* with int and large counts */
} kinds[] = {
#define ENTRY(X, ID, name, Name, key, first, ...)               \
	{ #name,                                                \
	  CASE_##name,                                          \
	  OCI_ARGUMENTS_##first == OCI_ARGUMENTS_SENDW ||       \
		  OCI_ARGUMENTS_##first == OCI_ARGUMENTS_SENDA, \
	  { call_##name, call_##name##_c } },
	OC_FUNCTION_ROWS_WITH_COUNTS(ENTRY, )
};
enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

static void prepare(int places_are_bytes)
{
	int unit = places_are_bytes ? (int)sizeof(int) : 1;

	for (int r = 0; r < ranks; r++)
		places_c[r] = places[r] = r * block * unit;
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
static void one_call(const struct kind *kind, enum form form, unsigned int which, MPI_Comm on,
		     int served)
{
	int with_large = which >> rank & 1;
	MPI_Request request = MPI_REQUEST_NULL;

	prepare(kind->places_are_bytes);
	want_result(kind->function);
	comm = oci_is_neighbor(case_of(kind->function)) ? graph : on;
	kind->calls[with_large](form, &request);
	for (int run = 0; run < (form == PERSISTENT ? 2 : 1); run++) {
		if (run)
			memset(out, 0xff, sizeof(out));
		if (form == PERSISTENT)
			MPI_Start(&request);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
		check(kind, form, with_large);
		if (served)
			case_count(kind->function, 1);
	}
	if (form == PERSISTENT)
		MPI_Request_free(&request);
}

static int all_calls(MPI_Comm on, int served)
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
					 on, served);
	}
	return calls;
}

/* Communicators whose collectives are all the MPI's. */
static void forced_to_the_mpi(MPI_Comm *on)
{
	MPI_Info info;
	char key[64];

	MPI_Info_create(&info);
	for (int f = 0; f < CASE_FUNCTIONS; f++) {
		case_info_key(key, sizeof(key), (enum case_collective)f);
		MPI_Info_set(info, key, "mpi");
	}
	MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, on);
	case_all_neighbors(MPI_COMM_WORLD, info, &graph);
	MPI_Info_free(&info);
}

/* Who has more than an int can count takes large counts, each rank by itself. */
static void decided_by_each(void)
{
	set_block(1000);
	prepare(0);
	want_from_all(0);
	if (rank == ranks - 1)
		MPI_Gatherv_c(in, block, MPI_INT, out, counts_c, places_c, MPI_INT, 0,
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
	MPI_Comm on = MPI_COMM_WORLD;
	int calls, moved = 0, stock = getenv("OC_TEST_STOCK") != NULL;

	case_begin(&argc, &argv, &rank, &ranks);
	if (ranks > MOST_RANKS)
		case_fail("this needs at most %d ranks", MOST_RANKS);
	if (argc > 1) {
		forced_to_the_mpi(&on);
		calls = all_calls(on, 0);
		MPI_Comm_free(&on);
	} else {
		case_all_neighbors(MPI_COMM_WORLD, MPI_INFO_NULL, &graph);
		/* A nonblocking call would be the MPI's until the communicator is known. */
		MPI_Barrier(graph);
		case_count(CASE_BARRIER, 1);
		moved = large_types();
		calls = all_calls(on, !stock);
		decided_by_each();
		case_report();
		case_stop_counting();
		if (!stock)
			beyond_all_memory();
	}
	MPI_Comm_free(&graph);
	if (!rank)
		printf("large: %d layouts, %d calls of ranks with large and with int counts\n",
		       moved, calls);
	MPI_Finalize();
	return 0;
}
