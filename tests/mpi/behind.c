/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Preloaded behind onecopy's library for MPICH: an MPI that does as OC_TEST_BEHIND says.
 *
 * slow      MPI_Comm_set_attr takes its time before and after: other threads, which have not found
 *           the attribute either, set it meanwhile
 * returns   MPI_Finalize is over at once, whoever of the job has died
 * leaves    the same, and the launcher is told. Between hosts MPICH 4.0.2 (UCX, TCP) by itself
 * often hangs there: a process waits for peers that have gone on to wait for the launcher
 * hurries   once the ranks say in MPI_Init who they are, the clock runs two hundred times as fast
 * apart     the last two processes and the others are of two jobs, as if these had met
 *
 * It counts how many times a datatype was asked for its contents, whatever the word is.
 *
 * With tests/mpich-suite/yield.c in it.
 */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SLOW_US = 500, HURRY = 200, APART = 2 };

static int is(const char *word)
{
	const char *asked = getenv("OC_TEST_BEHIND");

	return asked && !strcmp(asked, word);
}

int PMPI_Comm_set_attr(MPI_Comm comm, int key, void *value)
{
	int (*next)(MPI_Comm, int, void *) =
		(int (*)(MPI_Comm, int, void *))dlsym(RTLD_NEXT, "PMPI_Comm_set_attr");
	int error;

	if (is("slow"))
		usleep(SLOW_US);
	error = next(comm, key, value);
	if (is("slow"))
		usleep(SLOW_US);
	return error;
}

#define SECOND 1000000000LL
static long long hurries_since; /* in ns; 0: not yet */

static long long ns_of(const struct timespec *time)
{
	return time->tv_sec * SECOND + time->tv_nsec;
}

int PMPI_Iallgather(const void *mine, int count, MPI_Datatype type, void *all, int each,
		    MPI_Datatype to, MPI_Comm comm, MPI_Request *request)
{
	int (*next)(const void *, int, MPI_Datatype, void *, int, MPI_Datatype, MPI_Comm,
		    MPI_Request *) =
		(int (*)(const void *, int, MPI_Datatype, void *, int, MPI_Datatype, MPI_Comm,
			 MPI_Request *))dlsym(RTLD_NEXT, "PMPI_Iallgather");
	struct timespec now;

	if (is("hurries") && !clock_gettime(CLOCK_MONOTONIC, &now))
		hurries_since = ns_of(&now);
	return next(mine, count, type, all, each, to, comm, request);
}

/* Each second since then counts as HURRY. */
int clock_gettime(clockid_t clock, struct timespec *now)
{
	static int (*next)(clockid_t, struct timespec *);
	long long ns;
	int error;

	if (!next)
		next = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
	error = next(clock, now);
	if (error || clock != CLOCK_MONOTONIC || !hurries_since)
		return error;
	ns = ns_of(now) + (ns_of(now) - hurries_since) * (HURRY - 1);
	*now = (struct timespec){ ns / SECOND, ns % SECOND };
	return 0;
}

/* To the group of the world: from the other job's side nobody is in it. */
int PMPI_Group_translate_ranks(MPI_Group from, int count, const int *rank, MPI_Group to, int *found)
{
	int (*next)(MPI_Group, int, const int *, MPI_Group, int *) =
		(int (*)(MPI_Group, int, const int *, MPI_Group, int *))dlsym(
			RTLD_NEXT, "PMPI_Group_translate_ranks");
	int error = next(from, count, rank, to, found), me, size, world;

	if (!is("apart") || error)
		return error;
	PMPI_Comm_rank(MPI_COMM_WORLD, &me);
	PMPI_Comm_size(MPI_COMM_WORLD, &world);
	PMPI_Group_size(to, &size);
	for (int i = 0; i < count && size == world; i++)
		if (found[i] >= 0 && (found[i] >= world - APART) != (me >= world - APART))
			found[i] = MPI_UNDEFINED;
	return MPI_SUCCESS;
}

static long contents_asked;

/* For the program, which finds it by its name. */
long oc_test_contents_asked(void)
{
	return contents_asked;
}

int PMPI_Type_get_contents_c(MPI_Datatype type, MPI_Count integers, MPI_Count addresses,
			     MPI_Count counts, MPI_Count types, int *integer, MPI_Aint *address,
			     MPI_Count *count, MPI_Datatype *made_of)
{
	int (*next)(MPI_Datatype, MPI_Count, MPI_Count, MPI_Count, MPI_Count, int *, MPI_Aint *,
		    MPI_Count *, MPI_Datatype *) =
		(int (*)(MPI_Datatype, MPI_Count, MPI_Count, MPI_Count, MPI_Count, int *,
			 MPI_Aint *, MPI_Count *, MPI_Datatype *))dlsym(RTLD_NEXT,
									"PMPI_Type_get_contents_c");

	contents_asked++;
	return next(type, integers, addresses, counts, types, integer, address, count, made_of);
}

/* Of MPI 4.1, which the MPI that this is built with may lack. */
#if MPI_VERSION == 4 && MPI_SUBVERSION < 1
int PMPI_Request_get_status_all(int count, const MPI_Request *request, int *flag,
				MPI_Status *status)
{
	int error = MPI_SUCCESS;

	*flag = 1;
	for (int i = 0; i < count && *flag && !error; i++)
		error = PMPI_Request_get_status(request[i], flag, &status[i]);
	return error;
}

int PMPI_Request_get_status_any(int count, const MPI_Request *request, int *index, int *flag,
				MPI_Status *status)
{
	int error = MPI_SUCCESS;

	*flag = 0;
	for (*index = 0; *index < count && !error; ++*index) {
		error = PMPI_Request_get_status(request[*index], flag, status);
		if (*flag)
			return error;
	}
	*index = MPI_UNDEFINED;
	return error;
}

int PMPI_Request_get_status_some(int count, const MPI_Request *request, int *done, int *index,
				 MPI_Status *status)
{
	int flag, error = MPI_SUCCESS;

	*done = 0;
	for (int i = 0; i < count && !error; i++) {
		error = PMPI_Request_get_status(request[i], &flag, &status[*done]);
		if (flag)
			index[(*done)++] = i;
	}
	return error;
}
#endif

/* The launcher's own words. */
static void leave(void)
{
	const char *descriptor = getenv("PMI_FD");
	int fd = descriptor ? atoi(descriptor) : -1;
	char answer[256];

	if (dprintf(fd, "cmd=finalize\n") > 0 && read(fd, answer, sizeof(answer)) < 0)
		return;
}

int PMPI_Finalize(void)
{
	int (*next)(void) = (int (*)(void))dlsym(RTLD_NEXT, "PMPI_Finalize");

	if (is("leaves"))
		leave();
	return is("returns") || is("leaves") ? MPI_SUCCESS : next();
}

/* Of a program without onecopy, whose is in front otherwise. */
int MPI_Finalize(void)
{
	return PMPI_Finalize();
}
