/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * onecopy-overlap-MPI: how far the nonblocking collectives of the MPI below it go on while the
 * program computes. `onecopy bench overlap` runs it.
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
#include <errno.h>
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lab/bench/buffers.h"
#include "lab/bench/mpi_call.h"
#include "lab/harness/clock.h"
#include "lab/harness/mpi_ranks.h"
#include "lab/harness/options.h"
#include "lab/harness/stats.h"

enum { MOST_TURNS = 2000, LEAST_TURNS = 10, WARM_TURNS = 20, CHECK_EVERY = 50 };

/* Who computes between the call and its wait. */
enum who { ALL, ROOT, OTHERS, WHO };
/* What a rank notes of a turn. */
enum noted { PURE, ALONE, BOTH, ALONE_CPU = BOTH + WHO, BOTH_CPU, NOTED };

static struct overlap {
	struct collective_list collectives;
	struct size_list sizes;
	double cell_seconds;
	bool spare; /* odd ranks sleep */
	int rank, ranks;
	struct shm_barrier barrier;
	double steps_per_us; /* of the computation */
	uint64_t seed;
} overlap = { .cell_seconds = 0.1 };

struct cell {
	struct collective_call call;
	struct mpi_call mpi;
	struct buffers send, recv;
	long steps;    /* of the computation */
	double *noted; /* [MOST_TURNS][NOTED] */
};

static void fail(const char *what, int error)
{
	fprintf(stderr, "onecopy-overlap: rank %d: %s: %s\n", overlap.rank, what, strerror(error));
	MPI_Abort(MPI_COMM_WORLD, STATUS_FAILED);
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
	double us = fmax(0, (double)steps / overlap.steps_per_us - 60);
	struct timespec pause = { .tv_nsec = (long)(us * 1e3) % 1000000000,
				  .tv_sec = (time_t)(us / 1e6) };

	nanosleep(&pause, NULL);
}

/* Whose time counts. */
static bool computes(int rank, enum who who)
{
	return who == ALL ? !overlap.spare || rank % 2 == 0 : (who == ROOT) == (rank == 0);
}

/* So many computations. */
static int times_of(enum who who)
{
	return who != ALL || overlap.spare ? 4 : 1;
}

