// SPDX-License-Identifier: BSD-3-Clause
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "compare.h"
#include "lab/harness/stats.h"

enum {
	KEY_RANKS = 256,
	KEY_RUNS,
	KEY_TIMEOUT,
	KEY_COLLECTIVES,
	KEY_SIZES,
	KEY_ITERATIONS,
	KEY_TOKEN,
	KEY_WAYS,
	KEY_EVERYTHING,
	KEY_CACHED,
	KEY_COLD,
	KEY_NO_CHECK,
	KEY_WITH,
	KEY_SHARED_HEAP,
	KEY_BETTER,
	KEY_LIMIT,
	KEY_MPI,
	KEY_MPIRUN,
	KEY_PROGRAM,
	KEY_JSON,
	KEY_OUT,
	KEY_QUICK,
	KEY_NO_PLOTS,
	KEY_GATE,
	KEY_FLOOR,
	KEY_FLOOR_OVERSUBSCRIBED,
	KEY_GEOMEAN,
	KEY_GEOMEAN_LARGE,
	KEY_GEOMEAN_OVERSUBSCRIBED,
	KEY_BARRIER,
	KEY_GEOMEAN_HEAP,
	KEY_GEOMEAN_HEAP_LARGE,
	KEY_GEOMEAN_HEAP_OVERSUBSCRIBED,
};

static const struct argp_option option_table[] = {
	{ NULL, 0, NULL, 0, "What is measured:", 1 },
	{ "ranks", KEY_RANKS, "LIST", 0, "Numbers of ranks (default: 2,4; with --mpi mpich: 2)",
	  1 },
	{ "runs", KEY_RUNS, "N", 0, "Runs of each configuration (default: 9; with --quick: 3)", 1 },
	{ "collectives", KEY_COLLECTIVES, "LIST", 0,
	  "Some of " COLLECTIVE_WORDS "with commas between them (default: those before scatterv)",
	  1 },
	{ "sizes", KEY_SIZES, "LIST", 0,
	  "As in 4,1K,64K,1M (default: the powers of four from 4 B to 4 MiB; with --quick: "
	  "4,1K,64K,1M)",
	  1 },
	{ "iterations", KEY_ITERATIONS, "N", 0, "Timed calls of a cell in one run", 1 },
	{ "token-ns", KEY_TOKEN, "LOW:HIGH", 0,
	  "Count only calls made while a token took so long from one rank's CPU to the next one's: "
	  "for virtual machines whose host moves their CPUs",
	  1 },
	{ "cached", KEY_CACHED, NULL, 0, "The same buffers for each call, as OSU does", 1 },
	{ "cold", KEY_COLD, NULL, 0, "Buffers allocated for each call and freed after it", 1 },
	{ "no-check", KEY_NO_CHECK, NULL, 0, "Do not verify the delivered bytes", 1 },
	{ "ways", KEY_WAYS, "LIST", 0,
	  "Ways to measure, some of aligned (the default), osu, nonblocking, persistent, first-10 "
	  "and first-1000, with commas between them, or all: a table each",
	  1 },
	{ "everything", KEY_EVERYTHING, NULL, 0,
	  "All collectives in all ways on 2, 4 and 8 ranks of both MPIs (of MPICH up to the cores), with shared heaps, too, in "
	  "about 40 minutes (2 cores); the end lists the cells lost",
	  1 },
	{ "quick", KEY_QUICK, NULL, 0, "A look in about a minute: 3 runs, 4 sizes", 1 },
	{ NULL, 0, NULL, 0, "How it is run:", 2 },
	{ "with", KEY_WITH, "CMD", 0,
	  "Put before mpirun in the onecopy configuration "
	  "(default: 'onecopy run' of the build that this program lies in)",
	  2 },
	{ "shared-heap", KEY_SHARED_HEAP, NULL, 0,
	  "A fourth configuration takes turns: onecopy run --shared-heap, as a table of its own",
	  2 },
	{ "better", KEY_BETTER, NULL, 0,
	  "The other of Open MPI and MPICH takes turns, too: stock is the faster one of each cell",
	  2 },
	{ "limit", KEY_LIMIT, NULL, 0,
	  "memcpy takes turns, too, of the bytes that each collective has to move, by all cores that "
	  "can help: how far each cell is from the physical limit",
	  2 },
	{ "mpi", KEY_MPI, "NAME", 0, "openmpi (the default), mpich, or both", 2 },
	{ "mpirun", KEY_MPIRUN, "CMD", 0,
	  "That MPI's launcher and its options (default: mpirun; with --mpi mpich: mpirun.mpich)",
	  2 },
	{ "program", KEY_PROGRAM, "FILE", 0,
	  "The benchmark (default: oc_bench_coll beside this program; with --mpi mpich: "
	  "oc_bench_coll_mpich)",
	  2 },
	{ "timeout", KEY_TIMEOUT, "S", 0, "End a run that takes longer than this (default: 300)",
	  2 },
	{ NULL, 0, NULL, 0, "What is written:", 3 },
	{ "out", KEY_OUT, "DIR", 0,
	  "Folder for results.json, table.txt and the plots (default: bench-out/<date>)", 3 },
	{ "json", KEY_JSON, "FILE", 0, "Write results.json there, too", 3 },
	{ "no-plots", KEY_NO_PLOTS, NULL, 0, "Draw nothing", 3 },
	{ NULL, 0, NULL, 0, "What is asked of the result:", 4 },
	{ "gate", KEY_GATE, NULL, 0, "Exit with status 3 when a cell is lost or a mean too low",
	  4 },
	{ "floor", KEY_FLOOR, "R", 0,
	  "A cell is lost when the whole interval of its ratio lies below this and the control's (default: 0.95)",
	  4 },
	{ "floor-oversubscribed", KEY_FLOOR_OVERSUBSCRIBED, "R", 0,
	  "The same where ranks outnumber cores (default: 0.5)", 4 },
	{ "geomean", KEY_GEOMEAN, "R", 0,
	  "Least geometric mean over all cells (default: 1.3; with --mpi mpich: 1.5)", 4 },
	{ "geomean-large", KEY_GEOMEAN_LARGE, "R", 0,
	  "Least geometric mean over cells of 64 KiB and more (default: 1.5; with --mpi mpich: "
	  "none)",
	  4 },
	{ "geomean-oversubscribed", KEY_GEOMEAN_OVERSUBSCRIBED, "R", 0,
	  "Least geometric mean over all cells where ranks outnumber cores (default: 1.1)", 4 },
	{ "geomean-heap", KEY_GEOMEAN_HEAP, "R", 0,
	  "With --shared-heap: its least geometric mean over all cells (default: 1.6)", 4 },
	{ "geomean-heap-large", KEY_GEOMEAN_HEAP_LARGE, "R", 0,
	  "The same over cells of 64 KiB and more (default: 2.0)", 4 },
	{ "geomean-heap-oversubscribed", KEY_GEOMEAN_HEAP_OVERSUBSCRIBED, "R", 0,
	  "The same over all cells where ranks outnumber cores (default: 1.5)", 4 },
	{ "barrier", KEY_BARRIER, "R", 0,
	  "Least ratio of the barrier (default: 1.3; with --mpi mpich: none)", 4 },
	{ 0 },
};

