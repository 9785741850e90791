/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How far nonblocking collectives go on while the program computes, on the MPIs that are installed:
 * stock, and onecopy with each of its executors, in turns.
 */
#include "bench.h"
#include "command.h"

#define CELL_S 0.1
#define CELL_QUICK_S 0.01

static const struct variant variants[] = {
	{ .name = "stock" },
	{ .name = "control" },
	{ .name = "onecopy", .onecopy = true },
	{ .name = "caller", .onecopy = true, .setting = "ONECOPY_ASYNC=caller" },
	{ .name = "thread", .onecopy = true, .setting = "ONECOPY_ASYNC=thread" },
	{ .name = "shared heap", .onecopy = true, .shared_heap = true },
};
enum { VARIANTS = sizeof(variants) / sizeof(variants[0]) };

static const struct quantity {
	const char *name, *unit, *title, *about;
	bool more_is_better;
} quantities[] = {
	{ "pure", "us", "the call and its wait",
	  "Mean of the ranks, median over calls that all begin at one instant.", false },
	{ "exposed", "us", "what it adds to a computation",
	  "A call, a computation as long as the call alone takes, the wait; less the computation "
	  "alone.",
	  false },
	{ "overlap", "%", "overlap",
	  "100 * (1 - added / call alone), as OSU's osu_i* count it; below 0: worse than one after "
	  "the other.",
	  true },
	{ "root", "us", "what it adds to the root's computation",
	  "Rank 0 alone computes, four times as long, the others wait: do they do its part, too?",
	  false },
	{ "others", "us", "what it adds to the others' computation",
	  "Rank 0 waits, the others compute, four times as long: does it do their part, too?",
	  false },
	{ "lost", "%", "CPU time lost",
	  "CPU time of all threads of the process beyond that of the computation alone, in % of "
	  "it.",
	  false },
};
enum { QUANTITIES = sizeof(quantities) / sizeof(quantities[0]) };

/* Of an MPI. */
static struct place {
	enum launcher mpi;
	enum binding binding;
	uint32_t ranks;
	struct figure *main;
	char arguments[1024];
} places[LAUNCHERS];

static int run_variant(struct results *results, struct step *step, unsigned int round)
{
	struct place *place = step->context;
	struct run run = { .variant = &variants[step->at],
			   .launcher = place->mpi,
			   .ranks = place->ranks,
			   .binding = place->binding,
			   .arguments = place->arguments,
			   .stem = launcher_info(place->mpi)->word,
			   .counted = true };
	int err = bench_run(results, step, &run, "collectives", round, place->main);

	json_decref(run.counters);
	return err;
}

static void plan_figures(struct bench *bench, struct place *place, enum oc_collective collective)
{
	const struct launcher_info *mpi = launcher_info(place->mpi);
	const char *name = oci_collective_name(collective);

	for (int q = 0; q < QUANTITIES; q++) {
		const struct quantity *quantity = &quantities[q];
		struct figure *figure = bench_figure(
			bench, collective, quantity->unit,
			results_text(&bench->results, "%s-%s-%s", mpi->word, name, quantity->name));

		figure->title = results_text(&bench->results, "I%s of %s, %u ranks: %s", name,
					     mpi->name, bench->options.ranks, quantity->title);
		figure->about = quantity->about;
		figure->row = results_text(&bench->results, "i%s", name);
		figure->more_is_better = quantity->more_is_better;
		if (q)
			continue;
		figure->log_y = true;
		figure->group = (unsigned int)place->mpi;
		place->main = place->main ? place->main : figure;
	}
}

/* Whether what one variant takes is more than another does, beside what stock differs by. */
static void plan_comparison(struct bench *bench, const struct place *place, const char *subject,
			    const char *against)
{
	bench_against(bench, (unsigned int)place->mpi, against, subject,
		      results_text(&bench->results, "%s, the calls alone: %s against %s",
				   launcher_info(place->mpi)->name, subject, against));
}

static void write_arguments(const struct bench *bench, struct place *place)
{
	const struct bench_choice *o = &bench->options;
	FILE *out = bench_arguments(place->arguments, sizeof(place->arguments), o);

	fprintf(out, " --overlap --cell-seconds %g%s", o->quick ? CELL_QUICK_S : CELL_S,
		o->spare ? " --spare" : "");
	fclose(out);
}

static void plan_place(struct bench *bench, struct place *place)
{
	place->ranks = bench->options.ranks;
	/* Who computes is to be able to have the CPUs of those that sleep. */
	place->binding = bench->options.spare ? BIND_NONE :
						binding_of(&bench->results.host, place->ranks);
	for (int c = 0; c < bench->options.collectives.n; c++)
		plan_figures(bench, place, bench->options.collectives.at[c]);
	plan_comparison(bench, place, "onecopy", "stock");
	plan_comparison(bench, place, "shared heap", "stock");
	plan_comparison(bench, place, "onecopy", "caller");
	plan_comparison(bench, place, "thread", "caller");
	write_arguments(bench, place);
	results_turn(&bench->results);
	for (unsigned int v = 0; v < VARIANTS; v++)
		results_step(&bench->results, run_variant, place, v, "%s: %s",
			     launcher_info(place->mpi)->name, variants[v].name);
}

void bench_overlap_plan(struct bench *bench)
{
	run_begin();
	for (int mpi = 1; mpi < LAUNCHERS; mpi++) {
		places[mpi].mpi = (enum launcher)mpi;
		if (bench->options.mpis[mpi])
			plan_place(bench, &places[mpi]);
	}
}
