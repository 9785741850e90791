/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * onecopy-collectives --overlap: how far nonblocking collectives go on while the program
 * computes. `onecopy bench overlap` runs it.
 *
 * Five things take turns, each begun by all ranks at one instant: the call with its wait at once; a
 * computation of a fixed number of steps, which takes as long as the call; the call, the
 * computation, the wait; and the same with four such computations where the root alone computes,
 * and where it alone does not, as who moves the bytes alone may take longer. A value is the mean
 * over the ranks that compute, as in OSU's benchmarks, and of these the median over the turns.
 * Printed is, behind '=', collective and bytes:
 *
 *   pure     the call and its wait, us
 *   exposed  what the third takes longer than the second, us
 *   overlap  100 * (1 - exposed / pure), in %: as OSU's osu_i* define it, but negative where the
 *            third takes longer than both others
 *   lost     CPU time of the process in the third beyond that in the second, in % of the latter
 *   root     what the fourth takes the root longer than the second, us
 *   others   what the fifth takes the others longer than the second, us
 *
 * With --spare odd ranks sleep instead of computing, and are not counted in `exposed`, `overlap`
 * and `lost`: their CPUs are idle.
 */
#include "mpi_cell.h"

#include <math.h>
#include <stdio.h>
#include <time.h>

#include "lab/harness/clock.h"
#include "lab/harness/stats.h"

enum { MOST_TURNS = 2000, LEAST_TURNS = 10, WARM_TURNS = 20, CHECK_EVERY = 50 };

/* Who computes between the call and its wait. */
enum who { ALL, ROOT, OTHERS, WHO };
/* What a rank notes of a turn. */
enum noted { PURE, ALONE, BOTH, ALONE_CPU = BOTH + WHO, BOTH_CPU, NOTED };

static struct bench *b;
static double steps_per_us; /* of the computation */

size_t overlap_samples(void)
{
	return (size_t)MOST_TURNS * NOTED;
}

/* ---- computing ------------------------------------------------------------------------------- */

static volatile double result;

/* In registers: what a call leaves in the caches is not what is measured here. */
static void compute(long steps)
{
	double x = result;

	for (long i = 0; i < steps; i++)
		x = x * 0.999999 + 1e-6;
	result = x;
}

/* Until shortly before the others end: sleeps end some 50 us late. */
static void rest(long steps)
{
	double us = fmax(0, (double)steps / steps_per_us - 60);
	struct timespec pause = { .tv_nsec = (long)(us * 1e3) % 1000000000,
				  .tv_sec = (time_t)(us / 1e6) };

	nanosleep(&pause, NULL);
}

/* Whose time counts. */
static bool computes(int rank, enum who who)
{
	return who == ALL ? !b->options.spare || rank % 2 == 0 : (who == ROOT) == (rank == 0);
}

/* So many computations. */
static int times_of(enum who who)
{
	return who != ALL || b->options.spare ? 4 : 1;
}

/* The fastest of some: others may have had the CPU meanwhile. */
static void calibrate(void)
{
	const long steps = 100000;

	for (int i = 0; i < 20; i++) {
		double begin = now_us();

		compute(steps);
		steps_per_us = fmax(steps_per_us, (double)steps / (now_us() - begin));
	}
}

/* Of all threads. */
static double cpu_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return 1e6 * (double)now.tv_sec + 1e-3 * (double)now.tv_nsec;
}

/* ---- turns ----------------------------------------------------------------------------------- */

/* One call, with so many steps in each computation before its wait. */
static void run_call(struct cell_run *cell, enum who who, long steps, bool check, double *us,
		     double *cpu)
{
	MPI_Request request;
	void *send, *recv;
	double begin, begin_cpu;

	/* Pools do not run out of memory. */
	buffers_get(&cell->send, &send);
	buffers_get(&cell->recv, &recv);
	cell->call.seed = ++b->calls;
	collective_fill(&cell->call, send);
	shm_barrier_align(&b->barrier);
	begin_cpu = cpu ? cpu_us() : 0;
	steps *= times_of(who);
	begin = now_us();
	mpi_call_begin(&cell->mpi, send, recv, &request);
	if (steps && computes(b->rank, who))
		compute(steps);
	else if (steps && who == ALL)
		rest(steps);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	*us = now_us() - begin;
	if (cpu)
		*cpu = cpu_us() - begin_cpu;
	shm_barrier_wait(&b->barrier);
	if (check)
		cell_verify(b, cell, recv, -1);
}

