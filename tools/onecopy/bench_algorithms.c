/* SPDX-License-Identifier: BSD-3-Clause */
/* The algorithms of one collective against each other, and the model against them. */
#include "bench.h"
#include "command.h"
#include "measure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Seconds of calls for each algorithm, size and round. */
#define SPAN_S 0.1
#define SPAN_QUICK_S 0.02
/* What the choice may cost more than the best and still count as good. */
#define GOOD 1.10

struct totals {
	unsigned int good, cells, errors[2], chosen_errors;
	double *error[2]; /* |predicted / measured - 1|: by plans, by closed form */
	double *chosen_error;
	double worst;
	const struct figure *worst_at;
	unsigned int worst_x;
};

/* A collective's figure; its steps have it as their context, and a size each. */
static struct job {
	const struct bench *bench;
	struct figure *figure;
	enum oc_collective collective;
} jobs[OC_COLLECTIVES];
static unsigned int job_count;

static bool is_single_copy(void)
{
	const struct oc_mechanism_info *info;

	for (unsigned int i = 0; (info = oc_inspect_mechanism(i)) != NULL; i++) {
		/* Mapped memory needs shared heaps, which these ranks have not. */
		if (info->works && !strcmp(info->name, "cma"))
			return true;
	}
	return false;
}

/* The best parameter of each algorithm is the algorithm; what is chosen beside it is its own. */
static void want(const struct bench *bench, struct figure *figure, unsigned int x,
		 const struct oc_predicted *predicted, const struct oc_prediction *p)
{
	bool chosen = !strcmp(p->algorithm, predicted->chosen);
	struct figure_cell *cell;
	char series[sizeof(p->algorithm)];

	if (!p->best && !chosen && !bench->options.every_parameter)
		return;
	memcpy(series, p->algorithm, sizeof(series));
	if (p->best && !bench->options.every_parameter)
		series[strcspn(series, ":")] = '\0';
	cell = figure_cell(figure, figure_series(figure, series), x);
	memcpy(cell->label, p->algorithm, sizeof(cell->label));
	cell->wanted = true;
	cell->chosen = chosen;
	if (p->virtual_s >= 0)
		cell->plans = 1e6 * p->virtual_s;
	if (p->closed)
		cell->closed = 1e6 * p->total;
}

static void plan_size(struct bench *bench, enum oc_collective collective, struct figure *figure,
		      unsigned int x)
{
	static struct oc_prediction list[OC_PREDICTIONS_MOST];
	struct oc_predict_call call = { .profile = bench->options.profile,
					.collective = collective,
					.bytes = figure->x[x],
					.ranks = bench->options.ranks,
					.shm = !is_single_copy(),
					.mapped = bench->options.mapped,
					.shared_cpus = bench->options.ranks > bench->cpus,
					.virtual_time = (bench->options.what & BENCH_MODEL) != 0 };
	struct oc_predicted predicted;
	struct measure m = { .collective = collective,
			     .ranks = bench->options.ranks,
			     .bytes = figure->x[x] };
	char error[256], at[32];

	if (measure_fits(&m, error, sizeof(error))) {
		figure_x_text(figure, x, at, sizeof(at));
		figure_note(figure, "%s is left out: %s.", at, error);
		return;
	}
	predict_call(&call, &predicted, list);
	bench->results.model = results_text(&bench->results, "%s", predict_model_text(&predicted));
	for (unsigned int i = 0; i < predicted.count; i++)
		want(bench, figure, x, &predicted, &list[i]);
}

static int measure_size(struct results *results, struct step *step, unsigned int round);

static void plan_collective(struct bench *bench, enum oc_collective collective)
{
	const char *name = oci_collective_name(collective);
	struct figure *figure =
		bench_figure(bench, collective, "us",
			     results_text(&bench->results, "%s-%u", name, bench->options.ranks));
	struct job *job = &jobs[job_count++];

	figure->title = results_text(&bench->results, "Algorithms of %s on %u ranks", name,
				     bench->options.ranks);
	figure->about = results_text(
		&bench->results,
		"Each round is the median over calls of the slowest rank's time; ranks begin at a "
		"barrier of our own; buffers rotate, and sources are written before each call. "
		"%s%s",
		bench->options.mapped ? "They lie in shared heaps. " : "",
		bench->options.ranks > bench->cpus ?
			"The ranks share CPUs, so the scheduler is part of every number." :
			"Each rank has a CPU of its own.");
	figure->log_y = figure->compared = true;
	figure->measured = (bench->options.what & BENCH_ALGORITHMS) != 0;
	figure->predicted = (bench->options.what & BENCH_MODEL) != 0;
	*job = (struct job){ bench, figure, collective };
	for (unsigned int x = 0; x < figure->x_count; x++) {
		char at[32];

		plan_size(bench, collective, figure, x);
		figure_x_text(figure, x, at, sizeof(at));
		results_turn(&bench->results);
		results_step(&bench->results, measure_size, job, x, "%s %s", name, at);
	}
}

void bench_algorithms_plan(struct bench *bench)
{
	for (int i = 0; i < bench->options.collectives.n; i++)
		plan_collective(bench, bench->options.collectives.at[i]);
}