#define SLOWEST "median call of the slowest rank"

const struct compare_way compare_ways[COMPARE_WAYS] = {
	{ "aligned", "", SLOWEST, false, false },
	{ "osu", "--loop osu", "median call, of the ranks' mean, with MPI_Barrier behind each",
	  true, false },
	{ "nonblocking", "--form nonblocking", SLOWEST ", begun and waited for at once", false,
	  false },
	{ "persistent", "--form persistent", SLOWEST ", of a kept request", true, true },
	{ "first-10", "--first 10", "mean of the first 10 calls, slowest rank", false, false },
	{ "first-1000", "--first 1000", "mean of the first 1000 calls, slowest rank", false,
	  false },
};

/* A threshold that was not given, which no one can give. */
#define UNSET (-1.0)

/* What depends on the MPI. The means are those that the issues ask for. */
static const struct {
	const char *program;
	int ranks_n; /* of the ranks 2 and 4, unless --ranks names others */
	double geomean, geomean_large, barrier;
} mpis[LAUNCHERS] = {
	[LAUNCH_OPENMPI] = { "oc_bench_coll", 2, 1.3, 1.5, 1.3 },
	/* It does not yield: 4 ranks on 2 cores took 30 ms a call. */
	[LAUNCH_MPICH] = { "oc_bench_coll_mpich", 1, 1.5, 0, 0 },
};

#define FLAG(key, member)                                                             \
	{                                                                             \
		key, PLAIN_FLAG, offsetof(struct compare_options, member), 0, 0, NULL \
	}
#define TEXT(key, member)                                                             \
	{                                                                             \
		key, PLAIN_TEXT, offsetof(struct compare_options, member), 0, 0, NULL \
	}
#define COUNT(key, member, option, most)                                             \
	{                                                                            \
		key, PLAIN_COUNT, offsetof(struct compare_options, member), 1, most, \
			option " takes a whole number from 1 to " #most "."          \
	}
