// SPDX-License-Identifier: BSD-3-Clause
#include "demo.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Load average above which the head line warns, before anything of ours runs. */
#define BUSY_LOAD 0.7

static int compare_doubles(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static double median(const struct demo_result *runs, int rounds, size_t metric)
{
	double sorted[DEMO_ROUNDS_MAX];

	for (int r = 0; r < rounds; r++)
		sorted[r] = runs[r].values[metric];
	qsort(sorted, (size_t)rounds, sizeof(*sorted), compare_doubles);
	return rounds % 2 ? sorted[rounds / 2] :
			    (sorted[rounds / 2 - 1] + sorted[rounds / 2]) / 2.0;
}

/* How many times better with onecopy, times and rates alike; 0 where a median is not positive. */
static double gain(const struct demo_metric *metric, double without, double with)
{
	if (without <= 0.0 || with <= 0.0)
		return 0.0;
	return metric->is_rate ? with / without : without / with;
}

static void print_host(const struct demo *demo)
{
	const struct demo_host *host = &demo->host;

	printf("%s, %d CPUs (%d cores), %s, %s\n", host->cpu_model, host->cpus, host->cores,
	       host->kernel, host->mpi);
	printf("ranks: %d, %s; rounds: %d, without and with onecopy in turn; medians are quoted\n",
	       demo->opt.ranks,
	       demo->opt.ranks <= host->cores ? "bound to cores" :
	       demo->opt.ranks <= host->cpus  ? "bound to hardware threads" :
						"more than CPUs",
	       demo->opt.rounds);
	printf("with onecopy is: %s --stats-json FILE %s ...\n", demo->opt.with, demo->opt.mpirun);
}

void demo_report_head(const struct demo *demo)
{
	double load;

	print_host(demo);
	if (getloadavg(&load, 1) == 1 && load > BUSY_LOAD)
		printf("NOTE: the load average is %.1f: other programs blur the times\n", load);
}

void demo_report_table(const struct demo *demo, struct demo_result *const *results)
{
	int rounds = demo->opt.rounds;
	char runs[16];
	int width = 0;

	snprintf(runs, sizeof(runs), "%d of %d", rounds, rounds);
	for (size_t p = 0; p < demo_num_programs; p++)
		for (size_t m = 0; results[p] && m < demo_programs[p]->num_metrics; m++) {
			int len = (int)strlen(demo_programs[p]->metrics[m].label);

			width = len > width ? len : width;
		}

	printf("\n");
	print_host(demo);
	printf("gain: how many times better with onecopy (times: without / with, rates: with / "
	       "without)\n\n");
	printf("%-10s %-*s %11s %11s %6s\n", "program", width, "", "without", "with", "gain");
	for (size_t p = 0; p < demo_num_programs; p++) {
		const struct demo_program *program = demo_programs[p];
		const struct demo_result *without = results[p];

		if (!without)
			continue;

		const struct demo_result *with = without + rounds;

		for (size_t m = 0; m < program->num_metrics; m++) {
			const struct demo_metric *metric = &program->metrics[m];
			double before = median(without, rounds, m);
			double after = median(with, rounds, m);

			printf("%-10s %-*s %11.4f %11.4f %6.2f\n", m ? "" : program->name, width,
			       metric->label, before, after, gain(metric, before, after));
		}
		printf("%-10s %-*s %11s %11s\n", "", width, "verified", runs, runs);
	}

	printf("\nverified means\n");
	for (size_t p = 0; p < demo_num_programs; p++)
		if (results[p])
			printf("  %-10s %s\n", demo_programs[p]->name, demo_programs[p]->checks);

	printf("\nWhat follows is of the last run; calls and bytes are sums over the ranks.\n");
	for (size_t p = 0; p < demo_num_programs; p++)
		if (results[p])
			demo_stats_print(demo_programs[p]->name, results[p][2 * rounds - 1].stats);
}

static json_t *samples_json(const struct demo_result *runs, int rounds, size_t metric)
{
	json_t *samples = json_array();

	for (int r = 0; r < rounds; r++)
		json_array_append_new(samples, json_real(runs[r].values[metric]));
	return samples;
}

static json_t *program_json(const struct demo_program *program, const struct demo_result *without,
			    int rounds)
{
	const struct demo_result *with = without + rounds;
	json_t *metrics = json_array();
	json_t *stats = json_array();

	for (size_t m = 0; m < program->num_metrics; m++) {
		const struct demo_metric *metric = &program->metrics[m];
		double before = median(without, rounds, m);
		double after = median(with, rounds, m);

		json_array_append_new(metrics,
				      json_pack("{s:s, s:s, s:s, s:f, s:f, s:f, s:o, s:o}", "id",
						metric->id, "label", metric->label, "better",
						metric->is_rate ? "more" : "less", "median_without",
						before, "median_with", after, "gain",
						gain(metric, before, after), "without",
						samples_json(without, rounds, m), "with",
						samples_json(with, rounds, m)));
	}
	for (int r = 0; r < rounds; r++)
		json_array_append(stats, with[r].stats);

	/* Only results of which every run was verified get here. */
	return json_pack("{s:s, s:s, s:b, s:s, s:o, s:o}", "program", program->name, "what",
			 program->what, "verified", 1, "checks", program->checks, "metrics",
			 metrics, "stats", stats);
}

int demo_report_json(const struct demo *demo, struct demo_result *const *results)
{
	const struct demo_options *opt = &demo->opt;
	const struct demo_host *host = &demo->host;
	json_t *programs = json_array();
	json_t *document;
	int ret = -1;

	for (size_t p = 0; p < demo_num_programs; p++)
		if (results[p])
			json_array_append_new(
				programs, program_json(demo_programs[p], results[p], opt->rounds));

	document = json_pack("{s:s, s:{s:s, s:s, s:s, s:i, s:i}, s:i, s:i, s:s, s:o}", "demo",
			     OC_VERSION, "host", "cpu", host->cpu_model, "kernel", host->kernel,
			     "mpi", host->mpi, "cpus", host->cpus, "cores", host->cores, "ranks",
			     opt->ranks, "rounds", opt->rounds, "with", opt->with, "programs",
			     programs);
	if (document && json_dump_file(document, opt->json, JSON_INDENT(1)) == 0)
		ret = 0;
	else
		fprintf(stderr, "onecopy-demo: cannot write %s\n", opt->json);
	json_decref(document);
	return ret;
}
