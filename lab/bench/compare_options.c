// SPDX-License-Identifier: BSD-3-Clause
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "compare.h"

enum {
	KEY_RANKS = 256,
	KEY_RUNS,
	KEY_TIMEOUT,
	KEY_COLLECTIVES,
	KEY_SIZES,
	KEY_ITERATIONS,
	KEY_TOKEN,
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
	{ "mpi", KEY_MPI, "NAME", 0, "openmpi (the default) or mpich", 2 },
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
	{ "json", KEY_JSON, "FILE", 0, "Another place for results.json", 3 },
	{ "no-plots", KEY_NO_PLOTS, NULL, 0, "Draw nothing", 3 },
	{ NULL, 0, NULL, 0, "What is asked of the result:", 4 },
	{ "gate", KEY_GATE, NULL, 0, "Exit with status 3 when a cell is lost or a mean too low",
	  4 },
	{ "floor", KEY_FLOOR, "R", 0,
	  "A cell is lost when the whole interval of its ratio lies below this (default: 0.95)",
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

/* The means are those that the issues ask for; 0 asks for none. */
static const struct compare_mpi mpis[] = {
	{ .name = "openmpi",
	  .mpirun = "mpirun",
	  .program = "oc_bench_coll",
	  .bound = "--bind-to core --map-by core",
	  .unbound = "--oversubscribe --bind-to none",
	  .ranks_n = 2,
	  .geomean = 1.3,
	  .geomean_large = 1.5,
	  .barrier = 1.3 },
	{ .name = "mpich",
	  .mpirun = "mpirun.mpich",
	  .program = "oc_bench_coll_mpich",
	  .bound = "-bind-to core -map-by core",
	  .unbound = "-bind-to none",
	  .ranks_n = 1, /* it does not yield: 4 ranks on 2 cores took 30 ms a call */
	  .geomean = 1.5 },
};

static error_t fail(struct argp_state *state, const char *sentence)
{
	argp_error(state, "%s", sentence);
	return EINVAL;
}

static error_t parse_ranks(const char *arg, struct argp_state *state, struct compare_options *o)
{
	char *copy = strdup(arg), *rest = copy, *word;
	error_t err = copy ? 0 : ENOMEM;
	long ranks;

	o->ranks_n = 0;
	while (!err && (word = strsep(&rest, ","))) {
		if (o->ranks_n == COMPARE_MAX_RANKS || long_parse(word, 2, 4096, &ranks)) {
			err = fail(state,
				   "--ranks takes up to 8 numbers from 2 to 4096, as in 2,4.");
		} else {
			o->ranks[o->ranks_n++] = (int)ranks;
		}
	}
	free(copy);
	return err;
}

static error_t parse_mpi(const char *arg, struct argp_state *state, struct compare_options *o)
{
	size_t i;

	for (i = 0; i < sizeof(mpis) / sizeof(mpis[0]); i++) {
		if (strcmp(arg, mpis[i].name) == 0) {
			o->mpi = &mpis[i];
			return 0;
		}
	}
	return fail(state, "--mpi takes openmpi or mpich.");
}

static error_t parse_count(const char *arg, struct argp_state *state, const char *name, long max,
			   long *value)
{
	if (long_parse(arg, 1, max, value)) {
		argp_error(state, "%s takes a whole number from 1 to %ld.", name, max);
		return EINVAL;
	}
	return 0;
}

/* The thresholds: each key's place in the options. */
static double *ratio_of(int key, struct compare_options *o)
{
	switch (key) {
	case KEY_FLOOR:
		return &o->floor;
	case KEY_FLOOR_OVERSUBSCRIBED:
		return &o->floor_oversubscribed;
	case KEY_GEOMEAN:
		return &o->geomean;
	case KEY_GEOMEAN_LARGE:
		return &o->geomean_large;
	case KEY_GEOMEAN_OVERSUBSCRIBED:
		return &o->geomean_oversubscribed;
	case KEY_BARRIER:
		return &o->barrier;
	case KEY_GEOMEAN_HEAP:
		return &o->geomean_heap;
	case KEY_GEOMEAN_HEAP_LARGE:
		return &o->geomean_heap_large;
	case KEY_GEOMEAN_HEAP_OVERSUBSCRIBED:
		return &o->geomean_heap_oversubscribed;
	default:
		return NULL;
	}
}

static const char **text_of(int key, struct compare_options *o)
{
	switch (key) {
	case KEY_WITH:
		return &o->with;
	case KEY_MPIRUN:
		return &o->mpirun;
	case KEY_PROGRAM:
		return &o->program;
	case KEY_JSON:
		return &o->json;
	case KEY_OUT:
		return &o->out;
	case KEY_TOKEN:
		return &o->token;
	default:
		return NULL;
	}
}

static error_t parse_measured(int key, char *arg, struct argp_state *state,
			      struct compare_options *o)
{
	char error[TEXT_ERROR_CHARS];

	switch (key) {
	case KEY_MPI:
		return parse_mpi(arg, state, o);
	case KEY_RANKS:
		return parse_ranks(arg, state, o);
	case KEY_RUNS:
		return parse_count(arg, state, "--runs", 10000, &o->runs);
	case KEY_TIMEOUT:
		return parse_count(arg, state, "--timeout", 86400, &o->timeout_s);
	case KEY_ITERATIONS:
		return parse_count(arg, state, "--iterations", 10000000, &o->iterations);
	case KEY_COLLECTIVES:
		return collective_list_parse(arg, &o->collectives, error) ? fail(state, error) : 0;
	case KEY_SIZES:
		return size_list_parse(arg, &o->sizes, error) ? fail(state, error) : 0;
	case KEY_CACHED:
	case KEY_COLD:
		if (o->mode != BUFFERS_ROTATED) {
			return fail(state, "--cached and --cold exclude each other: give one.");
		}
		o->mode = key == KEY_CACHED ? BUFFERS_CACHED : BUFFERS_COLD;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* A threshold that was not given, which no one can give. */
#define UNSET (-1.0)

static void set_default(double *ratio, double value)
{
	*ratio = *ratio == UNSET ? value : *ratio;
}

/* What only the options together show, and the defaults that depend on --quick and --mpi. */
static error_t finish(struct argp_state *state, struct compare_options *o)
{
	char error[TEXT_ERROR_CHARS];

	if (o->ranks_n == 0) {
		o->ranks_n = o->mpi->ranks_n;
	}
	o->other = o->mpi == &mpis[0] ? &mpis[1] : &mpis[0];
	o->mpirun = o->mpirun ? o->mpirun : o->mpi->mpirun;
	set_default(&o->geomean, o->mpi->geomean);
	set_default(&o->geomean_large, o->mpi->geomean_large);
	set_default(&o->barrier, o->mpi->barrier);
	if (o->runs == 0) {
		o->runs = o->quick ? 3 : 9;
	}
	if (o->sizes.n == 0 && o->quick) {
		size_list_parse("4,1K,64K,1M", &o->sizes, error);
	} else if (o->sizes.n == 0) {
		size_list_powers_of_4(&o->sizes, 4, 4 << 20);
	}
	if (o->gate && o->runs < STATS_MIN_RUNS) {
		return fail(state,
			    "--gate needs at least 6 runs: fewer have no 95 % interval of the "
			    "median. Give --runs 9.");
	}
	return 0;
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct compare_options *o = state->input;
	double *ratio = ratio_of(key, o);
	const char **text = text_of(key, o);
	struct range range;

	if (ratio) {
		return double_parse(arg, 0, 1000, ratio) ?
			       fail(state,
				    "Floors and means are ratios stock/onecopy from 0 to 1000, "
				    "as in 1.3.") :
			       0;
	}
	if (text) {
		if (key == KEY_TOKEN && range_parse(arg, 1e6, &range)) {
			return fail(state,
				    "--token-ns takes the least and the most time of a token from "
				    "rank to rank in ns, as in 0:140.");
		}
		*text = arg;
		o->with_given |= key == KEY_WITH;
		return 0;
	}
	switch (key) {
	case KEY_NO_CHECK:
		o->check = false;
		return 0;
	case KEY_SHARED_HEAP:
		o->shared_heap = true;
		return 0;
	case KEY_BETTER:
		o->better = true;
		return 0;
	case KEY_LIMIT:
		o->limit = true;
		return 0;
	case KEY_QUICK:
		o->quick = true;
		return 0;
	case KEY_NO_PLOTS:
		o->plots = false;
		return 0;
	case KEY_GATE:
		o->gate = true;
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "'%s' is not an option; this program takes no other arguments.",
			   arg);
		return EINVAL;
	case ARGP_KEY_SUCCESS:
		return finish(state, o);
	default:
		return parse_measured(key, arg, state, o);
	}
}

/* 'onecopy run' of this build, quoted for child_args_add_words(). */
static const char *own_command(void)
{
	static char command[COMPARE_PATH_CHARS + 64];
	char folder[COMPARE_PATH_CHARS];

	host_program_folder(folder, sizeof(folder));
	snprintf(command, sizeof(command), "'%s/../tools/onecopy/onecopy' run", folder);
	return command;
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
		.check = true,
		.plots = true,
		.with = own_command(),
		.mpi = &mpis[0],
		.floor = 0.95,
		.floor_oversubscribed = 0.5,
		.geomean = UNSET,
		.geomean_large = UNSET,
		.geomean_oversubscribed = 1.1,
		.geomean_heap = 1.6,
		.geomean_heap_large = 2.0,
		.geomean_heap_oversubscribed = 1.5,
		.barrier = UNSET,
	};
	collective_list_default(&options->collectives);
	return args_parse(&argp, argc, argv, options, false);
}
