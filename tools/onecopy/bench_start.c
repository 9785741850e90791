/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a job pays before its collectives pay off: MPI_Init, the first call, each of the next 1999,
 * a new communicator, memory, and a program without any collective; on the MPIs that are installed,
 * without onecopy, with it and with its shared heap, in turns.
 */
#include "bench.h"
#include "command.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

enum { PLACES_MOST = 12, CALLS = 2000, QUICK_CALLS = 200 };
/* A call is slow that takes so much longer than stock's at the same place. */
#define SLOW_US 5.0

/* Figures over the number of ranks. */
enum quantity { INIT = 0, FIRST = 2, JOB = 3, NEW = 5, SLOW = 6, NONE = 7, QUANTITIES = 11 };

static const struct {
	const char *name, *unit, *title, *about;
	double target; /* what onecopy may add; 0: nothing is asked */
} quantities[QUANTITIES] = {
	[INIT] = { "init", "us", "MPI_Init", "The slowest rank's.", 500 },
	{ "loaded", "us", "From exec to the end of MPI_Init",
	  "The slowest rank's: loading the program and its libraries, and MPI_Init.", 0 },
	[FIRST] = { "first", "us", "First call", "MPI_Allreduce of one double; the slowest rank.",
		    500 },
	[JOB] = { "job", "us", "From exec to the end of the first call",
		  "The sum of the two before: what a job has to win back.", 0 },
	{ "dup", "us", "MPI_Comm_dup", "The median of 21 in a run.", 0 },
	[NEW] = { "new", "us", "First call on a new communicator",
		  "The median of 21 duplicates in a run.", 0 },
	[SLOW] = { "slow", "calls", "Calls that take 5 us more than stock's at the same place",
		   "Of the second to the last, by the medians over the rounds.", 0 },
	[NONE] = { "none", "us", "Program without a collective, from exec to MPI_Finalize's end",
		   "The slowest rank's: loading, MPI_Init, MPI_Finalize.", 200 },
	{ "none-job", "ms", "Job without a collective, with its launcher",
	  "From the start of the launcher, behind onecopy run with onecopy, to its end.", 0 },
	{ "descriptors", "descriptors", "Descriptors of a rank",
	  "The most that a rank has open, after all calls.", 0 },
	{ "memory", "KiB", "Memory of a rank",
	  "After all calls; a shared page counts as its part, by the ranks that have it. The mean "
	  "over ranks.",
	  0 },
};

static const struct variant variants[] = {
	{ .name = "Open MPI", .launcher = LAUNCH_OPENMPI },
	{ .name = "Open MPI, onecopy", .launcher = LAUNCH_OPENMPI, .onecopy = true },
	{ "Open MPI, shared heap", LAUNCH_OPENMPI, .onecopy = true, .shared_heap = true },
	{ .name = "MPICH", .launcher = LAUNCH_MPICH },
	{ .name = "MPICH, onecopy", .launcher = LAUNCH_MPICH, .onecopy = true },
	{ "MPICH, shared heap", LAUNCH_MPICH, .onecopy = true, .shared_heap = true },
};
enum { VARIANTS = sizeof(variants) / sizeof(variants[0]), OF_AN_MPI = 3 };

static const char *stock_of(unsigned int variant)
{
	return variants[variant / OF_AN_MPI * OF_AN_MPI].name;
}

static struct {
	size_t ranks[PLACES_MOST]; /* the figures' axis */
	unsigned int places, calls;
	size_t call[CALLS]; /* the axis of the calls' figures, some of which are shown */
	bool hidden[CALLS];
	struct figure *figures[QUANTITIES];
	struct figure *by_call[PLACES_MOST];
} start;

/* ---- rounds ---------------------------------------------------------------------------------- */

/* The job with its calls, then the one without a collective. step->at: the variant. */
static int run_variant(struct results *results, struct step *step, unsigned int round)
{
	unsigned int place = (unsigned int)((const size_t *)step->context - start.ranks);
	const struct variant *variant = &variants[step->at];
	char arguments[64];
	struct run run = { .variant = variant,
			   .ranks = (uint32_t)start.ranks[place],
			   .arguments = arguments,
			   .stem = "start" };
	struct figure *wall = start.figures[NONE + 1];
	static unsigned int runs;
	int err = 0;

	for (int with_calls = 1; with_calls >= 0 && !err && !step->left_out; with_calls--) {
		snprintf(arguments, sizeof(arguments), "%u /onecopy-start-%d-%u",
			 with_calls ? start.calls : 0, (int)getpid(), runs++);
		err = bench_run(results, step, &run, "start", round, start.figures[0]);
	}
	if (!err && !step->left_out)
		figure_add(wall, figure_cell(wall, figure_series(wall, variant->name), place),
			   round, 1e3 * run.wall_s);
	return err;
}

/* ---- plan ------------------------------------------------------------------------------------ */

static struct figure *new_figure(struct bench *bench, const size_t *x, unsigned int x_count,
				 const char *unit, const char *name, const char *x_name)
{
	struct figure *figure = figure_new(&bench->results, x, x_count, unit, "start-%s", name);

	figure->x_name = x_name;
	figure->x_is_bytes = false;
	return figure;
}

static void plan_calls(struct bench *bench, unsigned int place)
{
	char name[32];
	struct figure *figure;

	snprintf(name, sizeof(name), "calls-%zu", start.ranks[place]);
	figure = new_figure(bench, start.call, start.calls, "us", name, "call");
	figure->title = results_text(&bench->results, "The first %u calls, %zu ranks", start.calls,
				     start.ranks[place]);
	figure->about =
		"MPI_Allreduce of one double, begun by all ranks at once; the slowest rank. Some "
		"of them are shown; all are compared.";
	figure->log_y = true;
	figure->hidden = start.hidden;
	start.by_call[place] = figure;
}

