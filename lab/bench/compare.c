// SPDX-License-Identifier: BSD-3-Clause
/*
 * oc_bench_compare: the same benchmark with and without onecopy, in turns, and what the difference
 * is worth. `make bench` runs it.
 */
#include "compare.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "lab/experiment/run.h"

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

/* So many ranks of an MPI, measured in one way: all configurations take turns on them. */
struct place {
	enum launcher mpi;
	const struct compare_way *way;
	size_t ranks;
	bool oversubscribed;
	char stem[32];
	struct figure *token; /* what one took from rank to rank in a run: median, least, most */
};

static struct compare {
	struct compare_options options;
	struct results results;
	struct place places[COMPARE_MAX_RANKS * LAUNCHERS * COMPARE_WAYS];
	unsigned int place_count;
	double cell_seconds; /* 0: as the benchmark has it */
	char with[PATH_MAX + 32], arguments[4096];
	char mpi[LAUNCHERS][128];	/* what they call themselves */
	unsigned int cells;		/* values of a run */
	json_int_t served, handed_back; /* calls, over all runs with onecopy and their ranks */
	bool unverified;
} compare;

static const size_t no_bytes;

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
		    compare.with);
		compare.unverified = true;
	}
	json_decref(run->counters);
}

static const char *program_of(enum launcher mpi)
{
	static char path[PATH_MAX + 64];
	char folder[PATH_MAX];

	if (compare.options.program && mpi == compare.options.mpi)
		return compare.options.program;
	host_program_folder(folder);
	snprintf(path, sizeof(path), "%s/oc_bench_coll%s", folder,
		 mpi == LAUNCH_MPICH ? "_mpich" : "");
	return path;
}

static enum launcher other_mpi(enum launcher mpi)
{
	return mpi == LAUNCH_OPENMPI ? LAUNCH_MPICH : LAUNCH_OPENMPI;
}

static int run_config(struct results *results, struct step *step, unsigned int round)
{
	const struct compare_options *o = &compare.options;
	const struct place *place = step->context;
	const struct variant *variant = &variants[step->at];
	enum launcher mpi = step->at == CONFIG_OTHER ? other_mpi(place->mpi) : place->mpi;
	char arguments[sizeof(compare.arguments) + 128], why[512];
	struct run run = { .variant = variant,
			   .launcher = mpi,
			   .with = compare.with,
			   .mpirun = mpi == o->mpi ? o->mpirun : NULL,
			   .ranks = (uint32_t)place->ranks,
			   .binding = place->oversubscribed ? BIND_NONE : BIND_CORES,
			   .program = program_of(mpi),
			   .arguments = arguments,
			   .stem = place->stem,
			   .timeout_s = o->timeout_s,
			   .counted = true,
			   .may_lack_counters = o->with };
	int err;

	/* MPICH 4.0.2's own persistent Scatter delivers what its first start found in the buffer.
	 */
	snprintf(arguments, sizeof(arguments), "%s %s%s%s%s%s", compare.arguments,
		 place->way->arguments, place->way->keeps && !variant->onecopy ? " --no-check" : "",
		 step->at == CONFIG_LIMIT ? " --memcpy" : "",
		 o->token && !place->oversubscribed ? " --token-ns " : "",
		 o->token && !place->oversubscribed ? o->token : "");
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
	const struct compare_options *o = &compare.options;

	return config < CONFIG_HEAP || (config == CONFIG_HEAP && o->shared_heap) ||
	       (config == CONFIG_OTHER && o->better) || (config == CONFIG_LIMIT && o->limit);
}

