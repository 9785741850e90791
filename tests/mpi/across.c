/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * across: every collective on communicators that span the hosts of tests/hosts in several ways,
 * with all roots, in place, of layouts and numbers. Prints for the driver how many calls of each
 * must have gone in two levels: "levels COLLECTIVE CALLS", summed over the ranks. With the word
 * "off" these are none, as a rank does not take part; with "first", as ranks 0 and 1 cannot form a
 * team, they are those of the communicator without rank 0; with "auto" they are of no account. With
 * "leave" the ranks of node2 are killed; with "cut" its link is down for a second; with "full" the
 * last rank's host has no room in /dev/shm; with "room" that is where its teams would lie, and none
 * go so. One file, as each part of it counts what must have gone
 * so. With "differ" two ranks of node2 call other things than each other. With "unlike" there are
 * only Bcasts whose root has another type than the others; with "fails" a rank of node1 differs
 * from its node, from where on all calls fail, and none waits.
 */
#include "checked.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
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

/* Plain bytes of a message or block: what fits into a flag, a slot, what MPICH sends at once but
 * not with others, and what is copied singly. */
static const int sizes[] = { 8, 1000, 9000, 70000 };
enum { PIECES = 2200000, SHARES = 700001 };
enum { PERSISTENT_EACH = 7 }; /* so many calls one is */
enum { WITHOUT_FIRST = 4 };   /* among the communicators */
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };

static int world_rank, world_size;
static unsigned long calls; /* alike on the ranks of a communicator */
static unsigned long expected[CASE_FUNCTIONS];
static const char *less = ""; /* the word */
static int never;
/* Whether nonblocking and persistent calls go in two levels (docs/adr/0029). */
static int started;

static int may_be_started(void)
{
#ifdef OPEN_MPI
	return 1;
#else
	int level;

	MPI_Query_thread(&level);
	return level == MPI_THREAD_MULTIPLE;
#endif
}

/* With "auto" some are the MPI's, and MPICH 4.0.2 by itself has wrong bytes in persistent ones, and
 * ends the job. */
static int persists(void)
{
#ifdef OPEN_MPI
	return 1;
#else
	return strcmp(less, "auto") != 0;
#endif
}

struct place {
	int spans;    /* several nodes, and several ranks on one of them */
	int in_order; /* those of a node follow each other */
	int ranks;
};

/* By a function that the MPI itself serves. */
static struct place look_at(MPI_Comm comm)
{
	struct place place = { 0, 1, 0 };
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
	place.ranks = ranks;
	return place;
}

static int is_in_levels(enum case_collective collective)
{
	for (int i = 0; i < IN_LEVELS; i++)
		if (in_levels[i] == collective)
			return 1;
	return 0;
}

/* Of the layouts the operations are the program's; two of them lie without gaps, and of one of
 * these an operation does not commute. */
static int reduces_in_levels(const struct place *place, const struct checked_spec *spec)
{
	const struct layout *layout;
	int keeps_order;

	if (spec->plain)
		return place->in_order || !oci_is_prefix(case_of(spec->collective));
	layout = layout_choose(spec->layout, place->ranks * spec->elements);
	keeps_order = spec->maps && layout->maps != MPI_OP_NULL;
#ifndef OPEN_MPI
	if (keeps_order && spec->collective == CASE_REDUCE)
		return 0;
#endif
	return layout->extent == LAYOUT_INTS * (int)sizeof(int) && !layout->offset[0] &&
	       (place->in_order || !(keeps_order || oci_is_prefix(case_of(spec->collective))));
}

static int goes_in_levels(const struct place *place, const struct checked_spec *spec)
{
	return !never && place->spans && is_in_levels(spec->collective) &&
	       (!checked_is_reduction(spec->collective) || reduces_in_levels(place, spec));
}

static int started_goes_in_levels(const struct place *place, const struct checked_spec *spec)
{
	return started && goes_in_levels(place, spec);
}

/* The first ones on a communicator are the MPI's (prepare()). Others are left out, as not all of
 * the MPIs' own are right: Open MPI 4.1.4 has wrong bytes in an MPI_Ialltoallv in place, and those
 * of others than the root behind an MPI_Ireduce. */
