// SPDX-License-Identifier: BSD-3-Clause
#include "demo.h"
#include "lab/harness/stats.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Load average above which the head line warns, before anything of ours runs. */
#define BUSY_LOAD 0.7

static double median(const struct demo_result *runs, int rounds, size_t metric)
{
	double sorted[DEMO_ROUNDS_MAX];

	for (int r = 0; r < rounds; r++)
		sorted[r] = runs[r].values[metric];
	return stats_median(sorted, (size_t)rounds);
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
	const struct host *host = &demo->host;

	printf("%s, %d CPUs (%d cores), Linux %s", host->cpu, host->cpus, host->cores,
	       host->kernel);
	for (int mpi = 0; mpi < DEMO_MPIS; mpi++)
		if (*demo->version[mpi])
			printf(", %s", demo->version[mpi]);
	printf("\n");
	printf("ranks: %d, %s; rounds: %d, without and with onecopy in turn; medians are quoted\n",
	       demo->opt.ranks,
	       demo->opt.ranks <= host->cores ? "bound to cores" :
	       demo->opt.ranks <= host->cpus  ? "bound to hardware threads" :
						"more than CPUs",
	       demo->opt.rounds);
	printf("with onecopy is: %s --stats-json FILE MPIRUN ...\n", demo->opt.with);
}

void demo_report_head(const struct demo *demo)
{
	double load;

	print_host(demo);
	if (getloadavg(&load, 1) == 1 && load > BUSY_LOAD)
		printf("NOTE: the load average is %.1f: other programs blur the times\n", load);
}

static void print_rows(const struct demo *demo, const struct demo_case *one, int width)
{
	const struct demo_program *program = one->program;
	int rounds = demo->opt.rounds;
	char runs[32];

	for (size_t m = 0; m < program->num_metrics; m++) {
		const struct demo_metric *metric = &program->metrics[m];
		double before = median(one->results, rounds, m);
		double after = median(one->results + rounds, rounds, m);

		printf("%-10s %-9s %-*s %11.4f %11.4f %6.2f\n", m ? "" : program->name,
		       m ? "" : demo_mpis[one->mpi].name, width, metric->label, before, after,
		       gain(metric, before, after));
	}
	snprintf(runs, sizeof(runs), "%d of %d", rounds, rounds);
	printf("%-10s %-9s %-*s %11s %11s\n", "", "", width, "verified", runs, runs);
}

/* What was not run, with the reason; one line for a whole MPI. */
static void print_skipped(const struct demo *demo)
{
	const char *before = "";

	for (int i = 0; i < demo->num_cases; i++) {
		const struct demo_case *one = &demo->cases[i];

		if (!*one->skipped)
			continue;
		if (strcmp(before, one->skipped) != 0)
			printf("\nnot run under %s (%s): %s", demo_mpis[one->mpi].name,
			       one->skipped, one->program->name);
		else
			printf(", %s", one->program->name);
		before = one->skipped;
	}
	if (*before)
		printf("\n");
}

void demo_report_table(const struct demo *demo)
{
	int width = 0;

	for (int i = 0; i < demo->num_cases; i++) {
		const struct demo_program *program = demo->cases[i].program;

		for (size_t m = 0; demo->cases[i].results && m < program->num_metrics; m++) {
			int len = (int)strlen(program->metrics[m].label);

			width = len > width ? len : width;
		}
	}

	printf("\n");
	print_host(demo);
	printf("gain: how many times better with onecopy (times: without / with, rates: with / "
	       "without)\n\n");
	printf("%-10s %-9s %-*s %11s %11s %6s\n", "program", "MPI", width, "", "without", "with",
	       "gain");
	for (int i = 0; i < demo->num_cases; i++)
		if (demo->cases[i].results)
			print_rows(demo, &demo->cases[i], width);
	print_skipped(demo);

	printf("\nverified means\n");
	for (size_t p = 0; p < demo_num_programs; p++)
		if (!demo->opt.only || strcmp(demo->opt.only, demo_programs[p]->name) == 0)
			printf("  %-10s %s\n", demo_programs[p]->name, demo_programs[p]->checks);

	printf("\nWhat follows is of the last run; calls and bytes are sums over the ranks.\n");
	for (int i = 0; i < demo->num_cases; i++)
		if (demo->cases[i].results)
			demo_stats_print(&demo->cases[i],
					 demo->cases[i].results[2 * demo->opt.rounds - 1].stats);
}

static json_t *samples_json(const struct demo_result *runs, int rounds, size_t metric)
{
	json_t *samples = json_array();

	for (int r = 0; r < rounds; r++)
		json_array_append_new(samples, json_real(runs[r].values[metric]));
	return samples;
}

static json_t *case_json(const struct demo_case *one, int rounds)
{
	const struct demo_program *program = one->program;
	const struct demo_result *without = one->results, *with = without + rounds;
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
	return json_pack("{s:s, s:s, s:s, s:b, s:s, s:o, s:o}", "program", program->name, "mpi",
			 demo_mpis[one->mpi].option, "what", program->what, "verified", 1, "checks",
			 program->checks, "metrics", metrics, "stats", stats);
}

int demo_report_json(const struct demo *demo)
{
	const struct demo_options *opt = &demo->opt;
	const struct host *host = &demo->host;
	json_t *programs = json_array(), *skipped = json_array();
	json_t *document;
	int ret = -1;

	for (int i = 0; i < demo->num_cases; i++) {
		const struct demo_case *one = &demo->cases[i];

		if (one->results)
			json_array_append_new(programs, case_json(one, opt->rounds));
		else
			json_array_append_new(skipped, json_pack("{s:s, s:s, s:s}", "program",
								 one->program->name, "mpi",
								 demo_mpis[one->mpi].option, "why",
								 one->skipped));
	}

	document = json_pack("{s:s, s:{s:s, s:o, s:i, s:i}, s:{s:s, s:s}, s:i, s:i, s:s, s:o, s:o}",
			     "demo", OC_VERSION, "host", "cpu", host->cpu, "kernel",
			     json_sprintf("Linux %s", host->kernel), "cpus", host->cpus, "cores",
			     host->cores, "mpi", demo_mpis[DEMO_OPENMPI].option,
			     demo->version[DEMO_OPENMPI], demo_mpis[DEMO_MPICH].option,
			     demo->version[DEMO_MPICH], "ranks", opt->ranks, "rounds", opt->rounds,
			     "with", opt->with, "programs", programs, "not_run", skipped);
	if (document && json_dump_file(document, opt->json, JSON_INDENT(1)) == 0)
		ret = 0;
	else
		fprintf(stderr, "onecopy-demo: cannot write %s\n", opt->json);
	json_decref(document);
	return ret;
}
