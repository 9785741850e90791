// SPDX-License-Identifier: BSD-3-Clause
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "compare.h"
#include "lab/experiment/experiment.h"
#include "lab/harness/options.h"
#include "lab/harness/stats.h"

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

/* More than COMPARE_MAX_RANKS are too many. */
static void take_ranks(void *choice, const char *text)
{
	struct compare_options *o = choice;
	char *copy = must(strdup(text)), *rest = copy, *word;
	long ranks;

	o->ranks_n = 0;
	while ((word = strsep(&rest, ","))) {
		if (o->ranks_n == COMPARE_MAX_RANKS || long_parse(word, 2, 4096, &ranks))
			usage("--ranks takes up to 8 numbers from 2 to 4096, as in 2,4.");
		o->ranks[o->ranks_n++] = (size_t)ranks;
	}
	free(copy);
}

static void take_mpi(void *choice, const char *text)
{
	struct compare_options *o = choice;
	bool both = !strcmp(text, "both");
	enum launcher mpi = launcher_of(text);

	if (!both && mpi == LAUNCH_NONE)
		usage("--mpi takes openmpi, mpich or both.");
	for (int l = 1; l < LAUNCHERS; l++)
		o->mpis[l] = both || l == (int)mpi;
	o->mpi = both ? LAUNCH_OPENMPI : mpi;
}

static void take_ways(void *choice, const char *text)
{
	struct compare_options *o = choice;
	char *copy = must(strdup(text)), *rest = copy, *word;

	memset(o->ways, 0, sizeof(o->ways));
	while ((word = strsep(&rest, ","))) {
		bool found = false;

		for (int w = 0; w < COMPARE_WAYS; w++) {
			bool meant = !strcmp(word, "all") || !strcmp(word, compare_ways[w].name);

			o->ways[w] |= meant;
			found |= meant;
		}
		if (!found)
			usage("--ways takes some of aligned, osu, nonblocking, persistent, first-10 "
			      "and first-1000, or all.");
	}
	free(copy);
}

#define AT(member) .place = offsetof(struct compare_options, member)

static const struct option_set set = {
	.rows =
		(const struct option_row[]){
			{ .help = "What is measured:" },
			{ "ranks", 0, "LIST",
			  "Numbers of ranks (default: 2,4; with --mpi mpich: 2)",
			  .take = take_ranks },
			{ "runs", 0, "N",
			  "Runs of each configuration (default: 9; with --quick: 3)", OPTION_COUNT,
			  AT(runs), 1, 10000 },
			{ "collectives", 0, "LIST",
			  "Some of " COLLECTIVE_WORDS
			  "with commas between them (default: those before scatterv)",
			  .take = take_collectives, AT(collectives) },
			{ "sizes", 0, "LIST",
			  "As in 4,1K,64K,1M (default: the powers of four from 4 B to 4 MiB; with --quick: "
			  "4,1K,64K,1M)",
			  .take = take_sizes, AT(sizes) },
			{ "iterations", 0, "N", "Timed calls of a cell in one run", OPTION_COUNT,
			  AT(iterations), 1, 10000000 },
			{ "token-ns", 0, "LOW:HIGH",
			  "Count only calls made while a token took so long from one rank's CPU to the next one's: "
			  "for virtual machines whose host moves their CPUs",
			  .take = take_token_text, AT(token) },
			{ "cached", 0, NULL, "The same buffers for each call, as OSU does",
			  .take = take_cached, AT(mode) },
			{ "cold", 0, NULL, "Buffers allocated for each call and freed after it",
			  .take = take_cold, AT(mode) },
			{ "no-check", 0, NULL, "Do not verify the delivered bytes", AT(no_check) },
			{ "ways", 0, "LIST",
			  "Ways to measure, some of aligned (the default), osu, nonblocking, persistent, first-10 "
			  "and first-1000, with commas between them, or all: a table each",
			  .take = take_ways },
			{ "everything", 0, NULL,
			  "All collectives in all ways on 2, 4 and 8 ranks of both MPIs (of MPICH up to the cores), with shared heaps, too, in "
			  "about 40 minutes (2 cores); the end lists the cells lost",
			  AT(everything) },
			{ "quick", 0, NULL, "A look in about a minute: 3 runs, 4 sizes",
			  AT(quick) },
			{ .help = "How it is run:" },
			{ "with", 0, "CMD",
			  "Put before mpirun in the onecopy configuration "
			  "(default: 'onecopy run' of the build that this program lies in)",
			  OPTION_TEXT, AT(with) },
			{ "shared-heap", 0, NULL,
			  "A fourth configuration takes turns: onecopy run --shared-heap, as a table of its own",
			  AT(shared_heap) },
			{ "better", 0, NULL,
			  "The other of Open MPI and MPICH takes turns, too: stock is the faster one of each cell",
			  AT(better) },
			{ "limit", 0, NULL,
			  "memcpy takes turns, too, of the bytes that each collective has to move, by all cores that "
			  "can help: how far each cell is from the physical limit",
			  AT(limit) },
			{ "mpi", 0, "NAME", "openmpi (the default), mpich, or both",
			  .take = take_mpi },
			{ "mpirun", 0, "CMD",
			  "That MPI's launcher and its options (default: mpirun; with --mpi mpich: mpirun.mpich)",
			  OPTION_TEXT, AT(mpirun) },
			{ "program", 0, "FILE",
			  "The benchmark (default: oc_bench_coll beside this program; with --mpi mpich: "
			  "oc_bench_coll_mpich)",
			  OPTION_TEXT, AT(program) },
			{ "timeout", 0, "S", "End a run that takes longer than this (default: 300)",
			  OPTION_COUNT, AT(timeout_s), 1, 86400 },
			{ .help = "What is written:" },
			{ "out", 0, "DIR",
			  "Folder for results.json, table.txt and the plots (default: bench-out/<date>)",
			  OPTION_TEXT, AT(out) },
			{ "json", 0, "FILE", "Write results.json there, too", OPTION_TEXT,
			  AT(json) },
			{ "no-plots", 0, NULL, "Draw nothing", AT(no_plots) },
			{ .help = "What is asked of the result:" },
			{ "gate", 0, NULL,
			  "Exit with status 3 when a cell is lost or a mean too low", AT(gate) },
			{ 0 } },
	.about = "Compare MPI collectives with and without onecopy, run by run.\v"
		 "Three configurations take turns: stock, onecopy, and stock again as the "
		 "control, in an order that rotates from round to round. A ratio is the median "
		 "over rounds of stock/onecopy, above 1 when onecopy is faster.\n\nExit status: "
		 "0 done, 1 something failed to run, 2 wrong options, 3 the gate is closed.",
};

