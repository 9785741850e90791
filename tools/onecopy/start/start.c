/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * onecopy-start-MPI CALLS NAME: a small MPI program from its exec(2) to the end of MPI_Finalize. It
 * makes calls of MPI_Allreduce of one double, each begun by all ranks at once, and then some
 * duplicates of MPI_COMM_WORLD with a call on each. With 0 calls there is no collective at all.
 *
 * Ranks meet and leave their values in shared memory of that name. Nothing is sent over the MPI
 * before the first call, so that all of its set-up is in that call's time. Rank 0 prints them.
 */
#include <dirent.h>
#include <errno.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lab/harness/clock.h"
#include "lab/harness/shm_barrier.h"
#include "lab/harness/stats.h"

/* What each rank leaves; behind them its time of each call in us. 0: not measured. */
enum value { INIT, LOADED, ENDED, DUP, NEW, DESCRIPTORS, MEMORY, VALUES };

/* Communicators of a run, whose median counts. */
enum { CALLS_MOST = 2000, COMMS = 21 };
/* Ranks that outnumber the CPUs may take milliseconds a call. */
#define CALLS_US 10e6

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

static void measure_communicators(struct shm_barrier *barrier, double *values)
{
	double dup_us[COMMS], new_us[COMMS];

	for (int i = 0; i < COMMS; i++) {
		MPI_Comm comm;
		double begin;

		shm_barrier_align(barrier);
		begin = now_us();
		MPI_Comm_dup(MPI_COMM_WORLD, &comm);
		dup_us[i] = now_us() - begin;
		new_us[i] = allreduce_us(barrier, comm);
		MPI_Comm_free(&comm);
	}
	values[DUP] = stats_median(dup_us, COMMS);
	values[NEW] = stats_median(new_us, COMMS);
}

static void meet(struct shm_barrier *barrier, const char *name, int rank, int ranks, long calls)
{
	int error = shm_barrier_meet(barrier, name, rank, ranks, VALUES + (size_t)calls);

	if (!error)
		return;
	fprintf(stderr, "onecopy-start: shared memory '%s': %s\n", name, strerror(-error));
	exit(1);
}

/* The slowest rank's, or the sum over all. */
static double of_all(const struct shm_barrier *barrier, long at, int sum)
{
	double all = 0, one;

	for (int rank = 0; rank < barrier->ranks; rank++) {
		one = shm_barrier_times(barrier, rank)[at];
		all = sum ? all + one : one > all ? one : all;
	}
	return all;
}

static void print(const struct shm_barrier *barrier, long calls)
{
	static const char *const names[] = {
		"init", "loaded", "none", "dup", "new", "descriptors"
	};
	double first = of_all(barrier, VALUES, 0), us;
	int ranks = barrier->ranks;

	if (!calls) {
		printf("= none %d %.3f\n", ranks, of_all(barrier, ENDED, 0));
		return;
	}
	for (int v = 0; v <= DESCRIPTORS; v++)
		if (v != ENDED)
			printf("= %s %d %.3f\n", names[v], ranks, of_all(barrier, v, 0));
	printf("= memory %d %.1f\n", ranks, of_all(barrier, MEMORY, 1) / ranks);
	printf("= first %d %.3f\n", ranks, first);
	printf("= job %d %.3f\n", ranks, of_all(barrier, LOADED, 0) + first);
	for (long i = 0; i < calls && (us = of_all(barrier, VALUES + i, 0)) > 0; i++)
		printf("= calls-%d %ld %.3f\n", ranks, i + 1, us);
}

int main(int argc, char **argv)
{
	double since, begin, init_us, fds, memory, ended, *values;
	struct shm_barrier barrier = { 0 };
	const char *name = argc > 2 ? argv[2] : "";
	int rank, ranks;
	long calls;

	if (argc < 3 || argc > 4 || strtol(argv[1], NULL, 10) > CALLS_MOST) {
		fprintf(stderr, "usage: %s CALLS NAME\nRun by onecopy bench start.\n", argv[0]);
		return 2;
	}
	if (argc == 3)
		begin_again(argv);
	calls = strtol(argv[1], NULL, 10);
	since = strtod(argv[3], NULL);
	begin = now_us();
	MPI_Init(&argc, &argv);
	init_us = now_us() - begin;
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (calls) {
		meet(&barrier, name, rank, ranks, calls);
		values = shm_barrier_times(&barrier, rank);
		measure_calls(&barrier, calls, values + VALUES);
		measure_communicators(&barrier, values);
	}
	fds = descriptors();
	memory = proportional_k();
	MPI_Finalize();
	ended = now_us() - since;
	/* Its memory is no part of what a program without a collective takes. */
	if (!calls)
		meet(&barrier, name, rank, ranks, calls);
	values = shm_barrier_times(&barrier, rank);
	values[INIT] = init_us;
	values[LOADED] = begin + init_us - since;
	values[ENDED] = ended;
	values[DESCRIPTORS] = fds;
	values[MEMORY] = memory;
	shm_barrier_wait(&barrier);
	if (!rank)
		print(&barrier, calls);
	shm_barrier_close(&barrier);
	return 0;
}
