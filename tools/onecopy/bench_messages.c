/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_Send and MPI_Recv of the MPIs that are installed: by themselves, with onecopy, and under the
 * shared heap, where onecopy copies large messages. One loop (pingpong/), the runs in turns.
 */
#include "bench.h"
#include "command.h"

#include <errno.h>
#include <string.h>

#define POINT_S 0.02
#define POINT_QUICK_S 0.004
#define RUN_SECONDS 300

enum { STOCK, CONTROL, ONECOPY, HEAP, VARIANTS };

struct flow {
	const char *name, *title, *about, *option;
};

static const struct flow flows[] = {
	{ "pingpong", "ping-pong",
	  "Half a round trip: blocking send and receive, the same buffers each time.", "" },
	{ "touch", "ping-pong, rewritten",
	  "The same; each rank reads what it received and writes what it sends next, which is timed.",
	  " --touch" },
	{ "stream", "bandwidth",
	  "A message's time of 16 that are under way at once from rank 0 to rank 1, which then "
	  "answers.",
	  " --stream" },
	{ "both", "both ways",
	  "The same, with as many the other way at once: two messages, one each way.", " --both" },
};
enum { FLOWS = sizeof(flows) / sizeof(flows[0]) };

struct view {
	struct variant variants[VARIANTS];
	const struct flow *flow;
	struct figure *time;
	char stem[32], arguments[2048];
};
static struct view views[LAUNCHERS * FLOWS];

static int run_variant(struct results *results, struct step *step, unsigned int round)
{
	struct view *view = step->context;
	const struct variant *variant = &view->variants[step->at];
	char why[512];
	struct run run = { .variant = variant,
			   .with = bench_with(),
			   .ranks = 2,
			   .binding = BIND_CORES,
			   .program =
				   bench_program("pingpong", variant->launcher, why, sizeof(why)),
			   .arguments = view->arguments,
			   .stem = view->stem,
			   .timeout_s = RUN_SECONDS,
			   .counted = true,
			   .may_serve_nothing = true };
	int err = run.program ? run_program(results, &run, round, why, sizeof(why)) : -ENOENT;
	json_int_t copies = json_integer_value(
		json_object_get(json_object_get(run.counters, "messages"), "copies"));

	json_decref(run.counters);
	if (!err && step->at == HEAP && !copies && !round)
		figure_note(view->time, "No message went by mapped memory under the shared heap.");
	if (err && err != -EINTR)
		bench_leave_out(step, view->time, variant->name, why);
	return err == -EINTR ? err : 0;
}

static void plan_view(struct bench *bench, struct view *view, enum launcher mpi, unsigned int group)
{
	const struct variant variants[VARIANTS] = {
		[STOCK] = { .name = "stock", .launcher = mpi },
		[CONTROL] = { .name = "control", .launcher = mpi },
		[ONECOPY] = { .name = "onecopy", .launcher = mpi, .onecopy = true },
		[HEAP] = { .name = "shared heap",
			   .launcher = mpi,
			   .onecopy = true,
			   .shared_heap = true },
	};
	const struct size_list *sizes = &bench->options.sizes;
	const char *name = launcher_info(mpi)->name;
	static const char *const subjects[] = { "shared heap", "onecopy" };
	struct figure *rate;
	int length;

	memcpy(view->variants, variants, sizeof(variants));
	snprintf(view->stem, sizeof(view->stem), "%s-%s", launcher_info(mpi)->word,
		 view->flow->name);
	view->time =
		figure_new(&bench->results, sizes->at, sizes->count, "us", "%s-time", view->stem);
	snprintf(view->time->title, sizeof(view->time->title), "Messages of %s: %s", name,
		 view->flow->title);
	snprintf(view->time->about, sizeof(view->time->about), "%s", view->flow->about);
	snprintf(view->time->row, sizeof(view->time->row), "%s", view->flow->title);
	view->time->log_y = view->time->folded = true;
	view->time->group = group;
	length = snprintf(view->arguments, sizeof(view->arguments), "--ranks 2 --seconds %g%s",
			  bench->options.quick ? POINT_QUICK_S : POINT_S, view->flow->option);
	for (unsigned int i = 0; i < sizes->count; i++)
		length += snprintf(view->arguments + length,
				   sizeof(view->arguments) - (size_t)length, "%s%zu",
				   i ? "," : " --bytes ", sizes->at[i]);
	rate = figure_new(&bench->results, sizes->at, sizes->count, "GB/s", "%s-throughput",
			  view->stem);
	snprintf(rate->title, sizeof(rate->title), "Messages of %s: %s, rate", name,
		 view->flow->title);
	snprintf(rate->about, sizeof(rate->about), "The same as rates.");
	rate->more_is_better = rate->folded = true;
	for (int s = 0; s < 2; s++) {
		struct comparison *c = results_compare(&bench->results, group);

		snprintf(c->title, sizeof(c->title), "%s, %s: %s", name, view->flow->title,
			 subjects[s]);
		snprintf(c->about, sizeof(c->about),
			 "us. ratio: stock/%s, within each round; control: stock/stock.",
			 subjects[s]);
		c->subject = subjects[s];
		c->stock = "stock";
		c->control = "control";
		c->floor = 0.95;
	}
	results_turn(&bench->results);
	for (unsigned int v = 0; v < VARIANTS; v++)
		results_step(&bench->results, run_variant, view, v, "%s: %s", view->stem,
			     variants[v].name);
}

void bench_messages_plan(struct bench *bench)
{
	unsigned int group = 0;

	run_begin();
	for (int mpi = 1; mpi < LAUNCHERS; mpi++) {
		for (int f = 0; f < FLOWS; f++) {
			struct view *view = &views[group];

			if (bench->options.mpi && bench->options.mpi != (enum launcher)mpi)
				break;
			group++;
			view->flow = &flows[f];
			plan_view(bench, view, (enum launcher)mpi, group);
		}
	}
}
