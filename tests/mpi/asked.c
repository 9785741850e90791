/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank that waits in a collective is asked for other things, and has to do them meanwhile: remote
 * atomics, behind each other or one now and then, large messages, another communicator's
 * collectives. Rank 0 asks and comes last into the collective; rank 1, and all others, wait in it.
 * In turn behind each collective, blocking and nonblocking.
 *
 * Rank 0 prints the time that its asking took, for the driver to hold against that of the MPI
 * alone: "asked KIND-FORM-COLLECTIVE seconds" of each, and "usually KIND-FORM seconds", the median
 * of all collectives; "seldom FORM seconds", the mean of a question now and then, which takes
 * either microseconds or a turn of the scheduler; and at last "usually all seconds", the sum of
 * all. Arguments: KIND-FORM or KIND-FORM-COLLECTIVE, only these, no median of a kind of which only
 * some collectives are named, and no sum. Where ranks that spin share CPUs, some times are those of
 * the scheduler, with and without us: milliseconds for what takes a tenth of that.
 */
#include "checked.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ASKS = 0, ASKED = 1, TAG = 7 };
enum {
	ATOMICS = 250,
	SELDOM = 10,
	MESSAGES = 16,
	MESSAGE = 1 << 20,
	CALLS = 6,
	ELEMENTS = 16,
	BEFORE_FEW = 3
};
/* What rank 0 computes between two questions of those that are seldom. */
static const double between_s = 100e-6;
/* Of atomics that each take turns of the scheduler, so many as that takes stand for all. */
static const double enough_s = 50e-3;

static int rank, ranks;
static long *counter; /* in each rank's window, while there is one */
static MPI_Win window;
static long expected; /* of the asked one's counter; known to rank 0 */
static MPI_Comm pair; /* of the two */
static char *message[MESSAGES];
static MPI_Request request[MESSAGES];
static struct checked other[CALLS];
static double computed_s; /* of the time that its asking took */
static double of_all = 1; /* what part of the questions it asked */

/* ---- what the asked one does before it waits, and what rank 0 does while it waits -------------
 */

static void ask_for_atomic(int i)
{
	const long one = 1;
	long before;

	if (i % 2)
		MPI_Fetch_and_op(&one, &before, MPI_LONG, ASKED, 0, MPI_SUM, window);
	else
		MPI_Get_accumulate(&one, 1, MPI_LONG, &before, 1, MPI_LONG, ASKED, 0, 1, MPI_LONG,
				   MPI_SUM, window);
	MPI_Win_flush(ASKED, window);
	if (before != expected++)
		case_fail("an atomic operation found %ld, not %ld", before, expected - 1);
}

static void ask_for_atomics(void)
{
	double begin = case_seconds();
	int i = 0;

	do
		ask_for_atomic(i++);
	while (i < ATOMICS && case_seconds() - begin < enough_s);
	of_all = (double)i / ATOMICS;
}

static void ask_seldom(void)
{
	for (int i = 0; i < SELDOM; i++) {
		double begin = case_seconds(), now;

		do
			now = case_seconds();
		while (now - begin < between_s);
		computed_s += now - begin;
		ask_for_atomic(i);
	}
}

static void open_window(int allocate)
{
	static long own;

	counter = &own;
	if (allocate)
		MPI_Win_allocate(sizeof(own), sizeof(own), MPI_INFO_NULL, MPI_COMM_WORLD, &counter,
				 &window);
	else
		MPI_Win_create(&own, sizeof(own), sizeof(own), MPI_INFO_NULL, MPI_COMM_WORLD,
			       &window);
	*counter = expected = 0;
	case_barrier(MPI_COMM_WORLD);
	MPI_Win_lock_all(0, window);
}

static void close_window(void)
{
	MPI_Win_unlock_all(window);
	MPI_Win_free(&window);
}

static void receive_all(void)
{
	for (int i = 0; i < MESSAGES; i++)
		MPI_Irecv(message[i], MESSAGE, MPI_BYTE, ASKS, TAG, MPI_COMM_WORLD, &request[i]);
}

static void ask_to_receive(void)
{
	for (int i = 0; i < MESSAGES; i++)
		MPI_Ssend(message[i], MESSAGE, MPI_BYTE, ASKED, TAG, MPI_COMM_WORLD);
}

static void send_all(void)
{
	for (int i = 0; i < MESSAGES; i++)
		MPI_Isend(message[i], MESSAGE, MPI_BYTE, ASKS, TAG, MPI_COMM_WORLD, &request[i]);
}

static void ask_to_send(void)
{
	for (int i = 0; i < MESSAGES; i++)
		MPI_Recv(message[i], MESSAGE, MPI_BYTE, ASKED, TAG, MPI_COMM_WORLD,
			 MPI_STATUS_IGNORE);
}

static void end_all(void)
{
	MPI_Waitall(MESSAGES, request, MPI_STATUSES_IGNORE);
}

static void open_other(int i)
{
	struct checked_spec spec = { .collective = i % 2 ? CASE_ALLREDUCE : CASE_ALLTOALL,
				     .elements = ELEMENTS,
				     .salt = (uint64_t)i };

	checked_open(&other[i], pair, &spec);
	checked_start(&other[i]);
}

static void start_others(void)
{
	for (int i = 0; i < CALLS; i++)
		open_other(i);
}

static void end_others(void)
{
	for (int i = 0; i < CALLS; i++)
		checked_end(&other[i]);
}