#define RATIO(key, member)                                                                      \
	{                                                                                       \
		key, PLAIN_FRACTION, offsetof(struct compare_options, demands.member), 0, 1000, \
			"Floors and means are ratios stock/onecopy from 0 to 1000, as in 1.3."  \
	}

/* The options that are no more than a value. */
static const struct plain_option plain[] = {
	COUNT(KEY_RUNS, runs, "--runs", 10000),
	COUNT(KEY_TIMEOUT, timeout_s, "--timeout", 86400),
	COUNT(KEY_ITERATIONS, iterations, "--iterations", 10000000),
	FLAG(KEY_NO_CHECK, no_check),
	FLAG(KEY_SHARED_HEAP, shared_heap),
	FLAG(KEY_BETTER, better),
	FLAG(KEY_LIMIT, limit),
	FLAG(KEY_EVERYTHING, everything),
	FLAG(KEY_QUICK, quick),
	FLAG(KEY_NO_PLOTS, no_plots),
	FLAG(KEY_GATE, gate),
	TEXT(KEY_WITH, with),
	TEXT(KEY_MPIRUN, mpirun),
	TEXT(KEY_PROGRAM, program),
	TEXT(KEY_JSON, json),
	TEXT(KEY_OUT, out),
	RATIO(KEY_FLOOR, floor),
	RATIO(KEY_FLOOR_OVERSUBSCRIBED, floor_oversubscribed),
	RATIO(KEY_GEOMEAN, geomean),
	RATIO(KEY_GEOMEAN_LARGE, geomean_large),
	RATIO(KEY_GEOMEAN_OVERSUBSCRIBED, geomean_oversubscribed),
	RATIO(KEY_BARRIER, barrier),
	RATIO(KEY_GEOMEAN_HEAP, geomean_heap),
	RATIO(KEY_GEOMEAN_HEAP_LARGE, geomean_heap_large),
	RATIO(KEY_GEOMEAN_HEAP_OVERSUBSCRIBED, geomean_heap_oversubscribed),
	{ 0 },
};

static error_t parse_ranks(const char *arg, struct argp_state *state, struct compare_options *o)
{
	char *copy = strdup(arg), *rest = copy, *word;
	error_t err = copy ? 0 : ENOMEM;
	long ranks;

	o->ranks_n = 0;
	while (!err && (word = strsep(&rest, ","))) {
		if (o->ranks_n == COMPARE_MAX_RANKS || long_parse(word, 2, 4096, &ranks)) {
			err = args_fail(state,
					"--ranks takes up to 8 numbers from 2 to 4096, as in 2,4.");
		} else {
			o->ranks[o->ranks_n++] = (size_t)ranks;
		}
	}
	free(copy);
	return err;
}

static error_t parse_mpi(const char *arg, struct argp_state *state, struct compare_options *o)
{
	bool both = strcmp(arg, "both") == 0;
	enum launcher mpi = launcher_of(arg);
	int l;

	if (!both && mpi == LAUNCH_NONE) {
		return args_fail(state, "--mpi takes openmpi, mpich or both.");
	}
	for (l = 1; l < LAUNCHERS; l++) {
		o->mpis[l] = both || l == (int)mpi;
	}
	o->mpi = both ? LAUNCH_OPENMPI : mpi;
	return 0;
}

static error_t parse_ways(const char *arg, struct argp_state *state, struct compare_options *o)
{
	char *copy = strdup(arg), *rest = copy, *word;
	error_t err = copy ? 0 : ENOMEM;
	int w, found;

	memset(o->ways, 0, sizeof(o->ways));
	while (!err && (word = strsep(&rest, ","))) {
		for (found = w = 0; w < COMPARE_WAYS; w++) {
			if (!strcmp(word, "all") || !strcmp(word, compare_ways[w].name)) {
				o->ways[w] = true;
				found = 1;
			}
		}
		if (!found) {
			err = args_fail(state, "--ways takes some of aligned, osu, nonblocking, "
					       "persistent, first-10 and first-1000, or all.");
		}
	}
	free(copy);
	return err;
}

