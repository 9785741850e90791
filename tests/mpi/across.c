/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * across: every collective on communicators that span the hosts of tests/hosts in several ways,
 * with all roots, in place, of layouts and numbers. Prints for the driver how many calls of each
 * must have gone in two levels: "levels COLLECTIVE CALLS", summed over the ranks. With the word
 * "off" these are none, as a rank does not take part; with "first", as ranks 0 and 1 cannot form a
 * team, they are those of the communicator without rank 0. With "leave" the ranks of node2 are
 * killed.
 */
#include "checked.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const enum case_collective in_levels[] = {
	CASE_BARRIER,	CASE_BCAST,	     CASE_REDUCE,
	CASE_ALLREDUCE, CASE_SCAN,	     CASE_EXSCAN,
	CASE_GATHER,	CASE_GATHERV,	     CASE_SCATTER,
	CASE_SCATTERV,	CASE_ALLGATHER,	     CASE_ALLGATHERV,
	CASE_ALLTOALL,	CASE_REDUCE_SCATTER, CASE_REDUCE_SCATTER_BLOCK,
};
enum { IN_LEVELS = sizeof(in_levels) / sizeof(in_levels[0]) };

/* Plain bytes of a message or block: what fits into a flag, a slot, and is copied singly. */
static const int sizes[] = { 8, 1000, 70000 };
enum { PIECES = 300000 };
enum { WITHOUT_FIRST = 4 }; /* among the communicators */
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };

static int world_rank, world_size;
static unsigned long calls; /* alike on the ranks of a communicator */
static unsigned long expected[CASE_FUNCTIONS];
static const char *less = ""; /* the word */
static int never;

struct place {
	int spans;    /* several nodes, and several ranks on one of them */
	int in_order; /* those of a node follow each other */
};

/* By a function that the MPI itself serves. */
static struct place look_at(MPI_Comm comm)
{
	struct place place = { 0, 1 };
	int counts[CHECKED_RANKS], displs[CHECKED_RANKS], none[CHECKED_RANKS] = { 0 };
	int ranks, nodes = 0, mates = 0;
	char own[64] = "", host[CHECKED_RANKS][64];

	gethostname(own, sizeof(own) - 1);
	MPI_Comm_size(comm, &ranks);
	for (int r = 0; r < ranks; r++) {
		counts[r] = sizeof(own);
		displs[r] = r * (int)sizeof(own);
	}
	MPI_Alltoallv(own, counts, none, MPI_CHAR, host, counts, displs, MPI_CHAR, comm);
	for (int r = 0; r < ranks; r++) {
		int before = 0;

		for (int q = 0; q < r; q++)
			before += !strcmp(host[q], host[r]);
		nodes += !before;
		mates += before;
		if (before && strcmp(host[r - 1], host[r]) != 0)
			place.in_order = 0;
	}
	place.spans = nodes > 1 && mates;
	return place;
}

static int is_in_levels(enum case_collective collective)
{
	for (int i = 0; i < IN_LEVELS; i++)
		if (in_levels[i] == collective)
			return 1;
	return 0;
}

/* Of the layouts the operations are the program's. */
static int goes_in_levels(const struct place *place, const struct checked_spec *spec)
{
	enum oc_collective row = case_of(spec->collective);

	return !never && place->spans && is_in_levels(spec->collective) &&
	       (place->in_order || !oci_is_prefix(row)) &&
	       (spec->plain || !checked_is_reduction(spec->collective));
}

static void run(MPI_Comm comm, const struct place *place, const struct checked_spec *spec)
{
	int levels = goes_in_levels(place, spec);

#ifdef OPEN_MPI
	/* Open MPI 4.1.4 by itself writes into the gaps of the root's blocks. */
	if (!levels && !spec->plain && spec->collective == CASE_GATHER)
		return;
#else
	/* MPICH 4.0.2 by itself gives a wrong result from 4 KiB on, where a root is alone on its
	 * host and another one has two ranks (MPI_BXOR of bytes: nearly all wrong). */
	if (!levels && place->spans && spec->plain && spec->collective == CASE_REDUCE &&
	    spec->elements > 1000)
		return;
#endif
	checked_run(comm, spec, FORM_BLOCKING);
	calls++;
	expected[spec->collective] += (unsigned int)levels;
}

static void run_collective(MPI_Comm comm, const struct place *place, int ranks,
			   enum case_collective collective)
{
	for (int root = 0; root < (case_has_root(collective) ? ranks : 1); root++) {
		for (int in_place = 0; in_place <= case_has_in_place(collective); in_place++) {
			struct checked_spec spec = { .collective = collective,
						     .root = root,
						     .in_place = in_place,
						     .stock = 1 };

			for (int i = 0; i < SIZES; i++) {
				int plain = (int)(calls % PLAINS);

				spec.plain = 1 + plain;
				spec.elements = sizes[i] / layout_plain[plain].extent;
				spec.salt = spec.shape = (unsigned int)calls;
				run(comm, place, &spec);
				if (collective == CASE_BARRIER)
					return;
			}
			spec.plain = 0;
			spec.elements = 40;
			spec.layout = (int)(calls % 15);
			spec.differ = calls % 2;
			spec.salt = spec.shape = (unsigned int)calls;
			run(comm, place, &spec);
		}
	}
}

