/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collectives of the MPIs with and without onecopy, in turns, and what the difference is worth. A
 * ratio is stock/onecopy, above 1 when onecopy is faster.
 */
#include "bench.h"
#include "command.h"

#include <errno.h>
#include <math.h>
#include <string.h>

enum { CONFIG_STOCK, CONFIG_ONECOPY, CONFIG_CONTROL, CONFIG_HEAP, CONFIG_OTHER, CONFIG_LIMIT };
enum { CONFIGS = CONFIG_LIMIT + 1, LARGE_BYTES = 64 << 10 };

static const struct variant variants[CONFIGS] = {
	[CONFIG_STOCK] = { .name = "stock" },
	[CONFIG_ONECOPY] = { .name = "onecopy", .onecopy = true },
	[CONFIG_CONTROL] = { .name = "control" },
	[CONFIG_HEAP] = { .name = "shared heap", .onecopy = true, .shared_heap = true },
	[CONFIG_OTHER] = { .name = "other stock" },
	[CONFIG_LIMIT] = { .name = "memcpy" },
};

#define SLOWEST "median call of the slowest rank"

/* A way in which users measure. */
static const struct way {
	const char *name, *arguments; /* of the program */
	const char *about;	      /* what a value is */
	bool cached;		      /* the same buffers each time */
	bool keeps;		      /* a request of one collective: stock is not verified */
} ways[BENCH_WAYS] = {
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

void bench_take_ways(void *place, const char *text)
{
	bool *chosen = place;
	char *copy = must(strdup(text)), *rest = copy, *word;

	memset(chosen, 0, BENCH_WAYS * sizeof(*chosen));
	while ((word = strsep(&rest, ","))) {
		bool found = false;

		for (int w = 0; w < BENCH_WAYS; w++) {
			bool meant = !strcmp(word, "all") || !strcmp(word, ways[w].name);

			chosen[w] |= meant;
			found |= meant;
		}
		if (!found)
			usage("--ways takes some of aligned, osu, nonblocking, persistent, first-10 "
			      "and first-1000, or all");
	}
	free(copy);
}

/* So many ranks of an MPI, measured in one way: all configurations take turns on them. */
struct place {
	enum launcher mpi;
	const struct way *way;
	size_t ranks;
	bool oversubscribed;
	char stem[32];
};

static struct {
	const struct bench_choice *options;
	struct results *results;
	enum launcher first; /* of those chosen */
	struct place places[BENCH_RANKS_MOST * LAUNCHERS * BENCH_WAYS];
	unsigned int place_count;
	char arguments[4096];
	char mpi[LAUNCHERS][128];	/* what they call themselves */
	unsigned int cells;		/* values of a run */
	json_int_t served, handed_back; /* calls, over all runs with onecopy and their ranks */
	bool unverified;
} compare;

/* ---- runs ------------------------------------------------------------------------------------ */

static json_int_t sum_calls(const json_t *rows)
{
	json_int_t calls = 0;
	const json_t *row;
	size_t i;

	json_array_foreach(rows, i, row) calls += json_integer_value(json_object_get(row, "calls"));
	return calls;
}

static void count_service(struct run *run)
{
	compare.served += sum_calls(json_object_get(run->counters, "collectives"));
	compare.handed_back += sum_calls(json_object_get(run->counters, "handed_back"));
	if (run->variant->onecopy && !run->counters && !compare.unverified) {
		say("'%s' (--with) left no counters in ONECOPY_STATS_DIR, so it is not verified "
		    "that onecopy served anything.",
		    run->with);
		compare.unverified = true;
	}
	json_decref(run->counters);
}

static enum launcher other_mpi(enum launcher mpi)
{
	return mpi == LAUNCH_OPENMPI ? LAUNCH_MPICH : LAUNCH_OPENMPI;
}

static int run_config(struct results *results, struct step *step, unsigned int round)
{
	const struct bench_choice *o = compare.options;
	const struct place *place = step->context;
	const struct variant *variant = &variants[step->at];
	enum launcher mpi = step->at == CONFIG_OTHER ? other_mpi(place->mpi) : place->mpi;
	char arguments[sizeof(compare.arguments) + 128], why[512];
	struct run run = { .variant = variant,
			   .launcher = mpi,
			   .with = o->with,
			   .mpirun = mpi == compare.first ? o->mpirun : NULL,
			   .ranks = (uint32_t)place->ranks,
			   .binding = place->oversubscribed ? BIND_NONE : BIND_CORES,
			   .program = mpi == compare.first ? o->program : NULL,
			   .arguments = arguments,
			   .stem = place->stem,
			   .timeout_s = o->timeout_s,
			   .counted = true,
			   .may_lack_counters = o->with };
	int err = bench_prepare(&run, "collectives", why, sizeof(why));

	/* MPICH 4.0.2's own persistent Scatter delivers what its first start found in the buffer.
	 */
	snprintf(arguments, sizeof(arguments), "%s %s%s%s", compare.arguments,
		 place->way->arguments, place->way->keeps && !variant->onecopy ? " --no-check" : "",
		 step->at == CONFIG_LIMIT ? " --memcpy" : "");
	if (!err)
		err = run_program(results, &run, round, why, sizeof(why));
	if (!err && run.values < compare.cells) {
		snprintf(why, sizeof(why), "it gave %u of %u values; is --program another version?",
			 run.values, compare.cells);
		err = -EBADMSG;
	}
	snprintf(compare.mpi[mpi], sizeof(compare.mpi[0]), "%.100s", run.said);
	if (err) {
		progress_end(&results->progress);
		run_explain(&run, why);
		json_decref(run.counters);
		return err;
	}
	count_service(&run);
	return 0;
}

/* ---- plan ------------------------------------------------------------------------------------ */

static bool takes_turns(int config)
{
	const struct bench_choice *o = compare.options;

	return config < CONFIG_HEAP || (config == CONFIG_HEAP && o->shared_heap) ||
	       (config == CONFIG_OTHER && o->better) || (config == CONFIG_LIMIT && o->limit);
}

/* --everything: what is left of its time for each cell, a start of a job taken off. */
static double cell_seconds(void)
{
	const double all_s = 900, start_s = 0.7;
	unsigned int configs = 0;
	double runs;

	for (int config = 0; config < CONFIGS; config++)
		configs += takes_turns(config);
	runs = compare.place_count * configs * (double)compare.options->rounds;
	return fmax(0.002, (all_s / runs - start_s) / compare.cells);
}

/* What all runs have in common. */
static void write_arguments(void)
{
	const struct bench_choice *o = compare.options;
	FILE *out = bench_arguments(compare.arguments, sizeof(compare.arguments), o);

	if (o->mode != BUFFERS_ROTATED)
		fprintf(out, " --%s", buffer_mode_name(o->mode));
	if (o->iterations)
		fprintf(out, " --iterations %ld", o->iterations);
	if (o->everything)
		fprintf(out, " --cell-seconds %.4f", cell_seconds());
	fputs(o->no_check ? " --no-check" : "", out);
	fclose(out);
}

/* Whether there is more to tell places apart by than their ranks. */
static bool has_several(const bool *chosen, int n)
{
	int count = 0;

	while (n--)
		count += chosen[n];
	return count > 1;
}

static void plan_place(struct bench *bench, struct place *place)
{
	const struct bench_choice *o = compare.options;
	struct results *results = compare.results;
	unsigned int group = (unsigned int)(place - compare.places) + 1;
	size_t ranks = place->ranks;

	snprintf(place->stem, sizeof(place->stem), "%s%s%zu%s%s",
		 has_several(o->mpis, LAUNCHERS) ? launcher_info(place->mpi)->word : "",
		 has_several(o->mpis, LAUNCHERS) ? "-" : "", ranks,
		 has_several(o->ways, BENCH_WAYS) ? "-" : "",
		 has_several(o->ways, BENCH_WAYS) ? place->way->name : "");
	for (int i = 0; i < o->collectives.n; i++) {
		enum oc_collective collective = o->collectives.at[i];
		const char *name = oci_collective_name(collective);
		struct figure *figure = bench_figure(
			bench, collective, "us", results_text(results, "%s-%s", place->stem, name));

		figure->title = results_text(compare.results, "%s, %zu ranks", name, ranks);
		figure->about = place->way->about;
		figure->row = name;
		figure->log_y = figure->folded = true;
		figure->group = group;
	}
	results_turn(results);
	for (unsigned int config = 0; config < CONFIGS; config++) {
		if (takes_turns((int)config))
			results_step(results, run_config, place, config, "%s, %zu ranks, %s, %s",
				     launcher_info(place->mpi)->name, ranks, place->way->name,
				     variants[config].name);
	}
}

/* MPICH's ranks do not yield: where there are several MPIs, its places with shared cores are left
 * out. */
static void list_places(void)
{
	const struct bench_choice *o = compare.options;

	for (int mpi = 1; mpi < LAUNCHERS; mpi++) {
		for (int i = 0; i < o->ranks_count * BENCH_WAYS; i++) {
			struct place *place = &compare.places[compare.place_count];

			*place = (struct place){ .mpi = (enum launcher)mpi,
						 .way = &ways[i % BENCH_WAYS],
						 .ranks = o->ranks_at[i / BENCH_WAYS] };
			place->oversubscribed = place->ranks > (size_t)compare.results->host.cores;
			compare.place_count += o->mpis[mpi] && o->ways[i % BENCH_WAYS] &&
					       !(mpi == LAUNCH_MPICH && place->oversubscribed &&
						 has_several(o->mpis, LAUNCHERS));
		}
	}
}

/* ---- what came of it ------------------------------------------------------------------------- */

static bool moves_bytes(const struct figure *figure, unsigned int x)
{
	return figure->x[x] != 0;
}

static bool is_large(const struct figure *figure, unsigned int x)
{
	return figure->x[x] >= LARGE_BYTES;
}

static bool is_barrier(const struct figure *figure, unsigned int x)
{
	return figure->x[x] == 0;
}

static void compare_place(const struct place *place, int config)
{
	const struct bench_choice *o = compare.options;
	bool heap = config == CONFIG_HEAP, over = place->oversubscribed,
	     openmpi = compare.first == LAUNCH_OPENMPI;
	struct comparison *c = results_compare(compare.results,
					       (unsigned int)(place - compare.places) + 1,
					       variants[CONFIG_STOCK].name, variants[config].name);
	/* What the gate asks: the means are those that the issues ask for. */
	const struct group groups[] = {
		{ .name = "all cells but barrier",
		  .has = moves_bytes,
		  .least = heap	   ? (over ? 1.5 : 1.6) :
			   over	   ? 1.1 :
			   openmpi ? 1.3 :
				     1.5 },
		{ .name = "cells of 64 KiB and more",
		  .has = is_large,
		  .least = over	   ? 0 :
			   heap	   ? 2.0 :
			   openmpi ? 1.5 :
				     0 },
		{ .name = "barrier", .has = is_barrier, .least = over || !openmpi ? 0 : 1.3 },
	};

	c->title = results_text(
		compare.results, "%zu ranks, %s%s%s%s%s%s", place->ranks,
		over ? "sharing cores" : "one a core", heap ? ", shared heaps" : "",
		has_several(o->mpis, LAUNCHERS) ? ", " : "",
		has_several(o->mpis, LAUNCHERS) ? launcher_info(place->mpi)->name : "",
		*place->way->arguments ? ", " : "", *place->way->arguments ? place->way->name : "");
	c->about = results_text(
		compare.results,
		"%s, %s buffers.%s%s%s\nus: %s. ratio: stock/onecopy, control: stock/stock.%s",
		compare.mpi[place->mpi],
		place->way->cached ? "the same" : buffer_mode_name(o->mode),
		o->better ? "\nstock is the faster of this and " : "",
		o->better ? compare.mpi[other_mpi(place->mpi)] : "",
		o->better ? " in each cell; * marks the latter." : "", place->way->about,
		o->limit ? "\nmemcpy: what the bytes that have to move take without any "
			   "waiting, and that in % of the time before it." :
			   "");
	c->stem = place->stem;
	c->control = variants[CONFIG_CONTROL].name;
	c->other = o->better ? variants[CONFIG_OTHER].name : NULL;
	c->limit = o->limit ? variants[CONFIG_LIMIT].name : NULL;
	c->floor = over ? 0.5 : 0.95;
	memcpy(c->groups, groups, sizeof(groups));
	c->group_count = sizeof(groups) / sizeof(groups[0]);
}

/* Of many tables the losses are said once more, together. */
static void list_lost(void)
{
	const struct results *results = compare.results;
	unsigned int lost = 0, cells = 0;

	if (compare.place_count < 2 || results->complete < STATS_MIN_RUNS)
		return;
	for (unsigned int i = 0; i < results->comparison_count; i++) {
		const struct comparison *c = results->comparisons[i];

		lost += c->lost;
		cells += c->cell_count;
		for (unsigned int k = 0; k < c->cell_count; k++) {
			const struct compared *cell = &c->cells[k];
			char at[32];

			if (cell->verdict != VERDICT_LOST)
				continue;
			figure_x_text(cell->figure, cell->x, at, sizeof(at));
			results_say(compare.results,
				    "LOST: %s: %s %s, %.2f [%.2f, %.2f], control [%.2f, %.2f].",
				    c->title, cell->figure->row, at, cell->ratio.median,
				    cell->ratio.low, cell->ratio.high, cell->control.low,
				    cell->control.high);
		}
	}
	results_say(compare.results, "Of %u cells %u are lost.", cells, lost);
}

void bench_collectives_plan(struct bench *bench)
{
	const struct bench_choice *o = &bench->options;

	compare.options = o;
	compare.results = &bench->results;
	compare.first = o->mpis[LAUNCH_OPENMPI] ? LAUNCH_OPENMPI : LAUNCH_MPICH;
	run_begin();
	list_places();
	for (int i = 0; i < o->collectives.n; i++)
		compare.cells += o->collectives.at[i] == OC_BARRIER ? 1 : o->sizes.count;
	write_arguments();
	for (unsigned int i = 0; i < compare.place_count; i++)
		plan_place(bench, &compare.places[i]);
}

void bench_collectives_end(struct bench *bench)
{
	const struct bench_choice *o = &bench->options;

	for (unsigned int i = 0; i < compare.place_count && bench->results.complete; i++) {
		compare_place(&compare.places[i], CONFIG_ONECOPY);
		if (o->shared_heap)
			compare_place(&compare.places[i], CONFIG_HEAP);
	}
}

void bench_collectives_sum_up(struct bench *bench)
{
	const struct bench_choice *o = compare.options;

	if (!o)
		return;
	list_lost();
	json_object_update_new(
		bench->results.settings,
		json_pack("{s:s, s:s, s:s, s:b, s:I, s:s*, s:s*, s:b, s:I, s:I}", "mpi",
			  launcher_info(compare.first)->word, "version", compare.mpi[compare.first],
			  "buffers", buffer_mode_name(o->mode), "checked", !o->no_check,
			  "iterations", (json_int_t)o->iterations, "with", o->with, "mpirun",
			  o->mpirun, "service_verified", !compare.unverified, "calls_served",
			  compare.served, "calls_handed_back", compare.handed_back));
}
