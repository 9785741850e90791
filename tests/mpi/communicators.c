/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * communicators [CYCLES]: communicators come and go. After thousands of them, each used, the
 * process has as many file descriptors and mappings as after the first ones, and no more memory.
 * And 500 alive at once. Delete functions of their attributes are collective.
 */
#include "case.h"
#include "support/process.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { WARM_UP = 100, MOST_CYCLES = 2000, ALIVE = 500, MEANWHILE = 20 };
/* glibc's heap and Open MPI's free lists grow by mappings of their own, now and then. */
enum { MAPPING_SLACK = 24 };
/* What leaks grows in each part; the MPIs' pools grow in one, by 145 KB at once. In between, 12 KB
 * come and go. */
enum { PARTS = 5, HEAP_SLACK = 16 << 10, MOST_BYTES_A_CYCLE = 32 };

static unsigned int calls;

/* For the sentence: what the last ones are. */
static const char *last_descriptors(void)
{
	static char text[512];
	size_t length = 0;

	for (int fd = 0; fd < 1024; fd++) {
		char path[64], target[128];
		ssize_t bytes;

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		bytes = readlink(path, target, sizeof(target));
		if (bytes > 0 && fd > 14 && length < sizeof(text) - 160)
			length += (size_t)snprintf(text + length, sizeof(text) - length, " %d %.*s",
						   fd, (int)bytes, target);
	}
	return text;
}

/* What is allocated now, of anyone's in this process. */
static long count_bytes(void)
{
	struct mallinfo2 info = mallinfo2();

	return (long)(info.uordblks + info.hblkhd);
}

static long count_resident_kib(void)
{
	size_t address_space, resident;

	oct_memory(&address_space, &resident);
	return (long)resident / 1024;
}

static void use(MPI_Comm comm, int ranks)
{
	struct case_call call = { .collective = (enum case_collective)(calls % CASE_COLLECTIVES),
				  .bytes = calls % 5 ? 64 : 100000,
				  .root = (int)calls % ranks,
				  .kind = (int)calls % CASE_KINDS,
				  .salt = calls };

	case_run(comm, &call);
	calls++;
}

static void cycles(int count, int ranks)
{
	for (int i = 0; i < count; i++) {
		MPI_Comm comm;

		MPI_Comm_dup(MPI_COMM_WORLD, &comm);
		use(comm, ranks);
		MPI_Comm_free(&comm);
	}
}

static void alive_at_once(int ranks)
{
	static MPI_Comm comm[ALIVE];

	for (int i = 0; i < ALIVE; i++) {
		MPI_Comm_dup(MPI_COMM_WORLD, &comm[i]);
		use(comm[i], ranks);
	}
	for (int i = ALIVE - 1; i >= 0; i--)
		use(comm[i], ranks);
	/* In another order than they were made in. */
	for (int i = 0; i < ALIVE; i++)
		MPI_Comm_free(&comm[(i * 7 + 3) % ALIVE]);
}

static int compare(const void *a, const void *b)
{
	long left = *(const long *)a, right = *(const long *)b;

	return (left > right) - (left < right);
}

/* What so many communicators leave on the heap: the median of PARTS. */
static long growth(int count, int ranks)
{
	long bytes[PARTS];

	for (int part = 0; part < PARTS; part++) {
		MPI_Barrier(MPI_COMM_WORLD);
		bytes[part] = -count_bytes();
		cycles(count, ranks);
		MPI_Barrier(MPI_COMM_WORLD);
		bytes[part] += count_bytes();
	}
	qsort(bytes, PARTS, sizeof(bytes[0]), compare);
	return bytes[PARTS / 2];
}

/* The MPI makes a communicator by collectives of its own, in between at another place on each rank.
 */
static void made_meanwhile(int ranks, int rank)
{
	for (int i = 0; i < MEANWHILE; i++) {
		MPI_Request request;
		MPI_Comm comm;
		int done = i % ranks == rank;

		MPI_Comm_idup(MPI_COMM_WORLD, &comm, &request);
		for (int n = 0; n < 4; n++) {
			use(MPI_COMM_WORLD, ranks);
			if (!done)
				MPI_Test(&request, &done, MPI_STATUS_IGNORE);
		}
		MPI_Wait(&request, MPI_STATUS_IGNORE);
		use(comm, ranks);
		MPI_Comm_free(&comm);
	}
}

/* ---- collectives inside of MPI_Comm_free ---------------------------------------------------- */

static int deletions;

/* Collective, as MPI_Comm_free is. It is the only call here that may be the MPI's. */
static int delete_sums(MPI_Comm comm, int keyval, void *value, void *extra)
{
	int *ranks = extra, one = 1, sum = 0;

	(void)keyval;
	MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
	if (sum != (value ? *ranks : *ranks - 1))
		case_fail("the sum in a delete function is %d", sum);
	deletions++;
	return MPI_SUCCESS;
}