/* Where nothing is asked for otherwise, --everything is all. */
static void choose(struct compare_options *o)
{
	int c;

	if (o->mpi == LAUNCH_NONE)
		take_mpi(o, o->everything ? "both" : "openmpi");
	if (!memchr(o->ways, true, sizeof(o->ways)))
		take_ways(o, o->everything ? "all" : "aligned");
	if (o->ranks_n == 0 && o->everything)
		take_ranks(o, "2,4,8");
	if (o->sizes.count == 0 && (o->everything || o->quick))
		take_sizes(&o->sizes, "4,1K,64K,1M");
	if (o->runs == 0)
		o->runs = o->everything ? STATS_MIN_RUNS : o->quick ? 3 : 9;
	if (o->collectives.n == 0 && !o->everything) {
		collective_list_default(&o->collectives);
	} else if (o->collectives.n == 0) {
		for (c = 0; c < OC_COLLECTIVES; c++)
			o->collectives.at[c] = (enum oc_collective)c;
		o->collectives.n = OC_COLLECTIVES;
	}
	o->shared_heap |= o->everything;
}

/* What only the options together show, and the defaults that depend on --quick and --mpi. */
static void finish(struct compare_options *o)
{
	choose(o);
	if (o->better && o->mpis[LAUNCH_OPENMPI] && o->mpis[LAUNCH_MPICH]) {
		usage("--better takes the faster of both MPIs already: give --mpi one "
		      "of them.");
	}
	if (o->ranks_n == 0) {
		/* MPICH does not yield: 4 ranks on 2 cores took 30 ms a call. */
		o->ranks_n = o->mpi == LAUNCH_MPICH ? 1 : 2;
	}
	if (o->sizes.count == 0)
		take_sizes(&o->sizes, SIZES_USUAL);
	if (o->gate && o->runs < STATS_MIN_RUNS) {
		usage("--gate needs at least 6 runs: fewer have no 95 %% interval of the "
		      "median. Give --runs 9.");
	}
}

void compare_options_parse(int argc, char **argv, struct compare_options *options)
{
	*options = (struct compare_options){
		.ranks = { 2, 4 },
		.timeout_s = 300,
	};
	options_parse(&set, argc, argv, options);
	finish(options);
}
