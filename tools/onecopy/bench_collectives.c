/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collectives of the MPIs with and without onecopy, in turns, and what the difference is worth. A
 * ratio is stock/onecopy, above 1 when onecopy is faster. More than 500 lines, as plan, runs and
 * verdict go by one table of places.
 */
#include "bench.h"
#include "command.h"
#include "lab/experiment/json_text.h"

#include <errno.h>
#include <math.h>
#include <string.h>

enum {
	CONFIG_STOCK,
	CONFIG_ONECOPY,
	CONFIG_CONTROL,
	CONFIG_HEAP,
	CONFIG_OTHER,
	CONFIG_SINGLE_COPIES,
	CONFIG_LIMIT
};
enum { CONFIGS = CONFIG_LIMIT + 1, LARGE_BYTES = 64 << 10 };

static const struct variant variants[CONFIGS] = {
	[CONFIG_STOCK] = { .name = "stock" },
	[CONFIG_ONECOPY] = { .name = "onecopy", .onecopy = true },
	[CONFIG_CONTROL] = { .name = "control" },
	[CONFIG_HEAP] = { .name = "shared heap", .onecopy = true, .shared_heap = true },
	[CONFIG_OTHER] = { .name = "other stock" },
	[CONFIG_SINGLE_COPIES] = { .name = "single copies" },
	[CONFIG_LIMIT] = { .name = "memcpy" },
};

/* --everything ends within it. The rounds that have all cells take two thirds at most: the rest is
 * for cells that may still be lost. */
#define EVERYTHING_S 900
enum { FULL_ROUNDS = 2 };
/* Of a cell in a run: at least, and at most and with --night. */
#define LEAST_CELL_S 0.02
#define NIGHT_CELL_S 0.1
/* Of the time that a cell has, the part for its timed calls: the rest is for warming up and for
 * what is verified. */
#define TIMED_PART 0.5

/* So many ranks of an MPI: all configurations take turns on them. */
struct job {
	enum launcher mpi;
	size_t ranks;
	bool oversubscribed;
	char stem[32];
	struct place *places; /* its ways, place_count of them */
	unsigned int place_count;
	/* In the round that it was planned for. */
	unsigned int round;
	char *arguments; /* NULL: not planned yet */
	unsigned int cells;
};

/* One way of a job, with tables of its own. */
struct place {
	struct job *job;
	unsigned int way;
	char stem[48];
};