/* The handle comes back, once of all ranks and once of all but the last one. The attribute is there
 * before the first collective, or behind it. */
static void freed_in_company(int ranks, int rank)
{
	int key, all = 1, freed = 0;

	MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, delete_sums, &key, &ranks);
	for (int i = 0; i < MEANWHILE; i++) {
		bool whole = i % 2;
		MPI_Comm comm;

		MPI_Comm_split(MPI_COMM_WORLD, whole || rank < ranks - 1 ? 0 : MPI_UNDEFINED, rank,
			       &comm);
		if (comm == MPI_COMM_NULL) {
			calls++;
			continue;
		}
		if (i % 4 < 2)
			MPI_Comm_set_attr(comm, key, whole ? &all : NULL);
		use(comm, whole ? ranks : ranks - 1);
		if (i % 4 >= 2)
			MPI_Comm_set_attr(comm, key, whole ? &all : NULL);
		MPI_Comm_free(&comm);
		freed++;
	}
	if (deletions != freed)
		case_fail("of %d delete functions %d were called", freed, deletions);
	MPI_Comm_free_keyval(&key);
}

static int copy_value(MPI_Comm comm, int keyval, void *extra, void *in, void *out, int *copied)
{
	(void)comm;
	(void)keyval;
	(void)extra;
	*(void **)out = in;
	*copied = 1;
	return MPI_SUCCESS;
}

/* A window has a copy of its communicator, which goes without MPI_Comm_free. Its handle comes back
 * for one of half of the ranks. */
static void freed_with_a_window(int ranks, int rank)
{
	int key, all = 1, here, copies = 0;

	MPI_Comm_create_keyval(copy_value, delete_sums, &key, &ranks);
	for (int i = 0; i < MEANWHILE; i++) {
		MPI_Comm comm, half;
		MPI_Win win;

		MPI_Comm_dup(MPI_COMM_WORLD, &comm);
		MPI_Comm_set_attr(comm, key, &all);
		MPI_Win_create(&all, sizeof(all), 1, MPI_INFO_NULL, comm, &win);
		copies -= deletions;
		MPI_Win_free(&win);
		copies += deletions;
		MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
		MPI_Comm_size(half, &here);
		use(half, here);
		MPI_Comm_delete_attr(comm, key);
		MPI_Comm_free(&comm);
		MPI_Comm_free(&half);
	}
	if (copies != MEANWHILE)
		case_fail("of %d windows' copies %d called their delete function", MEANWHILE,
			  copies);
	MPI_Comm_free_keyval(&key);
}

int main(int argc, char **argv)
{
	int ranks, rank, descriptors, mappings, later, part, count = MOST_CYCLES;
	long bytes, resident_kib;

	case_begin(&argc, &argv, &rank, &ranks);
	if (argc > 1)
		count = atoi(argv[1]);
	/* A team that stays keeps the peers known; without one they are forgotten in between. */
	use(MPI_COMM_WORLD, ranks);
	cycles(WARM_UP, ranks);
	descriptors = (int)oct_descriptors();
	mappings = (int)oct_mappings();
	/* Caches and buffers have nearly their sizes after the first half. */
	cycles(count / 2, ranks);
	resident_kib = count_resident_kib();
	part = count / 2 / PARTS;
	bytes = growth(part, ranks);
	resident_kib = count_resident_kib() - resident_kib;
	if (bytes > HEAP_SLACK + (long)part * MOST_BYTES_A_CYCLE)
		case_fail("%d communicators leave %ld bytes allocated, in the median of %d times",
			  part, bytes, PARTS);
	later = (int)oct_descriptors();
	if (later != descriptors)
		case_fail("%d file descriptors, %d after %d communicators:%s", descriptors, later,
			  count, last_descriptors());
	later = (int)oct_mappings();
	if (later > mappings + MAPPING_SLACK)
		case_fail("%d mappings, %d after %d communicators", mappings, later, count);
	alive_at_once(ranks);
	MPI_Barrier(MPI_COMM_WORLD); /* all have left the freed ones */
	later = (int)oct_descriptors();
	if (later != descriptors)
		case_fail("%d file descriptors, %d after %d were alive:%s", descriptors, later,
			  ALIVE, last_descriptors());
	made_meanwhile(ranks, rank);
	freed_in_company(ranks, rank);
	freed_with_a_window(ranks, rank);
	return case_end(
		"communicators: %d made and freed, %d at once, on %d ranks; %d descriptors, "
		"%d mappings (%d before), %d leave %ld B on the heap, the last half %ld KiB resident\n",
		WARM_UP + count, ALIVE, ranks, later, (int)oct_mappings(), mappings, part, bytes,
		resident_kib);
}
