/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a job pays before its collectives pay off: MPI_Init, the first call, each of the next 1999,
 * a new communicator, memory, and a program without any collective; on the MPIs that are installed,
 * without onecopy and with it, in turns.
 */
#include "bench_p2p.h"

#include "bench.h"
#include "command.h"
#include "lab/harness/shm_barrier.h"
#include "lab/harness/stats.h"
#include "start/start.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SERIES = 4, PLACES_MOST = 12, QUICK_CALLS = 200 };
/* A call is slow that takes so much longer than stock's at the same place. */
#define SLOW_US 5.0

/* A figure each, over the number of ranks. */
enum quantity {
	INIT,
	LOADED,
	FIRST,
	LOADED_AND_FIRST,
	DUP,
	NEW,
	SLOW,
	ENDED,
	WALL,
	DESCRIPTORS,
	MEMORY,
	QUANTITIES
};

static const struct {
	const char *name, *unit, *title, *about;
} quantities[QUANTITIES] = {
	[INIT] = { "init", "us", "MPI_Init", "The slowest rank's." },
	[LOADED] = { "loaded", "us", "From exec to the end of MPI_Init",
		     "The slowest rank's: loading the program and its libraries, and MPI_Init." },
	[FIRST] = { "first", "us", "First call", "MPI_Allreduce of one double; the slowest rank." },
	[LOADED_AND_FIRST] = { "job", "us", "From exec to the end of the first call",
			       "The sum of the two before: what a job has to win back." },
	[DUP] = { "dup", "us", "MPI_Comm_dup", "The median of 21 in a run." },
	[NEW] = { "new", "us", "First call on a new communicator",
		  "The median of 21 duplicates in a run." },
	[SLOW] = { "slow", "calls", "Calls that take 5 us more than stock's at the same place",
		   "Of the second to the last, by the medians over the rounds." },
	[ENDED] = { "none", "us", "Program without a collective, from exec to MPI_Finalize's end",
		    "The slowest rank's: loading, MPI_Init, MPI_Finalize." },
	[WALL] = { "none-job", "ms", "Job without a collective, with its launcher",
		   "From the start of the launcher, behind onecopy run with onecopy, to its end." },
	[DESCRIPTORS] = { "descriptors", "descriptors", "Descriptors of a rank",
			  "The most that a rank has open, after all calls." },
	[MEMORY] = { "memory", "KiB", "Memory of a rank",
		     "After all calls; a shared page counts as its part, by the ranks that have it. "
		     "The mean over ranks." },
};

static const struct {
	const char *name;
	enum p2p_launcher launcher;
	bool onecopy;
} series[SERIES] = {
	{ "Open MPI", P2P_OPENMPI, false },
	{ "Open MPI, onecopy", P2P_OPENMPI, true },
	{ "MPICH", P2P_MPICH, false },
	{ "MPICH, onecopy", P2P_MPICH, true },
};

static struct {
	size_t ranks[PLACES_MOST]; /* the figures' axis */
	unsigned int places;
	size_t shown[START_CALLS_MOST]; /* the axis of the calls' figures */
	unsigned int shown_count;
	unsigned int calls;
	struct figure *figures[QUANTITIES];
	struct figure *by_call[PLACES_MOST];
	double *us[PLACES_MOST][SERIES]; /* [calls][rounds] */
	unsigned int rounds[PLACES_MOST][SERIES];
	bool left_out[SERIES];
} start;

/* ---- plan ------------------------------------------------------------------------------------ */

static void plan_quantities(struct bench *bench)
{
	for (int q = 0; q < QUANTITIES; q++) {
		struct figure *figure = figure_new(bench, start.ranks, start.places);

		snprintf(figure->name, sizeof(figure->name), "start-%s", quantities[q].name);
		snprintf(figure->title, sizeof(figure->title), "%s", quantities[q].title);
		snprintf(figure->about, sizeof(figure->about), "%s", quantities[q].about);
		figure->unit = quantities[q].unit;
		figure->x_name = "ranks";
		figure->x_is_bytes = false;
		start.figures[q] = figure;
	}
}

static void plan_calls(struct bench *bench, unsigned int place)
{
	struct figure *figure = figure_new(bench, start.shown, start.shown_count);

	snprintf(figure->name, sizeof(figure->name), "start-calls-%zu", start.ranks[place]);
	snprintf(figure->title, sizeof(figure->title), "The first %u calls, %zu ranks", start.calls,
		 start.ranks[place]);
	snprintf(figure->about, sizeof(figure->about),
		 "MPI_Allreduce of one double, begun by all ranks at once; the slowest rank. Some "
		 "of them are shown; all are compared.");
	figure->unit = "us";
	figure->x_name = "call";
	figure->x_is_bytes = false;
	figure->log_y = true;
	start.by_call[place] = figure;
}

