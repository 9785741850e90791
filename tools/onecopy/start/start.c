/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What `onecopy bench start` runs: a small MPI program from its exec(2) to the end of MPI_Finalize.
 * It makes calls of MPI_Allreduce of one double, each begun by all ranks at once, and then some
 * duplicates of MPI_COMM_WORLD with a call on each. With 0 calls there is no collective at all.
 *
 * Ranks meet and leave their values in shared memory that the command made. Nothing is sent over
 * the MPI before the first call, so that all of its set-up is in that call's time.
 */
#include "start.h"

#include "lab/harness/shm_barrier.h"

#include <dirent.h>
#include <errno.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Ranks that outnumber the CPUs may take milliseconds a call. */
#define CALLS_US 10e6

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

/* Until exec(2) nothing of the MPI and of onecopy counts: its loading is part of what is measured.
 */
static void begin_again(char **argv)
{
	char since[64], *again[] = { argv[0], argv[1], argv[2], since, NULL };

	snprintf(since, sizeof(since), "%.3f", now_us());
	execv("/proc/self/exe", again);
	fprintf(stderr, "onecopy-start: /proc/self/exe cannot be run: %s\n", strerror(errno));
	exit(1);
}

static double descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	double count = -3; /* ".", "..", and the one that reads */

	while (dir && readdir(dir))
		count++;
	if (dir)
		closedir(dir);
	return count > 0 ? count : 0;
}

static double proportional_k(void)
{
	FILE *in = fopen("/proc/self/smaps_rollup", "re");
	char line[256];
	double k = 0;

	while (in && fgets(line, sizeof(line), in))
		if (sscanf(line, "Pss: %lf kB", &k) == 1)
			break;
	if (in)
		fclose(in);
	return k;
}

static double allreduce_us(struct shm_barrier *barrier, MPI_Comm comm)
{
	double one = 1, sum = 0, begin;

	shm_barrier_align(barrier);
	begin = now_us();
	MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, comm);
	begin = now_us() - begin;
	if (sum == barrier->ranks)
		return begin;
	fprintf(stderr, "onecopy-start: the sum of %d ones was %g\n", barrier->ranks, sum);
	MPI_Abort(MPI_COMM_WORLD, 1);
	return 0;
}

static void measure_calls(struct shm_barrier *barrier, long calls, double *us)
{
	double end = now_us() + CALLS_US;

	for (long i = 0; i < calls; i++) {
		/* All read it behind this wait; rank 0 cannot set it again before they have. */
		if (barrier->rank == 0 && now_us() > end)
			shm_barrier_set_stop(barrier, true);
		shm_barrier_wait(barrier);
		if (shm_barrier_stop(barrier))
			return;
		us[i] = allreduce_us(barrier, MPI_COMM_WORLD);
	}
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void measure_communicators(struct shm_barrier *barrier, double *values)
{
	double dup_us[START_COMMS], new_us[START_COMMS];

	for (int i = 0; i < START_COMMS; i++) {
		MPI_Comm comm;
		double begin;

		shm_barrier_align(barrier);
		begin = now_us();
		MPI_Comm_dup(MPI_COMM_WORLD, &comm);
		dup_us[i] = now_us() - begin;
		new_us[i] = allreduce_us(barrier, comm);
		MPI_Comm_free(&comm);
	}
	qsort(dup_us, START_COMMS, sizeof(double), by_value);
	qsort(new_us, START_COMMS, sizeof(double), by_value);
	values[START_DUP_US] = dup_us[START_COMMS / 2];
	values[START_NEW_US] = new_us[START_COMMS / 2];
}

static void open_barrier(struct shm_barrier *barrier, const char *name, int rank)
{
	int error = shm_barrier_open(barrier, name, rank);

	if (!error)
		return;
	fprintf(stderr, "onecopy-start: shared memory '%s': %s\n", name, strerror(-error));
	exit(1);
}

int main(int argc, char **argv)
{
	double since, begin, init_us, loaded_us, fds, pss, *values;
	struct shm_barrier barrier = { 0 };
	long calls;
	int rank;

	if (argc < 3 || argc > 4 || strtol(argv[2], NULL, 10) > START_CALLS_MOST) {
		fprintf(stderr, "usage: %s NAME CALLS\nRun by onecopy bench start.\n", argv[0]);
		return 2;
	}
	if (argc == 3)
		begin_again(argv);
	since = strtod(argv[3], NULL);
	calls = strtol(argv[2], NULL, 10);
	begin = now_us();
	MPI_Init(&argc, &argv);
	init_us = now_us() - begin;
	loaded_us = begin + init_us - since;
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	open_barrier(&barrier, argv[1], rank);
	values = shm_barrier_times(&barrier, rank);
	if (calls) {
		shm_barrier_join(&barrier);
		measure_calls(&barrier, calls, values + START_VALUES);
		measure_communicators(&barrier, values);
	}
	fds = descriptors();
	pss = proportional_k();
	MPI_Finalize();
	values[START_ENDED_US] = now_us() - since;
	values[START_INIT_US] = init_us;
	values[START_LOADED_US] = loaded_us;
	values[START_DESCRIPTORS] = fds;
	values[START_PROPORTIONAL_K] = pss;
	shm_barrier_close(&barrier);
	return 0;
}