/* The fastest of some: others may have had the CPU meanwhile. */
static void calibrate(void)
{
	const long steps = 100000;

	for (int i = 0; i < 20; i++) {
		double begin = now_us(), rate;

		compute(steps);
		rate = (double)steps / (now_us() - begin);
		if (rate > overlap.steps_per_us)
			overlap.steps_per_us = rate;
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

static void verify(const struct cell *cell, const void *recv)
{
	int error = collective_report(&cell->call, recv, "onecopy-overlap: MPI_I");

	if (error == -EBADMSG)
		MPI_Abort(MPI_COMM_WORLD, STATUS_FAILED);
	else if (error)
		fail("the received bytes could not be verified", -error);
}

/* One call, with so many steps in each computation before its wait. */
static void run_call(struct cell *cell, enum who who, long steps, bool check, double *us,
		     double *cpu)
{
	MPI_Request request;
	void *send, *recv;
	double begin, begin_cpu;

	/* Pools do not run out of memory. */
	buffers_get(&cell->send, &send);
	buffers_get(&cell->recv, &recv);
	cell->call.seed = ++overlap.seed;
	collective_fill(&cell->call, send);
	shm_barrier_align(&overlap.barrier);
	begin_cpu = cpu ? cpu_us() : 0;
	steps *= times_of(who);
	begin = now_us();
	mpi_call_begin(&cell->mpi, send, recv, &request);
	if (steps && computes(overlap.rank, who))
		compute(steps);
	else if (steps && who == ALL)
		rest(steps);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	*us = now_us() - begin;
	if (cpu)
		*cpu = cpu_us() - begin_cpu;
	shm_barrier_wait(&overlap.barrier);
	if (check)
		verify(cell, recv);
}

static void run_alone(long steps, double *us, double *cpu)
{
	double begin, begin_cpu;

	shm_barrier_align(&overlap.barrier);
	begin_cpu = cpu_us();
	begin = now_us();
	compute(steps);
	*us = now_us() - begin;
	*cpu = cpu_us() - begin_cpu;
	shm_barrier_wait(&overlap.barrier);
}

/* Of those that compute; less what `times` of another thing took. */
static double mean_of(long turn, enum who who, enum noted what, int times, enum noted less)
{
	double sum = 0;
	int count = 0;

	for (int rank = 0; rank < overlap.ranks; rank++) {
		const double *noted = shm_barrier_times(&overlap.barrier, rank) + turn * NOTED;

		if (!computes(rank, who))
			continue;
		sum += noted[what] - times * noted[less];
		count++;
	}
	return sum / count;
}

/* The computation is to take as long as the call: alike on all ranks. */
static void warm_up(struct cell *cell)
{
	double pure[WARM_TURNS], cpu;

	for (long turn = 0; turn < WARM_TURNS; turn++)
		run_call(cell, ALL, 0, true, &cell->noted[turn * NOTED + PURE], &cpu);
	shm_barrier_wait(&overlap.barrier);
	/* The first half are learning, and fetch what is used. */
	for (long turn = 0; turn < WARM_TURNS; turn++)
		pure[turn] = mean_of(turn, ALL, PURE, 0, PURE);
	shm_barrier_wait(&overlap.barrier);
	cell->steps = 1 + (long)(stats_median(pure + WARM_TURNS / 2, WARM_TURNS / 2) *
				 overlap.steps_per_us);
}

/* How many turns were made. */
static long take_turns(struct cell *cell)
{
	double deadline = now_us() + 1e6 * overlap.cell_seconds;
	long turn = 0;
	bool stop = false;

	for (; turn < MOST_TURNS && !stop; turn++) {
		double *noted = cell->noted + turn * NOTED;
		bool check = turn % CHECK_EVERY == 0;

		/* Rank 0 alone looks at the clock; it does so before the waits of the turn. */
		if (overlap.rank == 0)
			shm_barrier_set_stop(&overlap.barrier,
					     turn + 1 >= LEAST_TURNS && now_us() > deadline);
		run_call(cell, ALL, 0, check, &noted[PURE], NULL);
		run_alone(cell->steps, &noted[ALONE], &noted[ALONE_CPU]);
		stop = shm_barrier_stop(&overlap.barrier);
		run_call(cell, ALL, cell->steps, check, &noted[BOTH], &noted[BOTH_CPU]);
		run_call(cell, ROOT, cell->steps, check, &noted[BOTH + ROOT], NULL);
		run_call(cell, OTHERS, cell->steps, check, &noted[BOTH + OTHERS], NULL);
	}
	return turn;
}

static void print(const struct cell *cell, const char *what, double value)
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

static void sum_up(const struct cell *cell, long turns)
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

static void run_cell(enum oc_collective collective, size_t bytes)
{
	struct cell cell = {
		.call = { .collective = collective,
			  .rank = overlap.rank,
			  .ranks = overlap.ranks,
			  .bytes = bytes },
		.noted = shm_barrier_times(&overlap.barrier, overlap.rank),
	};
	int error = mpi_call_create(&cell.mpi, &cell.call, FORM_NONBLOCKING);
	long turns;

	if (!error)
		error = buffers_create(&cell.send, BUFFERS_ROTATED,
				       collective_send_bytes(&cell.call));
	if (!error)
		error = buffers_create(&cell.recv, BUFFERS_ROTATED,
				       collective_recv_bytes(&cell.call));
	if (error)
		fail("no buffers; choose smaller sizes", -error);
	/* The first blocking collective of a communicator makes its team. */
	MPI_Barrier(cell.mpi.comm);
	warm_up(&cell);
	turns = take_turns(&cell);
	if (overlap.rank == 0)
		sum_up(&cell, turns);
	/* The times may be overwritten from here on. */
	shm_barrier_wait(&overlap.barrier);
	buffers_destroy(&cell.send);
	buffers_destroy(&cell.recv);
	mpi_call_destroy(&cell.mpi);
}

/* ---- the program ----------------------------------------------------------------------------- */

#define AT(member) .place = offsetof(struct overlap, member)

static const struct option_set set = {
	.rows =
		(const struct option_row[]){
			{ "collectives", 0, "LIST",
			  "What to measure: some of " COLLECTIVE_WORDS "with commas between them",
			  .take = take_collectives, AT(collectives) },
			{ "sizes", 0, "LIST", "Bytes of the message or of one rank's block",
			  .take = take_sizes, AT(sizes) },
			{ "cell-seconds", 0, "S", "Time of a cell (default: 0.1)", OPTION_FRACTION,
			  AT(cell_seconds), 0.001, 3600 },
			{ "spare", 0, NULL,
			  "Odd ranks sleep instead of computing, so that their CPUs are idle",
			  AT(spare) },
			{ 0 } },
	.about = "Run by onecopy bench overlap, under mpirun.",
};

int main(int argc, char **argv)
{
	int error;

	collective_list_default(&overlap.collectives);
	take_sizes(&overlap.sizes, SIZES_USUAL);
	options_parse(&set, argc, argv, &overlap);
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &overlap.rank);
	MPI_Comm_size(MPI_COMM_WORLD, &overlap.ranks);
	error = mpi_ranks_meet(&overlap.barrier, (size_t)MOST_TURNS * NOTED);
	if (error)
		fail("the ranks' shared memory could not be made; are all on this host?", -error);
	calibrate();
	for (int c = 0; c < overlap.collectives.n; c++) {
		bool barrier = overlap.collectives.at[c] == OC_BARRIER;

		for (unsigned int s = 0; s < (barrier ? 1 : overlap.sizes.count); s++)
			run_cell(overlap.collectives.at[c], barrier ? 0 : overlap.sizes.at[s]);
	}
	shm_barrier_close(&overlap.barrier);
	MPI_Finalize();
	return STATUS_OK;
}