static void run_alone(long steps, double *us, double *cpu)
{
	double begin, begin_cpu;

	shm_barrier_align(&b->barrier);
	begin_cpu = cpu_us();
	begin = now_us();
	compute(steps);
	*us = now_us() - begin;
	*cpu = cpu_us() - begin_cpu;
	shm_barrier_wait(&b->barrier);
}

/* Of those that compute; less what `times` of another thing took. */
static double mean_of(long turn, enum who who, enum noted what, int times, enum noted less)
{
	double sum = 0;
	int count = 0;

	for (int rank = 0; rank < b->ranks; rank++) {
		const double *noted = shm_barrier_times(&b->barrier, rank) + turn * NOTED;

		if (!computes(rank, who))
			continue;
		sum += noted[what] - times * noted[less];
		count++;
	}
	return sum / count;
}

/* The steps of a computation that takes as long as the call: alike on all ranks. */
static long warm_up(struct cell_run *cell)
{
	double pure[WARM_TURNS], cpu;

	for (long turn = 0; turn < WARM_TURNS; turn++)
		run_call(cell, ALL, 0, true, &cell->times[turn * NOTED + PURE], &cpu);
	shm_barrier_wait(&b->barrier);
	/* The first half are learning, and fetch what is used. */
	for (long turn = 0; turn < WARM_TURNS; turn++)
		pure[turn] = mean_of(turn, ALL, PURE, 0, PURE);
	shm_barrier_wait(&b->barrier);
	return 1 + (long)(stats_median(pure + WARM_TURNS / 2, WARM_TURNS / 2) * steps_per_us);
}

/* How many turns were made. */
static long take_turns(struct cell_run *cell, long steps)
{
	double deadline = now_us() + 1e6 * b->options.cell_seconds;
	long turn = 0;
	bool stop = false;

	for (; turn < MOST_TURNS && !stop; turn++) {
		double *noted = cell->times + turn * NOTED;
		bool check = turn % CHECK_EVERY == 0;

		/* Rank 0 alone looks at the clock; it does so before the waits of the turn. */
		if (b->rank == 0)
			shm_barrier_set_stop(&b->barrier,
					     turn + 1 >= LEAST_TURNS && now_us() > deadline);
		run_call(cell, ALL, 0, check, &noted[PURE], NULL);
		run_alone(steps, &noted[ALONE], &noted[ALONE_CPU]);
		stop = shm_barrier_stop(&b->barrier);
		run_call(cell, ALL, steps, check, &noted[BOTH], &noted[BOTH_CPU]);
		run_call(cell, ROOT, steps, check, &noted[BOTH + ROOT], NULL);
		run_call(cell, OTHERS, steps, check, &noted[BOTH + OTHERS], NULL);
	}
	return turn;
}

static void print(const struct cell_run *cell, const char *what, double value)
{
	printf("= %s-%s %zu %.6g\n", oci_collective_name(cell->call.collective), what,
	       cell->call.bytes, value);
}

static double exposed_us(long turns, enum who who)
{
	double exposed[MOST_TURNS];

	for (long turn = 0; turn < turns; turn++)
		exposed[turn] = mean_of(turn, who, (enum noted)(BOTH + who), times_of(who), ALONE);
	return stats_median(exposed, (size_t)turns);
}

static void sum_up(const struct cell_run *cell, long turns)
{
	double pure[MOST_TURNS], lost[MOST_TURNS], pure_us, all_us = exposed_us(turns, ALL);
	int times = times_of(ALL);

	for (long turn = 0; turn < turns; turn++) {
		pure[turn] = mean_of(turn, ALL, PURE, 0, PURE);
		lost[turn] = 100 * mean_of(turn, ALL, BOTH_CPU, times, ALONE_CPU) /
			     (times * mean_of(turn, ALL, ALONE_CPU, 0, ALONE_CPU));
	}
	pure_us = stats_median(pure, (size_t)turns);
	print(cell, "pure", pure_us);
	print(cell, "exposed", all_us);
	print(cell, "overlap", 100 * (1 - all_us / pure_us));
	print(cell, "lost", stats_median(lost, (size_t)turns));
	print(cell, "root", exposed_us(turns, ROOT));
	print(cell, "others", exposed_us(turns, OTHERS));
	fflush(stdout);
}

void overlap_measure(struct bench *bench, struct cell_run *cell)
{
	long turns;

	b = bench;
	if (steps_per_us == 0)
		calibrate();
	/* The first blocking collective of a communicator makes its team. */
	MPI_Barrier(cell->mpi.comm);
	turns = take_turns(cell, warm_up(cell));
	/* Failures are known to all from here on. */
	shm_barrier_wait(&b->barrier);
	if (b->rank == 0 && !shm_barrier_failed(&b->barrier))
		sum_up(cell, turns);
}