static void ask_others(void)
{
	for (int i = 0; i < CALLS; i++) {
		open_other(i);
		checked_end(&other[i]);
	}
}

static const struct kind {
	const char *name;
	void (*ask)(void);
	void (*before)(void), (*after)(void); /* on the one that is asked */
} kinds[] = {
	{ "atomics", ask_for_atomics, NULL, NULL },
	{ "atomics-of-created", ask_for_atomics, NULL, NULL },
	{ "atomics-seldom", ask_seldom, NULL, NULL },
	{ "receives", ask_to_receive, receive_all, end_all },
	{ "sends", ask_to_send, send_all, end_all },
	{ "collectives", ask_others, start_others, end_others },
};
enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

/* ---- the waits --------------------------------------------------------------------------------
 */

/* One in which the asked rank has to wait for rank 0. */
static double ask_in(const struct kind *kind, enum case_collective collective, enum form form)
{
	/* A moment later: all the others are in it. */
	const struct timespec moment = { .tv_nsec = 2000000 };
	int gathers = collective == CASE_GATHER || collective == CASE_GATHERV ||
		      collective == CASE_REDUCE;
	struct checked_spec spec = { .collective = collective,
				     .elements = ELEMENTS,
				     .root = gathers ? ASKED : ASKS };
	double begin = 0, end = 0;

	if (rank == ASKED && kind->before)
		kind->before();
	if (rank == ASKS) {
		nanosleep(&moment, NULL);
		computed_s = 0;
		of_all = 1;
		begin = case_seconds();
		kind->ask();
		end = case_seconds() - computed_s;
	}
	checked_run(MPI_COMM_WORLD, &spec, form);
	if (rank == ASKED && kind->after)
		kind->after();
	return (end - begin) / of_all;
}

static int compare_times(const void *a, const void *b)
{
	double one = *(const double *)a, other = *(const double *)b;

	return (one > other) - (one < other);
}

/* KIND-FORM, or KIND-FORM-COLLECTIVE where there is a collective. */
static void name_it(char name[static 96], const struct kind *kind, enum form form,
		    const char *collective)
{
	snprintf(name, 96, "%s-%s%s%s", kind->name, form_names[form], collective ? "-" : "",
		 collective ? collective : "");
}

static int is_among(char **names, const char *name)
{
	while (*names && strcmp(*names, name))
		names++;
	return *names != NULL;
}

/* Which collectives of the kind are named, alone or by their kind; how many. */
static int find_named(char **names, const struct kind *kind, enum form form,
		      int named[CASE_COLLECTIVES])
{
	char name[96];
	int all, count = 0;

	name_it(name, kind, form, NULL);
	all = !names[0] || is_among(names, name);
	for (int c = 0; c < CASE_COLLECTIVES; c++) {
		name_it(name, kind, form, case_names[c]);
		named[c] = all || is_among(names, name);
		count += named[c];
	}
	return count;
}

/* The sum of what its asking took, of the collectives that are named. */
static double run(char **names, const struct kind *kind, enum form form)
{
	double took[CASE_COLLECTIVES], all = 0;
	int seldom = kind->ask == ask_seldom, windowed = kind->ask == ask_for_atomics || seldom;
	int named[CASE_COLLECTIVES], count = find_named(names, kind, form, named);
	char name[96];

	if (!count)
		return 0;
	if (windowed)
		open_window(kind == kinds);
	/* A few are asked as late as behind the others: what these met and learned, they would not.
	 */
	for (int i = 0; i < BEFORE_FEW && count < CASE_COLLECTIVES; i++)
		ask_in(kind, CASE_BARRIER, form);
	for (int c = 0; c < CASE_COLLECTIVES; c++) {
		if (!named[c])
			continue;
		took[c] = ask_in(kind, (enum case_collective)c, form);
		all += took[c];
		name_it(name, kind, form, case_names[c]);
		if (!rank && !seldom)
			printf("asked %s %.9f\n", name, took[c]);
	}
	if (windowed)
		close_window();
	if (count < CASE_COLLECTIVES)
		return all;
	qsort(took, CASE_COLLECTIVES, sizeof(took[0]), compare_times);
	if (!rank && seldom)
		printf("seldom %s %.9f\n", form_names[form], all / CASE_COLLECTIVES / SELDOM);
	else if (!rank)
		printf("usually %s-%s %.9f\n", kind->name, form_names[form],
		       took[CASE_COLLECTIVES / 2]);
	return all;
}

int main(int argc, char **argv)
{
	double all = 0;

	case_begin(&argc, &argv, &rank, &ranks);
	for (int i = 0; i < MESSAGES && rank <= ASKED; i++) {
		message[i] = malloc(MESSAGE);
		memset(message[i], i, MESSAGE); /* no page of it is new to who times */
	}
	MPI_Comm_split(MPI_COMM_WORLD, rank > ASKED, 0, &pair);
	/* They have teams then, so that their nonblocking calls are served. */
	case_barrier(MPI_COMM_WORLD);
	case_barrier(pair);
	for (int k = 0; k < KINDS; k++)
		for (int form = FORM_BLOCKING; form <= FORM_NONBLOCKING; form++)
			all += run(argv + 1, &kinds[k], (enum form)form);
	MPI_Comm_free(&pair);
	for (int i = 0; i < MESSAGES && rank <= ASKED; i++)
		free(message[i]);
	return argv[1] ? case_end("%s", "") : case_end("usually all %.9f\n", all);
}