/* One that fails takes the rest of its round with it; the next round goes on without it. */
static void leave_out(struct figure *figure, struct figure_cell *cell, unsigned int x,
		      const char *why)
{
	char at[32];

	figure_x_text(figure, x, at, sizeof(at));
	figure_note(figure, "%s at %s is left out: %s.", cell->label, at,
		    *why ? why : "it refused the call");
	cell->wanted = false;
}

static int measure_size(struct results *results, struct step *step, unsigned int round)
{
	const struct job *job = step->context;
	const struct bench *bench = job->bench;
	struct figure *figure = job->figure;
	unsigned int x = step->at;
	struct figure_cell *cells[OC_PREDICTIONS_MOST];
	const char *names[OC_PREDICTIONS_MOST];
	double seconds[OC_PREDICTIONS_MOST];
	struct measure m = { .collective = job->collective,
			     .ranks = bench->options.ranks,
			     .bytes = figure->x[x],
			     .mapped = bench->options.mapped,
			     .span_s = bench->options.quick ? SPAN_QUICK_S : SPAN_S,
			     .algorithms = names,
			     .seconds = seconds };
	char error[256] = "";

	/* Another one begins in each round, so that none is always the one behind the pause. */
	for (unsigned int i = 0; i < figure->series_count; i++) {
		struct figure_cell *cell =
			figure_cell(figure, (i + round) % figure->series_count, x);

		if (!cell->wanted || m.count == OC_PREDICTIONS_MOST)
			continue;
		cells[m.count] = cell;
		names[m.count++] = cell->label;
	}
	(void)results;
	if (!m.count)
		return 0;
	measure_run(&m, error, sizeof(error));
	for (unsigned int i = 0; i < m.count; i++) {
		if (seconds[i] < 0) {
			leave_out(figure, cells[i], x, error);
			return 0;
		}
		figure_add(figure, cells[i], round, 1e6 * seconds[i]);
	}
	return 0;
}

static void note_error(double *errors, unsigned int *count, double predicted, double measured)
{
	if (!isnan(predicted) && measured > 0)
		errors[(*count)++] = fabs(predicted / measured - 1);
}

/* Of the rounds: the mean of their middle half, as `onecopy tune` has it of its turns. On a machine
 * that changes it is what a call takes on average, where the median is one of its states. */
static double usual_of(const struct figure *figure, const struct figure_cell *cell)
{
	double sorted[ROUNDS_MOST], sum = 0;
	unsigned int count = figure_sorted(figure, cell, sorted), quarter = count / 4;

	for (unsigned int i = quarter; i < count - quarter; i++)
		sum += sorted[i];
	return sum / (count - 2 * quarter);
}

static void sum_up_size(struct figure *figure, unsigned int x, struct totals *t)
{
	double best = INFINITY, chosen = NAN;
	const struct figure_cell *taken = NULL;

	for (unsigned int s = 0; s < figure->series_count; s++) {
		const struct figure_cell *cell = figure_cell(figure, s, x);

		double usual;

		if (!cell->count)
			continue;
		usual = usual_of(figure, cell);
		best = fmin(best, usual);
		note_error(t->error[0], &t->errors[0], cell->plans, usual);
		note_error(t->error[1], &t->errors[1], cell->closed, usual);
		if (cell->chosen) {
			chosen = usual;
			taken = cell;
		}
	}
	if (!taken)
		return;
	note_error(t->chosen_error, &t->chosen_errors, taken->plans, chosen);
	t->cells++;
	t->good += chosen <= GOOD * best;
	if (chosen / best > t->worst) {
		t->worst = chosen / best;
		t->worst_at = figure;
		t->worst_x = x;
	}
}

static void say_errors(struct bench *bench, struct totals *t)
{
	if (!t->errors[0] || !t->errors[1])
		return;
	results_say(
		&bench->results,
		"Predicted against measured, |predicted / measured - 1| in the median: %.0f %% by "
		"plans in virtual time (%u values), %.0f %% by closed form (%u).",
		100 * stats_median(t->error[0], t->errors[0]), t->errors[0],
		100 * stats_median(t->error[1], t->errors[1]), t->errors[1]);
	if (t->chosen_errors)
		results_say(&bench->results, "Of what jobs take: %.0f %% by plans (%u).",
			    100 * stats_median(t->chosen_error, t->chosen_errors),
			    t->chosen_errors);
}

void bench_algorithms_sum_up(struct bench *bench)
{
	struct totals t = { .worst = 0 };
	size_t cells = 1;

	for (unsigned int j = 0; j < job_count; j++)
		cells += (size_t)jobs[j].figure->series_count * jobs[j].figure->x_count;
	t.error[0] = calloc(3 * cells, sizeof(double));
	if (!t.error[0])
		return;
	t.error[1] = t.error[0] + cells;
	t.chosen_error = t.error[1] + cells;
	for (unsigned int j = 0; j < job_count; j++)
		for (unsigned int x = 0; x < jobs[j].figure->x_count; x++)
			sum_up_size(jobs[j].figure, x, &t);
	if (t.worst_at) {
		char at[32];

		figure_x_text(t.worst_at, t.worst_x, at, sizeof(at));
		results_say(
			&bench->results,
			"What jobs take is at most 10 %% slower than the fastest measured in %u of "
			"%u cells; at worst %.2f times as slow (%s, %s). Of rounds the mean of the "
			"middle half counts.",
			t.good, t.cells, t.worst, t.worst_at->name, at);
	}
	say_errors(bench, &t);
	free(t.error[0]);
}