static void choose_shown(void)
{
	static const size_t steps[] = { 1, 2, 5 };

	for (size_t power = 1; power <= start.calls; power *= 10)
		for (int i = 0; i < 3; i++)
			if (steps[i] * power <= start.calls)
				start.shown[start.shown_count++] = steps[i] * power;
}

void bench_start_plan(struct bench *bench)
{
	uint32_t most = bench->options.ranks, ranks = 2;

	for (; ranks < most && start.places < PLACES_MOST - 1; ranks *= 2)
		start.ranks[start.places++] = ranks;
	start.ranks[start.places++] = most;
	start.calls = bench->options.quick ? QUICK_CALLS : START_CALLS_MOST;
	choose_shown();
	p2p_find(P2P_START);
	for (unsigned int place = 0; place < start.places; place++) {
		plan_calls(bench, place);
		for (int s = 0; s < SERIES; s++)
			start.us[place][s] =
				calloc(bench->options.rounds, start.calls * sizeof(double));
	}
	plan_quantities(bench);
	bench->steps += start.places * SERIES * bench->options.rounds;
}

/* ---- rounds ---------------------------------------------------------------------------------- */

static void leave_out(unsigned int s, const char *why)
{
	start.left_out[s] = true;
	figure_note(start.figures[INIT], "%s is left out: %s.", series[s].name, why);
}

static void add(enum quantity q, unsigned int place, unsigned int s, double value)
{
	struct figure *figure = start.figures[q];

	figure_add(figure, figure_cell(figure, figure_series(figure, series[s].name), place),
		   value);
}

static double slowest(const struct shm_barrier *barrier, unsigned int at)
{
	double most = 0;

	for (int rank = 0; rank < barrier->ranks; rank++)
		most = fmax(most, shm_barrier_times(barrier, rank)[at]);
	return most;
}

static double mean(const struct shm_barrier *barrier, unsigned int at)
{
	double sum = 0;

	for (int rank = 0; rank < barrier->ranks; rank++)
		sum += shm_barrier_times(barrier, rank)[at];
	return sum / barrier->ranks;
}

/* One job; wall_ms: with its launcher. */
static int execute(struct shm_barrier *barrier, unsigned int place, unsigned int s,
		   unsigned int calls, double *wall_ms)
{
	struct p2p_run run = { .launcher = series[s].launcher,
			       .onecopy = series[s].onecopy,
			       .ranks = (uint32_t)start.ranks[place] };
	char name[SHM_BARRIER_NAME_CHARS], arguments[128], why[512];
	struct timespec begin, end;
	int error;

	if (p2p_missing(&run)) {
		leave_out(s, p2p_missing(&run));
		return -1;
	}
	error = shm_barrier_create(barrier, (int)run.ranks, START_VALUES + start.calls, name);
	if (error) {
		leave_out(s, strerror(-error));
		return -1;
	}
	snprintf(arguments, sizeof(arguments), "%s %u", name, calls);
	clock_gettime(CLOCK_MONOTONIC, &begin);
	error = p2p_launch(&run, arguments, why, sizeof(why));
	clock_gettime(CLOCK_MONOTONIC, &end);
	*wall_ms = 1e3 * (double)(end.tv_sec - begin.tv_sec) +
		   1e-6 * (double)(end.tv_nsec - begin.tv_nsec);
	shm_barrier_unlink(name);
	if (!error)
		return 0;
	shm_barrier_close(barrier);
	leave_out(s, why);
	return -1;
}

static void run_calls(unsigned int place, unsigned int s)
{
	unsigned int round = start.rounds[place][s];
	struct figure *figure = start.by_call[place];
	struct shm_barrier barrier = { 0 };
	double wall_ms, *us;

	if (execute(&barrier, place, s, start.calls, &wall_ms))
		return;
	us = start.us[place][s] + (size_t)round * start.calls;
	for (unsigned int i = 0; i < start.calls; i++)
		us[i] = slowest(&barrier, START_VALUES + i);
	for (unsigned int x = 0; x < start.shown_count; x++)
		if (us[start.shown[x] - 1] > 0)
			figure_add(figure,
				   figure_cell(figure, figure_series(figure, series[s].name), x),
				   us[start.shown[x] - 1]);
	add(INIT, place, s, slowest(&barrier, START_INIT_US));
	add(LOADED, place, s, slowest(&barrier, START_LOADED_US));
	add(FIRST, place, s, us[0]);
	add(LOADED_AND_FIRST, place, s, slowest(&barrier, START_LOADED_US) + us[0]);
	add(DUP, place, s, slowest(&barrier, START_DUP_US));
	add(NEW, place, s, slowest(&barrier, START_NEW_US));
	add(DESCRIPTORS, place, s, slowest(&barrier, START_DESCRIPTORS));
	add(MEMORY, place, s, mean(&barrier, START_PROPORTIONAL_K));
	start.rounds[place][s]++;
	shm_barrier_close(&barrier);
}