static struct {
	const struct bench_choice *options;
	struct results *results;
	enum launcher first; /* of those chosen */
	struct job jobs[BENCH_RANKS_MOST * LAUNCHERS];
	struct place places[BENCH_RANKS_MOST * LAUNCHERS * BENCH_WAYS];
	unsigned int job_count, place_count;
	unsigned int full_rounds;	/* which have all cells */
	char arguments[4096];		/* of all runs */
	char mpi[LAUNCHERS][128];	/* what they call themselves */
	unsigned int cells;		/* of a way */
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

/* ---- which cells ----------------------------------------------------------------------------- */

static double floor_of(const struct job *job)
{
	return job->oversubscribed ? 0.8 : 0.95;
}

static unsigned int group_of(const struct place *place)
{
	return (unsigned int)(place - compare.places) + 1;
}

/* Whether onecopy may still lose a cell. */
static bool may_lose(const struct place *place, const struct figure *figure, unsigned int x)
{
	const struct results *results = compare.results;
	double floor = floor_of(place->job);
	const char *stock = variants[CONFIG_STOCK].name;

	return comparison_may_lose(results, figure, x, stock, variants[CONFIG_ONECOPY].name,
				   floor) ||
	       (compare.options->shared_heap &&
		comparison_may_lose(results, figure, x, stock, variants[CONFIG_HEAP].name, floor));
}

/* Those of a place that may still be lost, to a list for onecopy-collectives, NULL: none is made;
 * returns how many. */
static unsigned int list_open(const struct place *place, FILE *out, const char *separator)
{
	unsigned int count = 0;

	for (unsigned int f = 0; f < compare.results->figure_count; f++) {
		const struct figure *figure = compare.results->figures[f];

		if (figure->group != group_of(place))
			continue;
		for (unsigned int x = 0; x < figure->x_count; x++) {
			if (!may_lose(place, figure, x))
				continue;
			if (out)
				fprintf(out, "%s%s/%s/%zu", count ? "," : separator,
					bench_ways[place->way].name, figure->row, figure->x[x]);
			count++;
		}
	}
	return count;
}

/* What the runs of a round measure, the same in all configurations. Later rounds of --everything
 * go on with the cells that may still be lost. */
static void plan_round(struct job *job, unsigned int round)
{
	size_t length;
	FILE *out;

	if (job->arguments && job->round == round)
		return;
	free(job->arguments);
	out = must(open_memstream(&job->arguments, &length));
	fputs(compare.arguments, out);
	job->round = round;
	job->cells = 0;
	for (unsigned int p = 0; p < job->place_count; p++)
		job->cells +=
			round < compare.full_rounds ?
				compare.cells :
				list_open(&job->places[p], out, job->cells ? "," : " --cells ");
	fclose(out);
}

static bool is_open(void)
{
	unsigned int count = 0;

	for (unsigned int i = 0; i < compare.place_count; i++)
		count += list_open(&compare.places[i], NULL, "");
	return count;
}

/* Between rounds. Where the first one took long there is no time for a second one of all cells. */
static bool is_enough(struct results *results)
{
	double spent_s = progress_seconds(&results->progress);

	if (results->complete && results->complete < compare.full_rounds &&
	    spent_s * (1 + 1.0 / results->complete) > EVERYTHING_S * 2 / 3.0)
		compare.full_rounds = results->complete;
	/* A further round takes as long as the last one, if that was none of all cells. */
	results->least = compare.full_rounds + 1;
	return results->complete >= compare.full_rounds && !is_open();
}

static int run_config(struct results *results, struct step *step, unsigned int round)
{
	const struct bench_choice *o = compare.options;
	struct job *job = step->context;
	struct variant variant = variants[step->at];
	enum launcher mpi = step->at == CONFIG_OTHER ? other_mpi(job->mpi) : job->mpi;
	char why[512];
	struct run run = { .variant = &variant,
			   .launcher = mpi,
			   .with = o->with,
			   .mpirun = mpi == compare.first ? o->mpirun : NULL,
			   .ranks = (uint32_t)job->ranks,
			   .binding = o->nodes		  ? BIND_AS_SAID :
				      job->oversubscribed ? BIND_NONE :
							    BIND_CORES,
			   .program = mpi == compare.first ? o->program : NULL,
			   .stem = job->stem,
			   .timeout_s = o->timeout_s,
			   .counted = true,
			   .may_lack_counters = o->with };
	int err = bench_prepare(&run, "collectives", why, sizeof(why));
	const char *more = step->at == CONFIG_LIMIT ?
				   " --memcpy" :
				    /* MPICH 4.0.2's own persistent calls may deliver what their
				     * first start found in the buffer. */
				   !variant.onecopy ? " --tolerate persistent" :
						      "";

	/* Papers compare with an MPI that copies through shared memory. */
	variant.two_copies = o->two_copies && step->at <= CONFIG_CONTROL && !variant.onecopy;
	plan_round(job, round);
	if (!job->cells)
		return 0;
	run.arguments = results_text(results, "%s%s", job->arguments, more);
	if (!err)
		err = run_program(results, &run, round, why, sizeof(why));
	if (!err && run.values < job->cells) {
		snprintf(why, sizeof(why), "it gave %u of %u values; is --program another version?",
			 run.values, job->cells);
		err = -EBADMSG;
	}
	snprintf(compare.mpi[mpi], sizeof(compare.mpi[0]), "%.100s", run.said);
	if (err) {
		progress_end(&results->progress);
		run_explain(&run, err, why);
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
	       (config == CONFIG_OTHER && o->better) ||
	       (config == CONFIG_SINGLE_COPIES && o->two_copies) ||
	       (config == CONFIG_LIMIT && o->limit);
}

/* So long that the rounds that have all cells take half of the time. */
static double cell_seconds(const struct bench_choice *o)
{
	double cells = (double)compare.place_count * compare.cells * FULL_ROUNDS, seconds;
	int configs = 0;

	for (int config = 0; config < CONFIGS; config++)
		configs += takes_turns(config);
	seconds = EVERYTHING_S / 2.0 / (cells * configs) * TIMED_PART;
	if (o->night || seconds > NIGHT_CELL_S)
		return NIGHT_CELL_S;
	return seconds > LEAST_CELL_S ? seconds : LEAST_CELL_S;
}

/* What all runs have in common. */
static void write_arguments(void)
{
	const struct bench_choice *o = compare.options;
	FILE *out = bench_arguments(compare.arguments, sizeof(compare.arguments), o);
	const char *separator = " --ways ";

	for (unsigned int w = 0; w < BENCH_WAYS; w++) {
		if (o->ways[w])
			fprintf(out, "%s%s", separator, bench_ways[w].name);
		separator = o->ways[w] ? "," : separator;
	}
	if (o->mode != BUFFERS_ROTATED)
		fprintf(out, " --%s", buffer_mode_name(o->mode));
	if (o->iterations)
		fprintf(out, " --iterations %ld", o->iterations);
	if (o->everything)
		fprintf(out, " --cell-seconds %g", cell_seconds(o));
	if (o->nodes)
		fprintf(out, " --nodes %ld", o->nodes);
	fputs(o->no_check ? " --no-check" : "", out);
	fclose(out);
}

static void plan_place(struct bench *bench, struct place *place)
{
	const struct bench_choice *o = compare.options;
	const struct job *job = place->job;
	bool several = bench_has_several(o->ways, BENCH_WAYS);

	snprintf(place->stem, sizeof(place->stem), "%s%s%s", job->stem, several ? "-" : "",
		 several ? bench_ways[place->way].name : "");
	for (int i = 0; i < o->collectives.n; i++) {
		enum oc_collective collective = o->collectives.at[i];
		const char *name = oci_collective_name(collective);
		struct figure *figure =
			bench_figure(bench, collective, "us",
				     results_text(compare.results, "%s-%s", place->stem, name));

		figure->title = results_text(compare.results, "%s, %zu ranks", name, job->ranks);
		figure->about = bench_ways[place->way].about;
		figure->row = name;
		figure->log_y = figure->folded = true;
		figure->group = group_of(place);
	}
}

static void plan_job(struct bench *bench, struct job *job)
{
	const struct bench_choice *o = compare.options;
	bool several = bench_has_several(o->mpis, LAUNCHERS);

	snprintf(job->stem, sizeof(job->stem), "%s%s%zu",
		 several ? launcher_info(job->mpi)->word : "", several ? "-" : "", job->ranks);
	job->places = &compare.places[compare.place_count];
	for (unsigned int w = 0; w < BENCH_WAYS; w++) {
		if (!o->ways[w])
			continue;
		job->places[job->place_count] = (struct place){ .job = job, .way = w };
		compare.place_count++;
		plan_place(bench, &job->places[job->place_count++]);
	}
	results_turn(compare.results);
	for (unsigned int config = 0; config < CONFIGS; config++) {
		if (takes_turns((int)config))
			results_step(compare.results, run_config, job, config, "%s, %zu ranks, %s",
				     launcher_info(job->mpi)->name, job->ranks,
				     variants[config].name);
	}
}

/* MPICH's ranks do not yield: where there are several MPIs, its places with shared cores are left
 * out. */
static void plan_jobs(struct bench *bench)
{
	const struct bench_choice *o = compare.options;

	for (int mpi = 1; mpi < LAUNCHERS; mpi++) {
		for (int i = 0; i < o->ranks_count && o->mpis[mpi]; i++) {
			struct job job = { .mpi = (enum launcher)mpi, .ranks = o->ranks_at[i] };

			job.oversubscribed = job.ranks > (size_t)compare.results->host.cores *
								 (o->nodes ? (size_t)o->nodes : 1);
			if (mpi == LAUNCH_MPICH && job.oversubscribed &&
			    bench_has_several(o->mpis, LAUNCHERS))
				continue;
			compare.jobs[compare.job_count] = job;
			plan_job(bench, &compare.jobs[compare.job_count++]);
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
	const struct job *job = place->job;
	const struct bench_way *way = &bench_ways[place->way];
	bool heap = config == CONFIG_HEAP, mpis = config == CONFIG_SINGLE_COPIES,
	     over = job->oversubscribed, openmpi = compare.first == LAUNCH_OPENMPI,
	     several = bench_has_several(o->mpis, LAUNCHERS);
	struct comparison *c = results_compare(compare.results, group_of(place),
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
		compare.results, "%zu ranks%s, %s%s%s%s%s%s", job->ranks,
		o->nodes ? results_text(compare.results, " on %ld nodes", o->nodes) : "",
		over ? "sharing cores" : "one a core",
		heap ? ", shared heaps" :
		mpis ? ", the MPI's single copies" :
		       "",
		several ? ", " : "", several ? launcher_info(job->mpi)->name : "",
		place->way ? ", " : "", place->way ? way->name : "");
	c->about = results_text(
		compare.results,
		"%s, %s buffers.%s%s%s%s\nus: %s. ratio: stock/%s, control: stock/stock.%s",
		compare.mpi[job->mpi], way->cached ? "the same" : buffer_mode_name(o->mode),
		o->better ? "\nstock is the faster of this and " : "",
		o->better ? compare.mpi[other_mpi(job->mpi)] : "",
		o->better ? " in each cell; * marks the latter." : "",
		o->two_copies ? "\nstock copies twice, through shared memory." : "", way->about,
		mpis ? variants[config].name : "onecopy",
		o->limit ? "\nmemcpy: what the bytes that have to move take without any "
			   "waiting, and that in % of the time before it." :
			   "");
	c->stem = place->stem;
	c->control = variants[CONFIG_CONTROL].name;
	c->other = o->better ? variants[CONFIG_OTHER].name : NULL;
	c->limit = o->limit ? variants[CONFIG_LIMIT].name : NULL;
	/* What the MPI's own lose is not onecopy's loss. */
	c->floor = mpis ? 0 : floor_of(job);
	memcpy(c->groups, groups, sizeof(groups));
	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]) && mpis; i++)
		c->groups[i].least = 0;
	c->group_count = sizeof(groups) / sizeof(groups[0]);
}

static void say_cell(const char *what, const struct comparison *c, const struct compared *cell)
{
	char at[32];

	figure_x_text(cell->figure, cell->x, at, sizeof(at));
	results_say(compare.results, "%s: %s: %s %s, %.2f [%.2f, %.2f], control [%.2f, %.2f].",
		    what, c->title, cell->figure->row, at, cell->ratio.median, cell->ratio.low,
		    cell->ratio.high, cell->control.low, cell->control.high);
}

/* Of many tables the losses are said once more, together, and where time was too short to tell. */
static void list_lost(void)
{
	const struct results *results = compare.results;
	unsigned int lost = 0, open = 0, wrong = 0, cells = 0;

	if (compare.place_count < 2 ||
	    (results->complete < STATS_MIN_RUNS && !compare.options->everything))
		return;
	for (unsigned int i = 0; i < results->comparison_count; i++) {
		const struct comparison *c = results->comparisons[i];

		lost += c->lost;
		cells += c->cell_count;
		for (unsigned int k = 0; k < c->cell_count; k++) {
			const struct compared *cell = &c->cells[k];
			bool unsure = cell->ratio.coverage < 0.95 &&
				      comparison_may_lose(results, cell->figure, cell->x, c->stock,
							  c->subject, c->floor);

			open += unsure;
			wrong += cell->verdict == VERDICT_WRONG;
			if (unsure || cell->verdict == VERDICT_LOST)
				say_cell(unsure ? "TOO FEW ROUNDS" : "LOST", c, cell);
		}
	}
	results_say(
		compare.results, "Of %u cells %u are lost%s%s.", cells, lost,
		open ? results_text(compare.results, ", %u of which nothing is known yet", open) :
		       "",
		wrong ? results_text(compare.results,
				     ", and %u have nothing to compare with: the MPI's own call "
				     "delivers wrong bytes",
				     wrong) :
			"");
}

void bench_collectives_plan(struct bench *bench)
{
	const struct bench_choice *o = &bench->options;

	compare.options = o;
	compare.results = &bench->results;
	compare.first = o->mpis[LAUNCH_OPENMPI] ? LAUNCH_OPENMPI : LAUNCH_MPICH;
	run_begin();
	for (int i = 0; i < o->collectives.n; i++)
		compare.cells += o->collectives.at[i] == OC_BARRIER ? 1 : o->sizes.count;
	plan_jobs(bench);
	write_arguments();
	compare.full_rounds = bench->results.rounds;
	if (!o->everything || o->night)
		return;
	compare.full_rounds = bench->results.rounds > FULL_ROUNDS ? FULL_ROUNDS : 1;
	bench->results.least = compare.full_rounds + 1;
	bench->results.seconds = EVERYTHING_S;
	bench->results.enough = is_enough;
	bench->results.about =
		"The first rounds have all cells; the later ones those alone that may still be lost, "
		"as too few of their rounds lie at the floor or above it. Of the others [] holds the "
		"least and the most, and they are not lost, whatever more rounds would bring. "
		"Geometric means are of the first rounds.";
}

void bench_collectives_end(struct bench *bench)
{
	const struct bench_choice *o = &bench->options;

	if (o->everything && !o->night)
		bench->results.settled = !is_open();
	for (unsigned int i = 0; i < compare.place_count && bench->results.complete; i++) {
		compare_place(&compare.places[i], CONFIG_ONECOPY);
		if (o->shared_heap)
			compare_place(&compare.places[i], CONFIG_HEAP);
		if (o->two_copies)
			compare_place(&compare.places[i], CONFIG_SINGLE_COPIES);
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
		json_pack("{s:s, s:s, s:s, s:b, s:I, s:I, s:o*, s:o*, s:b, s:I, s:I}", "mpi",
			  launcher_info(compare.first)->word, "version", compare.mpi[compare.first],
			  "buffers", buffer_mode_name(o->mode), "checked", !o->no_check,
			  "iterations", (json_int_t)o->iterations, "nodes",
			  (json_int_t)(o->nodes ? o->nodes : 1), "with",
			  o->with ? json_text(o->with) : NULL, "mpirun",
			  o->mpirun ? json_text(o->mpirun) : NULL, "service_verified",
			  !compare.unverified, "calls_served", compare.served, "calls_handed_back",
			  compare.handed_back));
}