/* A Bcast of two pieces and a bit; of bytes that lie apart, too. */
static void run_pieces(MPI_Comm comm, const struct place *place, int ranks)
{
	for (int i = 0; i < 4; i++) {
		struct checked_spec spec = { .collective = CASE_BCAST,
					     .root = i % ranks,
					     .plain = 1 + (int)(calls % PLAINS),
					     .salt = calls,
					     .stock = 1 };

		spec.elements = PIECES / layout_plain[spec.plain - 1].extent;
		if (i == 3) {
			spec.plain = 0;
			spec.elements = PIECES / 8;
			spec.layout = (int)(calls % 15);
			spec.differ = 1;
		}
		run(comm, place, &spec);
	}
}

/* Calls of both kinds follow each other. */
static void run_nonblocking(MPI_Comm comm, enum case_collective collective)
{
	struct checked_spec spec = { .collective = collective,
				     .plain = 1 + PLAIN_INTS,
				     .elements = 500,
				     .salt = calls++,
				     .stock = 1 };

	checked_run(comm, &spec, FORM_NONBLOCKING);
}

static void run_on(MPI_Comm comm, int number)
{
	struct place place;
	int ranks;

	calls = (unsigned int)number * 1000000UL;
	never = !strcmp(less, "off") || (!strcmp(less, "first") && number != WITHOUT_FIRST);
	if (comm == MPI_COMM_NULL)
		return;
	MPI_Comm_size(comm, &ranks);
	place = look_at(comm);
	for (int c = 0; c < CASE_COLLECTIVES; c++) {
		if (c == CASE_ALLTOALLW)
			continue;
		run_collective(comm, &place, ranks, (enum case_collective)c);
		if (c == CASE_BCAST && number < 2)
			run_pieces(comm, &place, ranks);
		run_nonblocking(comm, (enum case_collective)c);
	}
}

/* No collective on what spans nodes, as these are counted. */
static void report(void)
{
	unsigned long sum[CASE_FUNCTIONS], other[CASE_FUNCTIONS];

	if (world_rank) {
		MPI_Send(expected, CASE_FUNCTIONS, MPI_UNSIGNED_LONG, 0, 0, MPI_COMM_WORLD);
		return;
	}
	memcpy(sum, expected, sizeof(sum));
	for (int r = 1; r < world_size; r++) {
		MPI_Recv(other, CASE_FUNCTIONS, MPI_UNSIGNED_LONG, r, 0, MPI_COMM_WORLD,
			 MPI_STATUS_IGNORE);
		for (int f = 0; f < CASE_FUNCTIONS; f++)
			sum[f] += other[f];
	}
	for (int i = 0; i < IN_LEVELS; i++)
		printf("levels %s %lu\n", case_names[in_levels[i]], sum[in_levels[i]]);
	printf("across: %d ranks, every byte right\n", world_size);
}

/* The ranks of a host go, in turns amid calls of each kind. */
static void leave(void)
{
	static long long sums[2][PIECES / 8];
	char host[64] = "";

	gethostname(host, sizeof(host) - 1);
	for (int i = 0; i < 40; i++) {
		if (i == 31 && !strcmp(host, "node2")) {
			fprintf(stderr, "a rank of node2 goes\n");
			raise(SIGKILL);
		}
		MPI_Allreduce(sums[0], sums[1], PIECES / 8, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
		MPI_Gather(sums[0], 8, MPI_LONG_LONG, sums[1], 8, MPI_LONG_LONG, 0, MPI_COMM_WORLD);
		MPI_Bcast(sums[0], PIECES / 8, MPI_LONG_LONG, i % world_size, MPI_COMM_WORLD);
	}
}

int main(int argc, char **argv)
{
	MPI_Comm comm;

	case_begin(&argc, &argv, &world_rank, &world_size);
	case_stop_counting();
	layouts_make();
	less = argc > 1 ? argv[1] : "";
	if (!strcmp(less, "leave"))
		leave();
	run_on(MPI_COMM_WORLD, 0);
	/* Backwards; mixed; without the last one; without the first; and as it was, used again. */
	for (int i = 0; i < 5; i++) {
		int out = (i == 2 && world_rank == world_size - 1) || (i == 3 && !world_rank);
		int key = i == 0 ? -world_rank : i == 1 ? world_rank * 5 % 7 : world_rank;

		MPI_Comm_split(MPI_COMM_WORLD, out ? MPI_UNDEFINED : 0, key, &comm);
		run_on(comm, 1 + i);
		if (comm != MPI_COMM_NULL)
			MPI_Comm_free(&comm);
	}
	MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &comm);
	run_on(comm, 6);
	MPI_Comm_free(&comm);
	report();
	MPI_Finalize();
	return 0;
}