/* The first, second and fifth of each power of ten. */
static void choose_shown(void)
{
	for (unsigned int i = 0; i < start.calls; i++) {
		size_t call = i + 1;

		start.call[i] = call;
		while (call % 10 == 0)
			call /= 10;
		start.hidden[i] = call != 1 && call != 2 && call != 5;
	}
}

void bench_start_plan(struct bench *bench)
{
	uint32_t most = bench->options.ranks, ranks = 2;

	run_begin();
	for (; ranks < most && start.places < PLACES_MOST - 1; ranks *= 2)
		start.ranks[start.places++] = ranks;
	start.ranks[start.places++] = most;
	start.calls = bench->options.quick ? QUICK_CALLS : CALLS;
	choose_shown();
	for (unsigned int place = 0; place < start.places; place++) {
		plan_calls(bench, place);
		results_turn(&bench->results);
		for (unsigned int v = 0; v < VARIANTS; v++)
			results_step(&bench->results, run_variant, &start.ranks[place], v,
				     "%s, %zu ranks", variants[v].name, start.ranks[place]);
	}
	for (int q = 0; q < QUANTITIES; q++) {
		struct figure *figure = new_figure(bench, start.ranks, start.places,
						   quantities[q].unit, quantities[q].name, "ranks");

		figure->title = quantities[q].title;
		figure->about = quantities[q].about;
		start.figures[q] = figure;
	}
}

/* ---- what follows from all rounds ------------------------------------------------------------ */

static double median_of(const struct figure *figure, const char *series, unsigned int x)
{
	const struct figure_cell *cell = figure_cell_of(figure, series, x);
	double sorted[ROUNDS_MOST];
	unsigned int count = cell ? figure_sorted(figure, cell, sorted) : 0;

	return stats_median(sorted, count);
}

/* The first few are named. */
static void find_slow(unsigned int place, unsigned int with)
{
	const struct figure *by_call = start.by_call[place];
	struct figure *figure = start.figures[SLOW];
	unsigned int slow = 0, compared = 0;
	char list[256] = "";

	for (unsigned int call = 1; call < start.calls; call++) {
		double stock = median_of(by_call, stock_of(with), call);
		double ours = median_of(by_call, variants[with].name, call);

		compared += !isnan(ours - stock);
		if (!(ours - stock > SLOW_US))
			continue;
		if (++slow <= 8)
			snprintf(list + strlen(list), sizeof(list) - strlen(list),
				 "%s%u (%.1f against %.1f us)", slow > 1 ? ", " : "", call + 1,
				 ours, stock);
	}
	if (!compared)
		return;
	figure_add(figure, figure_cell(figure, figure_series(figure, variants[with].name), place),
		   0, slow);
	if (slow)
		figure_note(figure, "%s, %zu ranks: call %s%s.", variants[with].name,
			    start.ranks[place], list, slow > 8 ? ", ..." : "");
}

void bench_start_end(struct bench *bench)
{
	for (unsigned int place = 0; place < start.places && bench->results.complete; place++) {
		for (unsigned int v = 0; v < VARIANTS; v++)
			if (variants[v].onecopy)
				find_slow(place, v);
	}
}

/* How much more than stock: of medians. NaN: one of them was not measured. */
static double more(enum quantity q, unsigned int place, unsigned int with)
{
	return median_of(start.figures[q], variants[with].name, place) -
	       median_of(start.figures[q], stock_of(with), place);
}

/*
 * The same round by round, whose two runs have the machine in the same state: the median of the
 * differences, its interval, and whether that shows what is asked.
 */
static void say_mark(struct bench *bench, enum quantity q, unsigned int place, unsigned int with)
{
	const struct figure *figure = start.figures[q];
	const struct figure_cell *ours = figure_cell_of(figure, variants[with].name, place);
	const struct figure_cell *stock = figure_cell_of(figure, stock_of(with), place);
	double differences[ROUNDS_MOST], target = quantities[q].target;
	struct stats_estimate more;
	unsigned int count = 0;

	if (!ours || !stock || !ours->samples || !stock->samples)
		return;
	for (unsigned int round = 0; round < bench->results.complete; round++)
		if (!isnan(ours->samples[round] - stock->samples[round]))
			differences[count++] = ours->samples[round] - stock->samples[round];
	if (stats_estimate(differences, count, &more))
		return;
	results_say(&bench->results,
		    "%s against stock, %zu ranks: %s %+.3f ms [%+.3f, %+.3f], at most %.1f asked: "
		    "%s.",
		    variants[with].name, start.ranks[place], quantities[q].title, more.median / 1e3,
		    more.low / 1e3, more.high / 1e3, target / 1e3,
		    more.coverage < 0.95 ? "too few rounds to tell" :
		    more.high <= target	 ? "shown" :
		    more.low > target	 ? "missed" :
					   "neither shown nor missed");
}

void bench_start_sum_up(struct bench *bench)
{
	for (unsigned int place = 0; place < start.places; place++) {
		for (unsigned int v = 0; v < VARIANTS; v++) {
			if (!variants[v].onecopy || isnan(more(FIRST, place, v)))
				continue;
			results_say(
				&bench->results,
				"%s against stock, %zu ranks: the first call with what precedes it "
				"%+.2f ms (the call alone %+.2f), a new communicator's first call "
				"%+.1f us, a program without a collective %+.2f ms.",
				variants[v].name, start.ranks[place], more(JOB, place, v) / 1e3,
				more(FIRST, place, v) / 1e3, more(NEW, place, v),
				more(NONE, place, v) / 1e3);
			for (enum quantity q = 0; q < QUANTITIES; q++)
				if (quantities[q].target > 0)
					say_mark(bench, q, place, v);
		}
	}
}