static void run_without(unsigned int place, unsigned int s)
{
	struct shm_barrier barrier = { 0 };
	double wall_ms;

	if (execute(&barrier, place, s, 0, &wall_ms))
		return;
	add(ENDED, place, s, slowest(&barrier, START_ENDED_US));
	add(WALL, place, s, wall_ms);
	shm_barrier_close(&barrier);
}

int bench_start_round(struct bench *bench, unsigned int round)
{
	for (unsigned int place = 0; place < start.places; place++) {
		for (unsigned int i = 0; i < SERIES; i++) {
			/* In their order at first, so that figures list them so. */
			unsigned int s = (i + round) % SERIES;

			bench_step(bench, series[s].name);
			if (!start.left_out[s])
				run_calls(place, s);
			if (!start.left_out[s])
				run_without(place, s);
		}
	}
	return 0;
}

/* ---- what follows from all rounds ------------------------------------------------------------ */

/* Over the rounds that came so far; 0: none did. */
static double median_of_call(unsigned int place, unsigned int s, unsigned int call)
{
	double samples[ROUNDS_MOST];
	unsigned int count = 0;

	for (unsigned int r = 0; r < start.rounds[place][s]; r++) {
		double us = start.us[place][s][(size_t)r * start.calls + call];

		if (us > 0)
			samples[count++] = us;
	}
	return count ? stats_median(samples, count) : 0;
}

/* The first few are named. */
static void find_slow(unsigned int place, unsigned int with)
{
	unsigned int slow = 0, compared = 0;
	char list[256] = "";

	for (unsigned int call = 1; call < start.calls; call++) {
		double stock = median_of_call(place, with - 1, call);
		double ours = median_of_call(place, with, call);

		if (stock == 0 || ours == 0)
			continue;
		compared++;
		if (ours - stock <= SLOW_US)
			continue;
		if (++slow <= 8)
			snprintf(list + strlen(list), sizeof(list) - strlen(list),
				 "%s%u (%.1f against %.1f us)", slow > 1 ? ", " : "", call + 1,
				 ours, stock);
	}
	if (!compared)
		return;
	add(SLOW, place, with, slow);
	if (slow)
		figure_note(start.figures[SLOW], "%s, %zu ranks: call %s%s.", series[with].name,
			    start.ranks[place], list, slow > 8 ? ", ..." : "");
}

void bench_start_end(void)
{
	for (unsigned int place = 0; place < start.places; place++) {
		for (unsigned int s = 1; s < SERIES; s += 2)
			find_slow(place, s);
		for (unsigned int s = 0; s < SERIES; s++)
			free(start.us[place][s]);
	}
}

/* How much more than stock: of medians. NaN: one of them was not measured. */
static double more(enum quantity q, unsigned int place, unsigned int with)
{
	const struct figure *figure = start.figures[q];
	double median[2] = { NAN, NAN };

	for (unsigned int f = 0; f < figure->series_count; f++) {
		const struct figure_cell *cell = figure_cell(figure, f, place);

		for (unsigned int i = 0; i < 2 && cell->count; i++)
			if (!strcmp(figure->series[f], series[with - 1 + i].name))
				median[i] = cell->median;
	}
	return median[1] - median[0];
}

void bench_start_sum_up(struct bench *bench)
{
	unsigned int lines = 0;
	const unsigned int most = sizeof(bench->summary) / sizeof(bench->summary[0]);

	for (unsigned int place = 0; place < start.places; place++) {
		for (unsigned int s = 1; s < SERIES && lines < most; s += 2) {
			if (isnan(more(FIRST, place, s)))
				continue;
			bench_say(
				bench, lines++,
				"%s against stock, %zu ranks: the first call with what precedes it "
				"%+.2f ms (the call alone %+.2f), a new communicator's first call "
				"%+.1f us, a program without a collective %+.2f ms.",
				series[s].name, start.ranks[place],
				more(LOADED_AND_FIRST, place, s) / 1e3, more(FIRST, place, s) / 1e3,
				more(NEW, place, s), more(ENDED, place, s) / 1e3);
		}
	}
}