/* What all runs have in common. */
static void write_arguments(void)
{
	const struct compare_options *o = &compare.options;
	FILE *out = must(fmemopen(compare.arguments, sizeof(compare.arguments), "w"));
	int i;

	for (i = 0; i < o->collectives.n; i++)
		fprintf(out, "%s%s", i ? "," : "--collectives ",
			oci_collective_name(o->collectives.at[i]));
	for (unsigned int s = 0; s < o->sizes.count; s++)
		fprintf(out, "%s%zu", s ? "," : " --sizes ", o->sizes.at[s]);
	if (o->mode != BUFFERS_ROTATED)
		fprintf(out, " --%s", buffer_mode_name(o->mode));
	if (o->iterations)
		fprintf(out, " --iterations %ld", o->iterations);
	if (compare.cell_seconds > 0)
		fprintf(out, " --cell-seconds %.4f", compare.cell_seconds);
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

static void plan_place(struct place *place)
{
	const struct compare_options *o = &compare.options;
	struct results *results = &compare.results;
	unsigned int group = (unsigned int)(place - compare.places) + 1;
	size_t ranks = place->ranks;

	snprintf(place->stem, sizeof(place->stem), "%s%s%zu%s%s",
		 has_several(o->mpis, LAUNCHERS) ? launcher_info(place->mpi)->word : "",
		 has_several(o->mpis, LAUNCHERS) ? "-" : "", ranks,
		 has_several(o->ways, COMPARE_WAYS) ? "-" : "",
		 has_several(o->ways, COMPARE_WAYS) ? place->way->name : "");
	for (int i = 0; i < o->collectives.n; i++) {
		enum oc_collective collective = o->collectives.at[i];
		bool barrier = collective == OC_BARRIER;
		const char *name = oci_collective_name(collective);
		struct figure *figure = figure_new(results, barrier ? &no_bytes : o->sizes.at,
						   barrier ? 1 : o->sizes.count, "us", "%s-%s",
						   place->stem, name);

		figure->title = results_text(&compare.results, "%s, %zu ranks", name, ranks);
		figure->about = place->way->about;
		figure->row = name;
		figure->log_y = figure->folded = true;
		figure->group = group;
	}
	place->token = figure_new(results, &place->ranks, 1, "ns", "%s-token", place->stem);
	place->token->title =
		results_text(&compare.results, "A token from rank to rank, %zu ranks", ranks);
	place->token->folded = true;
	place->token->x_name = "ranks";
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
	const struct compare_options *o = &compare.options;

	for (int mpi = 1; mpi < LAUNCHERS; mpi++) {
		for (int i = 0; i < o->ranks_n * COMPARE_WAYS; i++) {
			struct place *place = &compare.places[compare.place_count];

			*place = (struct place){ .mpi = (enum launcher)mpi,
						 .way = &compare_ways[i % COMPARE_WAYS],
						 .ranks = o->ranks[i / COMPARE_WAYS] };
			place->oversubscribed = place->ranks > (size_t)compare.results.host.cores;
			compare.place_count += o->mpis[mpi] && o->ways[i % COMPARE_WAYS] &&
					       !(mpi == LAUNCH_MPICH && place->oversubscribed &&
						 has_several(o->mpis, LAUNCHERS));
		}
	}
}

/* --everything: what is left of its time for each cell, a start of a job taken off. */
static void share_time(void)
{
	const double all_s = 900, start_s = 0.7;
	unsigned int configs = 0;
	double each;

	for (int config = 0; config < CONFIGS; config++)
		configs += takes_turns(config);
	each = all_s / (compare.place_count * configs * (double)compare.options.runs) - start_s;
	compare.cell_seconds = fmax(0.002, each / compare.cells);
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

/* Where it varies, so does what is measured. */
static void note_token(const struct place *place, struct comparison *comparison)
{
	const struct figure *token = place->token;
	double least = INFINITY, most = 0;

	for (unsigned int s = 0; s < token->series_count; s++) {
		const struct figure_cell *cell = figure_cell(token, s, 0);

		for (unsigned int r = 0; r < compare.results.complete && cell->spread; r++) {
			least = fmin(least, cell->spread[r][0]);
			most = fmax(most, cell->spread[r][1]);
		}
	}
	if (most > 0)
		comparison->note = results_text(
			&compare.results,
			"A token took %.0f to %.0f ns from rank to rank (medians of the cells)%s%s.",
			least, most, compare.options.token ? "; counted are calls with " : "",
			compare.options.token ? compare.options.token : "");
}

static void compare_place(const struct place *place, int config)
{
	const struct compare_options *o = &compare.options;
	bool heap = config == CONFIG_HEAP, over = place->oversubscribed,
	     openmpi = o->mpi == LAUNCH_OPENMPI;
	struct comparison *c = results_compare(&compare.results,
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
		&compare.results, "%zu ranks, %s%s%s%s%s%s", place->ranks,
		over ? "sharing cores" : "one a core", heap ? ", shared heaps" : "",
		has_several(o->mpis, LAUNCHERS) ? ", " : "",
		has_several(o->mpis, LAUNCHERS) ? launcher_info(place->mpi)->name : "",
		*place->way->arguments ? ", " : "", *place->way->arguments ? place->way->name : "");
	c->about = results_text(
		&compare.results,
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
	note_token(place, c);
}

/* Of many tables the losses are said once more, together. */
static void list_lost(void)
{
	const struct results *results = &compare.results;
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
			results_say(&compare.results,
				    "LOST: %s: %s %s, %.2f [%.2f, %.2f], control [%.2f, %.2f].",
				    c->title, cell->figure->row, at, cell->ratio.median,
				    cell->ratio.low, cell->ratio.high, cell->control.low,
				    cell->control.high);
		}
	}
	results_say(&compare.results, "Of %u cells %u are lost.", cells, lost);
}

static json_t *settings(void)
{
	const struct compare_options *o = &compare.options;

	return json_pack("{s:s, s:s, s:s, s:b, s:I, s:s*, s:s, s:s*, s:I, s:b, s:I, s:I}", "mpi",
			 launcher_info(o->mpi)->word, "version", compare.mpi[o->mpi], "buffers",
			 buffer_mode_name(o->mode), "checked", !o->no_check, "iterations",
			 (json_int_t)o->iterations, "token_ns", o->token, "with", compare.with,
			 "mpirun", o->mpirun, "timeout_s", (json_int_t)o->timeout_s,
			 "service_verified", !compare.unverified, "calls_served", compare.served,
			 "calls_handed_back", compare.handed_back);
}

/* Tables, files and plots of the rounds that are complete. Returns the exit status. */
static int report(const char *out)
{
	const struct compare_options *o = &compare.options;
	struct results *results = &compare.results;
	bool pass = true;
	int failed;

	results->settings = settings();
	for (unsigned int i = 0; i < compare.place_count; i++) {
		compare_place(&compare.places[i], CONFIG_ONECOPY);
		if (o->shared_heap)
			compare_place(&compare.places[i], CONFIG_HEAP);
	}
	results_finish(results);
	list_lost();
	results_print(results, stdout);
	/* No plots, no harm: the reason was said, and the numbers are there. */
	failed = results_write_folder(results, out, !o->no_plots) == 1;
	if (o->json)
		failed |= results_write_json(results, o->json);
	for (unsigned int c = 0; c < results->comparison_count && o->gate; c++)
		pass &= comparison_passes(results->comparisons[c], stdout);
	return failed ? STATUS_FAILED : pass ? STATUS_OK : STATUS_GATE;
}

/* Better said now than after the first stock run. */
static int check_with(void)
{
	struct child_args args = { .n = 0 };
	int err = 0;

	if (child_args_add_words(&args, compare.with) || args.n == 0) {
		say("--with takes a command, as in 'onecopy run'.");
		err = -EINVAL;
	} else if (strchr(args.argv[0], '/') && access(args.argv[0], X_OK)) {
		say("'%s', to run under onecopy, cannot be executed: %s. Build it with 'make', or "
		    "name it with --with.",
		    args.argv[0], strerror(errno));
		err = -ENOENT;
	}
	child_args_destroy(&args);
	return err;
}

int main(int argc, char **argv)
{
	const struct compare_options *o = &compare.options;
	struct results *results = &compare.results;
	char out[PATH_MAX], folder[PATH_MAX];
	int status, err;

	compare_options_parse(argc, argv, &compare.options);
	host_program_folder(folder);
	snprintf(compare.with, sizeof(compare.with),
		 o->with ? "%s" : "'%s/../tools/onecopy/onecopy' run", o->with ? o->with : folder);
	results_begin(results, argc, argv, (unsigned int)o->runs);
	results_folder(results, "bench-out", out, sizeof(out));
	if (check_with())
		return EXIT_USAGE;
	if (results_check_places(o->json, o->out ? o->out : out))
		return STATUS_FAILED;
	run_begin();
	list_places();
	for (int i = 0; i < o->collectives.n; i++)
		compare.cells += o->collectives.at[i] == OC_BARRIER ? 1 : o->sizes.count;
	if (o->everything)
		share_time();
	write_arguments();
	for (unsigned int i = 0; i < compare.place_count; i++)
		plan_place(&compare.places[i]);
	err = results_run(results);
	/* What was measured before a failure is still worth a table. */
	status = results->complete ? report(o->out ? o->out : out) : STATUS_FAILED;
	results_end(results);
	return err ? STATUS_FAILED : status;
}