static void run_started(MPI_Comm comm, const struct place *place, const struct checked_spec *spec,
			enum form form)
{
	if (!started_goes_in_levels(place, spec))
		return;
	checked_run(comm, spec, form);
	expected[spec->collective]++;
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
	run_started(comm, place, spec,
		    calls % PERSISTENT_EACH || !persists() ? FORM_NONBLOCKING : FORM_PERSISTENT);
}

/* On the world and what is like it each size; on communicators beyond, every second, in turn from
 * communicator to communicator, from collective to collective and from root to root. */
static void run_collective(MPI_Comm comm, const struct place *place, int ranks,
			   enum case_collective collective, int number)
{
	int step = number < 2 ? 1 : 2;

	for (int root = 0; root < (case_has_root(collective) ? ranks : 1); root++) {
		for (int in_place = 0; in_place <= case_has_in_place(collective); in_place++) {
			struct checked_spec spec = { .collective = collective,
						     .root = root,
						     .in_place = in_place,
						     .stock = 1 };

			int first = (root + in_place + (int)collective + number) % step;

			for (int i = first; i < SIZES; i += step) {
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
			if (!checked_is_reduction(collective))
				continue;
			/* Those without gaps, which MPICH bears in a Reduce_scatter that keeps the
			 * order. */
			spec.stock = collective != CASE_REDUCE_SCATTER &&
				     collective != CASE_REDUCE_SCATTER_BLOCK;
			for (int way = 0; way < 3; way++) {
				spec.layout = way > 0;
				spec.maps = way > 1;
				spec.salt = spec.shape = (unsigned int)calls;
				run(comm, place, &spec);
			}
		}
	}
}

/* A Bcast of four pieces and a bit; of bytes that lie apart, too, which is the last of `count`. */
static void run_pieces(MPI_Comm comm, const struct place *place, int ranks, int count)
{
	for (int i = 4 - count; i < 4; i++) {
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

/* An Allreduce of which each rank of a node has a share, where the nodes are even; shares differ.
 */
static void run_shares(MPI_Comm comm, const struct place *place)
{
	for (int i = 0; i < 4; i++) {
		struct checked_spec spec = { .collective = CASE_ALLREDUCE,
					     .in_place = i % 2,
					     .plain = 1 + (int)(calls % PLAINS),
					     .salt = calls,
					     .stock = 1 };

		/* Odd: shares of two ranks differ. */
		spec.elements = (SHARES / layout_plain[spec.plain - 1].extent) | 1;
		run(comm, place, &spec);
	}
}

/* The first nonblocking calls, after which a blocking one makes what they lack. */
static void prepare(MPI_Comm comm, const struct place *place)
{
	struct checked_spec spec = { .plain = 1 + PLAIN_INTS, .stock = 1 };

	for (int i = 0; i < IN_LEVELS; i++) {
		spec.collective = in_levels[i];
		spec.elements = (in_levels[i] == CASE_ALLREDUCE ? SHARES : sizes[SIZES - 1]) /
				layout_plain[PLAIN_INTS].extent;
		spec.salt = calls++;
		checked_run(comm, &spec, FORM_NONBLOCKING);
		/* Its nodes' blocks are kept between the parts as soon as the nodes are known. */
		if (i && in_levels[i - 1] != CASE_ALLTOALL)
			continue;
		spec.collective = CASE_BARRIER;
		checked_run(comm, &spec, FORM_BLOCKING);
		expected[CASE_BARRIER] += (unsigned int)goes_in_levels(place, &spec);
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

	if (!is_in_levels(collective))
		checked_run(comm, &spec, FORM_NONBLOCKING);
}

/* ---- many at a time -------------------------------------------------------------------------- */

enum { AT_ONCE = 100 };

static struct checked_spec spec_of(int i, int ranks)
{
	struct checked_spec spec = {
		.collective = in_levels[i * 7 % IN_LEVELS],
		.plain = 1 + i % PLAINS,
		.root = i % ranks,
		.salt = calls,
		.shape = calls,
		.stock = 1,
	};

	calls++;
	spec.elements = sizes[i % SIZES] / layout_plain[spec.plain - 1].extent;
	spec.in_place = case_has_in_place(spec.collective) && i % 3 == 0;
	return spec;
}

/* Begun in one order, waited for in another one on each rank, with blocking calls amid them, and
 * ranks that are away meanwhile; every fourth one is persistent, and goes twice. */
static void run_at_once(MPI_Comm comm, const struct place *place, int rank, int ranks)
{
	static struct checked call[AT_ONCE];
	static const int strides[] = { 1, 3, 7, 9, 11, 13 };

	for (int i = 0; i < AT_ONCE; i++) {
		struct checked_spec spec = spec_of(i, ranks);

		/* Types that are freed under it; the MPI's own calls do not all bear that. */
		if (i % 5 == 1 && strcmp(less, "auto") && started_goes_in_levels(place, &spec) &&
		    !checked_is_reduction(spec.collective)) {
			spec.plain = 0;
			spec.elements = 40;
			spec.layout = i % 15;
		}
		checked_open(&call[i], comm, &spec);
		if (!spec.plain)
			checked_own_handles(&call[i]);
		if (i % 4 == 0)
			checked_init(&call[i]);
	}
	for (int turn = 0; turn < 2; turn++) {
		for (int i = 0; i < AT_ONCE; i++) {
			/* Persistent ones in any order. */
			int own = i % 4 ? i : (i + 4 * rank) % AT_ONCE;

			if (turn && i % 4)
				continue;
			if (i % 4)
				checked_start(&call[i]);
			else
				checked_restart(&call[own]);
			if (!turn && !call[own].spec.plain)
				checked_free_handles(&call[own]);
			expected[call[own].spec.collective] +=
				(unsigned int)started_goes_in_levels(place, &call[own].spec);
			if (i % 30 == 29)
				run(comm, place,
				    &(struct checked_spec){ .collective = CASE_BARRIER,
							    .stock = 1 });
		}
		usleep((unsigned int)rank * 2000);
		for (int i = 0; i < AT_ONCE; i++) {
			int own = (rank * 17 + i * strides[rank % 6]) % AT_ONCE;

			if (turn && own % 4)
				continue;
			MPI_Wait(&call[own].request, MPI_STATUS_IGNORE);
			checked_verify(&call[own]);
			if (!turn && own % 4 == 0)
				checked_fill(&call[own], calls + (unsigned int)own);
		}
	}
	for (int i = 0; i < AT_ONCE; i++) {
		if (i % 4 == 0)
			MPI_Request_free(&call[i].request);
		checked_close(&call[i]);
	}
}

/* ---- goes on inside of others ---------------------------------------------------------------- */

static MPI_Comm on_host, again;

/* Calls that end when all of some ranks have come to them: by the team of a host, in two levels,
 * the MPI's own. */
static void meet(int how, const struct place *place)
{
	struct checked_spec spec = { .plain = 1 + PLAIN_INTS, .elements = 1000, .stock = 1 };
	MPI_Comm made;

	spec.salt = calls;
	switch (how) {
	case 0:
		MPI_Barrier(on_host);
		break;
	case 1:
		spec.collective = CASE_ALLREDUCE;
		checked_run(on_host, &spec, FORM_BLOCKING);
		break;
	case 2:
		spec.collective = CASE_ALLGATHER;
		checked_run(again, &spec, FORM_BLOCKING);
		expected[CASE_ALLGATHER] += (unsigned int)goes_in_levels(place, &spec);
		break;
	case 3:
		spec.collective = CASE_ALLTOALLV;
		checked_run(again, &spec, FORM_BLOCKING);
		break;
	default:
		MPI_Comm_dup(again, &made);
		MPI_Comm_free(&made);
	}
}

/* Ranks in turns are in such a call before the others, who come to it behind the end of what is
 * under way. */
static void run_inside(const struct place *place)
{
	static struct checked call[2];

	calls = 7000000;
	for (int i = 0; i < 5 * IN_LEVELS; i++) {
		int first = i % world_size == world_rank;

		for (int c = 0; c < 2; c++) {
			struct checked_spec spec = spec_of(i + c, world_size);

			checked_open(&call[c], MPI_COMM_WORLD, &spec);
			checked_start(&call[c]);
			expected[spec.collective] +=
				(unsigned int)started_goes_in_levels(place, &spec);
		}
		if (first)
			meet(i % 5, place);
		for (int c = 1; c >= 0; c--)
			checked_end(&call[c]);
		if (!first)
			meet(i % 5, place);
	}
}

/* Calls under way, and another algorithm from there on. */
static void run_reworded(MPI_Comm comm, int ranks)
{
	static struct checked call[20];
	MPI_Info info;

	for (int i = 0; i < 20; i++) {
		struct checked_spec spec = spec_of(i, ranks);

		if (i == 10) {
			MPI_Info_create(&info);
			MPI_Info_set(info, "onecopy_bcast", "knomial:2");
			MPI_Info_set(info, "onecopy_gather", "sequential-read");
			MPI_Comm_set_info(comm, info);
			MPI_Info_free(&info);
		}
		spec.collective = i % 2 ? CASE_BCAST : CASE_ALLGATHER;
		checked_open(&call[i], comm, &spec);
		checked_start(&call[i]);
	}
	for (int i = 19; i >= 0; i--)
		checked_end(&call[i]);
}

/* Persistent ones that are freed while they are under way; none can be cancelled. */
static void run_freed(MPI_Comm comm, const struct place *place, int ranks)
{
	static struct checked call[IN_LEVELS];
	MPI_Request same;
	int flag;

	for (int i = 0; i < IN_LEVELS; i++) {
		struct checked_spec spec = spec_of(i, ranks);

		spec.collective = in_levels[i];
		checked_open(&call[i], comm, &spec);
		checked_begin(&call[i], FORM_PERSISTENT);
		expected[spec.collective] += (unsigned int)started_goes_in_levels(place, &spec);
	}
	if (started_goes_in_levels(place, &call[0].spec)) {
		MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
		MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
		same = call[IN_LEVELS - 1].request;
		if (MPI_Cancel(&same) == MPI_SUCCESS)
			case_fail("a collective could be cancelled");
		MPI_Comm_set_errhandler(comm, MPI_ERRORS_ARE_FATAL);
		MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
	}
	for (int i = 0; i < IN_LEVELS; i++)
		MPI_Request_free(&call[i].request);
	for (int i = 0; i < IN_LEVELS; i++)
		while (!checked_is_right(&call[i]))
			MPI_Iprobe(MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
	/* Where all is right everywhere, nobody reads what was sent. */
	run(comm, place, &(struct checked_spec){ .collective = CASE_BARRIER, .stock = 1 });
	for (int i = 0; i < IN_LEVELS; i++)
		checked_close(&call[i]);
}

static void run_on(MPI_Comm comm, int number)
{
	struct place place;
	int rank, ranks;

	calls = (unsigned int)number * 1000000UL;
	never = !strcmp(less, "off") || (!strcmp(less, "first") && number != WITHOUT_FIRST);
	if (comm == MPI_COMM_NULL)
		return;
	MPI_Comm_size(comm, &ranks);
	MPI_Comm_rank(comm, &rank);
	place = look_at(comm);
	prepare(comm, &place);
	for (int c = 0; c < CASE_COLLECTIVES; c++) {
		if (c == CASE_ALLTOALLW)
			continue;
		run_collective(comm, &place, ranks, (enum case_collective)c, number);
		if (c == CASE_BCAST && number < 2)
			run_pieces(comm, &place, ranks, number ? 2 : 4);
		if (c == CASE_ALLREDUCE && number < 3)
			run_shares(comm, &place);
		run_nonblocking(comm, (enum case_collective)c);
	}
	if (number == 5)
		run_reworded(comm, ranks);
	if (started && persists() && number < 3) {
		run_at_once(comm, &place, rank, ranks);
		/* Nor do Open MPI's own bear that. */
		if (place.spans && !never && strcmp(less, "auto"))
			run_freed(comm, &place, ranks);
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

/* The last rank's host has no network for a second amid calls: all go on when it is back. */
static void cut(void)
{
	static long long sums[2][PIECES / 8];
	const int count = PIECES / 8;

	for (int i = 0; i < 40; i++) {
		long long all = 0;

		if (i == 20 && world_rank == world_size - 1) {
			fprintf(stderr, "the link is cut\n");
			if (system("PATH=$PATH:/usr/sbin:/sbin; ip link set eth0 down && "
				   "{ { sleep 1; ip link set eth0 up; } & }"))
				case_fail("the link could not be cut");
		}
		for (int r = 0; r < world_size; r++)
			all += r + i;
		for (int k = 0; k < count; k++)
			sums[0][k] = world_rank + i + k % 5 * world_size;
		MPI_Allreduce(sums[0], sums[1], count, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
		for (int k = 0; k < count; k++)
			if (sums[1][k] != all + (long long)k % 5 * world_size * world_size)
				case_fail("turn %d: number %d of an Allreduce is wrong", i, k);
		if (world_rank == i % world_size)
			memset(sums[1], i, sizeof(sums[1]));
		MPI_Bcast(sums[1], count, MPI_LONG_LONG, i % world_size, MPI_COMM_WORLD);
		for (size_t k = 0; k < sizeof(sums[1]); k += 4096)
			if (((char *)sums[1])[k] != i)
				case_fail("turn %d: byte %zu of a Bcast is wrong", i, k);
	}
}

/* /dev/shm of the last rank's host has no more room than what the MPI has made there already. */
static void fill_up(void)
{
	char byte = 0;

	if (world_rank < world_size - 1) {
		MPI_Recv(&byte, 1, MPI_CHAR, world_size - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		return;
	}
	if (system("used=$(df --output=used /dev/shm | tail -n 1) && "
		   "mount -o remount,size=$((used + 256))k /dev/shm && "
		   "! head -c 1M /dev/zero 2>/dev/null >/dev/shm/rest"))
		case_fail("/dev/shm could not be filled");
	for (int r = 0; r < world_size - 1; r++)
		MPI_Send(&byte, 1, MPI_CHAR, r, 0, MPI_COMM_WORLD);
}

/* What is wrong with the words of a communicator is said once, whatever it is used for. Then the
 * last two ranks, both on node2, differ in what they call, and say what they have heard. */
static void differ(void)
{
	char text[MPI_MAX_ERROR_STRING], key[64];
	MPI_Request request;
	MPI_Info info;
	MPI_Comm comm;
	int error, length, sum = 0, one = 1;

	case_info_key(key, sizeof(key), CASE_bcast);
	MPI_Info_create(&info);
	MPI_Info_set(info, key, "nonsense");
	MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &comm);
	MPI_Info_free(&info);
	MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
	MPI_Barrier(comm);
	MPI_Ibarrier(comm, &request);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	MPI_Barrier(comm);
	MPI_Ibarrier(comm, &request);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	if (world_rank == world_size - 1)
		error = MPI_Bcast(&sum, 1, MPI_INT, 0, comm);
	else
		error = MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
	MPI_Error_string(error, text, &length);
	fprintf(stderr, "rank %d heard: %s\n", world_rank, text);
	sleep(3); /* the others hear it, too */
	MPI_Abort(MPI_COMM_WORLD, 3);
}

/* A Bcast of one element at the root, and of bytes on all others; blocks of a vector have a gap. */
static void run_unlike(int bytes, int root, int gaps, int begun)
{
	size_t step = gaps ? 2 * (size_t)bytes / 3 : (size_t)bytes;
	unsigned char *buffer = malloc(2 * (size_t)bytes);
	MPI_Request request = MPI_REQUEST_NULL;
	MPI_Datatype type;

	if (gaps)
		MPI_Type_vector(2, bytes / 2, (int)step, MPI_BYTE, &type);
	else
		MPI_Type_contiguous(bytes, MPI_BYTE, &type);
	MPI_Type_commit(&type);
	for (int i = 0; i < bytes; i++) {
		size_t at = gaps && world_rank == root && i >= bytes / 2 ?
				    step + (size_t)(i - bytes / 2) :
				    (size_t)i;

		buffer[at] = world_rank == root ? (unsigned char)(i % 251 + root) : 0;
	}
	if (begun)
		MPI_Ibcast(buffer, world_rank == root ? 1 : bytes,
			   world_rank == root ? type : MPI_BYTE, root, MPI_COMM_WORLD, &request);
	else
		MPI_Bcast(buffer, world_rank == root ? 1 : bytes,
			  world_rank == root ? type : MPI_BYTE, root, MPI_COMM_WORLD);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	for (int i = 0; i < bytes && world_rank != root; i++)
		if (buffer[i] != (unsigned char)(i % 251 + root))
			case_fail("byte %d of %d from root %d is %d", i, bytes, root, buffer[i]);
	MPI_Type_free(&type);
	free(buffer);
}

static void unlike(void)
{
	static const int bytes[] = { 8, 20000, 1500000, 3000000 };

	for (int i = 0; i < 4; i++)
		for (int way = 0; way < 4; way++)
			run_unlike(bytes[i], way * 5 % world_size, way % 2, 0);
	/* The third one goes in two levels: the calls before it make what it needs. */
	for (int i = 0; i < 3; i++) {
		run_unlike(8, i % world_size, 0, 1);
		MPI_Barrier(MPI_COMM_WORLD);
	}
	if (!world_rank)
		printf("across: %d ranks, every byte right\n", world_size);
}

static MPI_Comm broken;
static int failed, served; /* calls */

static void count_call(int error)
{
	failed += error != MPI_SUCCESS;
	served += error == MPI_SUCCESS;
}

/* Its bytes are of no account. */
static void run_broken(enum case_collective collective, int root, int bytes, int begun)
{
	struct checked_spec spec = { .collective = collective,
				     .plain = 1 + PLAIN_INTS,
				     .root = root,
				     .elements = bytes / layout_plain[PLAIN_INTS].extent,
				     .salt = calls++,
				     .stock = 1 };
	static struct checked call;

	checked_open(&call, broken, &spec);
	if (!begun) {
		count_call(checked_call(&call));
	} else {
		checked_start(&call);
		count_call(MPI_Wait(&call.request, MPI_STATUS_IGNORE));
	}
	checked_close(&call);
}

static void fails(void)
{
	static const int bytes[] = { 8, 700001, PIECES };
	struct place place = look_at(MPI_COMM_WORLD);
	int one = 1, sum = 0;
	MPI_Request request;

	MPI_Comm_dup(MPI_COMM_WORLD, &broken);
	prepare(broken, &place);
	MPI_Comm_set_errhandler(broken, MPI_ERRORS_RETURN);
	/* Each lane. */
	for (int i = 0; i < 4 * started; i++) {
		if (world_rank == 1)
			MPI_Ibarrier(broken, &request);
		else
			MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, broken, &request);
		count_call(MPI_Wait(&request, MPI_STATUS_IGNORE));
	}
	count_call(world_rank == 1 ? MPI_Barrier(broken) :
				     MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, broken));
	/* The others of these calls may not know of it yet. */
	served = 0;
	for (int i = 0; i < 3 * 3 * 2 * IN_LEVELS; i++) {
		int size = bytes[i / IN_LEVELS / 2 % 3],
		    root = i / IN_LEVELS % 2 * (world_size - 1);

		if (in_levels[i % IN_LEVELS] == CASE_ALLTOALL && size > 8)
			continue; /* the MPI's own */
		run_broken(in_levels[i % IN_LEVELS], root, size, 0);
		if (started && size == 8)
			run_broken(in_levels[i % IN_LEVELS], root, size, 1);
	}
	MPI_Comm_free(&broken);
	fprintf(stderr, "rank %d: %d served, %d failed\n", world_rank, served, failed);
}

int main(int argc, char **argv)
{
	struct place place;
	MPI_Comm comm;

	case_begin(&argc, &argv, &world_rank, &world_size);
	case_keep_memory();
	case_stop_counting();
	layouts_make();
	less = argc > 1 ? argv[1] : "";
	started = may_be_started();
	if (!strcmp(less, "leave"))
		leave();
	if (!strcmp(less, "differ"))
		differ();
	if (!strcmp(less, "cut")) {
		cut();
		return case_end("across: the link was cut, and all calls were right\n");
	}
	if (!strcmp(less, "unlike") || !strcmp(less, "fails")) {
		(*less == 'u' ? unlike : fails)();
		MPI_Finalize();
		return 0;
	}
	if (!strcmp(less, "full") || !strcmp(less, "room"))
		fill_up();
	if (!strcmp(less, "room"))
		less = "off";
	run_on(MPI_COMM_WORLD, 0);
	/* Backwards; mixed; without the last one; without the first; and as it was, used again.
	 * Where all is the MPI's, they are alike. */
	for (int i = 0; i < (strcmp(less, "off") ? 5 : 1); i++) {
		int out = (i == 2 && world_rank == world_size - 1) || (i == 3 && !world_rank);
		int key = i == 0 ? -world_rank : i == 1 ? world_rank * 5 % 7 : world_rank;

		MPI_Comm_split(MPI_COMM_WORLD, out ? MPI_UNDEFINED : 0, key, &comm);
		run_on(comm, 1 + i);
		if (comm != MPI_COMM_NULL)
			MPI_Comm_free(&comm);
	}
	MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &on_host);
	run_on(on_host, 6);
	MPI_Comm_dup(MPI_COMM_WORLD, &again);
	never = !strcmp(less, "off") || !strcmp(less, "first");
	place = look_at(MPI_COMM_WORLD);
	if (started)
		run_inside(&place);
	MPI_Comm_free(&again);
	MPI_Comm_free(&on_host);
	report();
	MPI_Finalize();
	return 0;
}