/* Where nothing is asked for otherwise, --everything is all. */
static void choose(struct argp_state *state, struct compare_options *o)
{
	char error[TEXT_ERROR_CHARS];
	int c;

	if (o->mpi == LAUNCH_NONE) {
		parse_mpi(o->everything ? "both" : "openmpi", state, o);
	}
	if (!memchr(o->ways, true, sizeof(o->ways))) {
		parse_ways(o->everything ? "all" : "aligned", state, o);
	}
	if (o->ranks_n == 0 && o->everything) {
		parse_ranks("2,4,8", state, o);
	}
	if (o->sizes.n == 0 && (o->everything || o->quick)) {
		size_list_parse("4,1K,64K,1M", &o->sizes, error);
	}
	if (o->runs == 0) {
		o->runs = o->everything ? STATS_MIN_RUNS : o->quick ? 3 : 9;
	}
	if (o->collectives.n == 0 && !o->everything) {
		collective_list_default(&o->collectives);
	} else if (o->collectives.n == 0) {
		for (c = 0; c < OC_COLLECTIVES; c++) {
			o->collectives.at[c] = (enum oc_collective)c;
		}
		o->collectives.n = OC_COLLECTIVES;
	}
	o->shared_heap |= o->everything;
}

static void set_default(double *ratio, double value)
{
	*ratio = *ratio == UNSET ? value : *ratio;
}

/* What only the options together show, and the defaults that depend on --quick and --mpi. */
static error_t finish(struct argp_state *state, struct compare_options *o)
{
	choose(state, o);
	if (o->better && o->mpis[LAUNCH_OPENMPI] && o->mpis[LAUNCH_MPICH]) {
		return args_fail(state,
				 "--better takes the faster of both MPIs already: give --mpi one "
				 "of them.");
	}
	if (o->ranks_n == 0) {
		o->ranks_n = mpis[o->mpi].ranks_n;
	}
	set_default(&o->demands.geomean, mpis[o->mpi].geomean);
	set_default(&o->demands.geomean_large, mpis[o->mpi].geomean_large);
	set_default(&o->demands.barrier, mpis[o->mpi].barrier);
	if (o->sizes.n == 0) {
		size_list_powers_of_4(&o->sizes, 4, 4 << 20);
	}
	if (o->gate && o->runs < STATS_MIN_RUNS) {
		return args_fail(state,
				 "--gate needs at least 6 runs: fewer have no 95 % interval of the "
				 "median. Give --runs 9.");
	}
	return 0;
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct compare_options *o = state->input;
	char error[TEXT_ERROR_CHARS];
	struct range range;
	switch (key) {
	case KEY_MPI:
		return parse_mpi(arg, state, o);
	case KEY_WAYS:
		return parse_ways(arg, state, o);
	case KEY_RANKS:
		return parse_ranks(arg, state, o);
	case KEY_COLLECTIVES:
		return collective_list_parse(arg, &o->collectives, error) ?
			       args_fail(state, error) :
			       0;
	case KEY_SIZES:
		return size_list_parse(arg, &o->sizes, error) ? args_fail(state, error) : 0;
	case KEY_CACHED:
	case KEY_COLD:
		if (o->mode != BUFFERS_ROTATED) {
			return args_fail(state, CACHED_SENTENCE);
		}
		o->mode = key == KEY_CACHED ? BUFFERS_CACHED : BUFFERS_COLD;
		return 0;
	case KEY_TOKEN:
		o->token = arg;
		return range_parse(arg, 1e6, &range) ? args_fail(state, TOKEN_SENTENCE) : 0;
	case ARGP_KEY_ARG:
		argp_error(state, "'%s' is not an option; this program takes no other arguments.",
			   arg);
		return EINVAL;
	case ARGP_KEY_SUCCESS:
		return finish(state, o);
	default:
		return plain_parse(plain, key, arg, state);
	}
}

int compare_options_parse(int argc, char **argv, struct compare_options *options)
{
	static const struct argp argp = {
		.options = option_table,
		.parser = parse_option,
		.doc = "Compare MPI collectives with and without onecopy, run by run.\v"
		       "Three configurations take turns: stock, onecopy, and stock again as the "
		       "control, in an order that rotates from round to round. A ratio is the median "
		       "over rounds of stock/onecopy, above 1 when onecopy is faster.\n\nExit status: "
		       "0 done, 1 something failed to run, 2 wrong options, 3 the gate is closed.",
	};

	*options = (struct compare_options){
		.ranks = { 2, 4 },
		.timeout_s = 300,
		.demands = { .floor = 0.95,
			     .floor_oversubscribed = 0.5,
			     .geomean = UNSET,
			     .geomean_large = UNSET,
			     .geomean_oversubscribed = 1.1,
			     .geomean_heap = 1.6,
			     .geomean_heap_large = 2.0,
			     .geomean_heap_oversubscribed = 1.5,
			     .barrier = UNSET },
	};
	return args_parse(&argp, argc, argv, options, false);
}
