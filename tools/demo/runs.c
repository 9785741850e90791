/* SPDX-License-Identifier: BSD-3-Clause */
/* One run of a program on one side: its command, what it printed, and whether that is right. */
#include "demo.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

void demo_program_path(const struct demo *demo, const struct demo_case *one, char *path)
{
	switch (one->program->kind) {
	case DEMO_BINARY:
		snprintf(path, PATH_MAX, "%s/%s%s", demo->opt.programs,
			 one->mpi == LAUNCH_MPICH ? "mpich/" : "", one->program->name);
		break;
	case DEMO_SCRIPT:
		snprintf(path, PATH_MAX, "%s/%s.py", demo->opt.examples, one->program->name);
		break;
	default:
		snprintf(path, PATH_MAX, "%s", demo->opt.hpcc);
	}
}

const char *demo_side(bool with)
{
	return with ? "with" : "without";
}

/* Our own programs print one line of JSON; a launcher's chatter may stand around it. */
static void keep_json(void *context, const char *line)
{
	json_t **found = context, *parsed = line[0] == '{' ? json_loads(line, 0, NULL) : NULL;

	if (!*found && json_is_string(json_object_get(parsed, "program")))
		*found = parsed;
	else
		json_decref(parsed);
}

/* Takes the metrics' numbers in order, and what has to be the same in all runs. */
static int read_result(struct demo_case *one, const json_t *line, double *values)
{
	const struct demo_program *program = one->program;
	const char *checksum = json_string_value(json_object_get(line, "checksum"));

	if (!line || strcmp(json_string_value(json_object_get(line, "program")), program->name)) {
		say("%s printed no result", program->name);
		return -1;
	}
	if (!json_is_true(json_object_get(line, "verified"))) {
		say("%s: not verified: it says so itself", program->name);
		return -1;
	}
	for (size_t i = 0; i < program->num_metrics; i++) {
		const json_t *number = json_object_get(line, program->metrics[i].id);

		if (!json_is_number(number)) {
			say("%s: '%s' is missing from its result", program->name,
			    program->metrics[i].id);
			return -1;
		}
		values[i] = json_number_value(number);
	}
	checksum = checksum ? checksum : "none";
	if (!one->checksum[0])
		snprintf(one->checksum, sizeof(one->checksum), "%s", checksum);
	if (!strcmp(one->checksum, checksum))
		return 0;
	say("%s: not verified: its result has checksum %s, the first run's has %s", program->name,
	    checksum, one->checksum);
	return -1;
}

/* The program and its arguments, quoted as a shell takes them. */
static void write_command(const struct demo *demo, const struct demo_case *one, char *program,
			  char *arguments, size_t n)
{
	const char *more = one->program->arguments ? one->program->arguments : "";
	bool python = one->program->kind == DEMO_SCRIPT;
	bool path = python && one->mpi == LAUNCH_MPICH && demo->opt.mpi4py;
	char file[PATH_MAX];

	demo_program_path(demo, one, file);
	/* Debian's interpreter by its path: mpi4py is built for it, and another may come first in
	 * PATH. */
	snprintf(program, PATH_MAX, "%s", path ? "env" : python ? "/usr/bin/python3" : file);
	if (path)
		snprintf(arguments, n, "'PYTHONPATH=%s' /usr/bin/python3 '%s' %s", demo->opt.mpi4py,
			 file, more);
	else if (python)
		snprintf(arguments, n, "'%s' %s", file, more);
	else if (!strcmp(one->program->name, "asp"))
		snprintf(arguments, n, "--size %d %s", demo->opt.asp_size, more);
	else
		snprintf(arguments, n, "%s", more);
}

static void add_values(struct demo_case *one, const char *series, unsigned int round,
		       const double *values)
{
	for (size_t m = 0; m < one->program->num_metrics; m++) {
		struct figure *figure = one->figures[m];

		figure_add(figure, figure_cell(figure, figure_series(figure, series), 0), round,
			   values[m]);
	}
}

/* step->at: 0 without onecopy, 1 with it. */
static int run_case(struct results *results, struct step *step, unsigned int round)
{
	struct demo_case *one = step->context;
	struct demo *demo = one->demo;
	const struct variant variant = { .name = demo_side(step->at),
					 .launcher = one->mpi,
					 .onecopy = step->at };
	char program[PATH_MAX], arguments[3 * PATH_MAX], why[512];
	bool hpcc = one->program->kind == DEMO_HPCC;
	double values[DEMO_METRICS_MAX];
	json_t *line = NULL;
	struct run run = { .variant = &variant,
			   .with = demo->opt.with,
			   .mpirun = demo->opt.mpirun[one->mpi],
			   .ranks = (uint32_t)demo->opt.ranks,
			   .binding = demo->binding,
			   .program = program,
			   .arguments = arguments,
			   .folder = hpcc ? demo->folder : NULL,
			   .timeout_s = demo->opt.timeout_s,
			   .counted = true,
			   .line = keep_json,
			   .context = &line };
	int err;

	if (hpcc && demo_hpcc_prepare(demo))
		return -EIO;
	write_command(demo, one, program, arguments, sizeof(arguments));
	err = run_program(results, &run, round, why, sizeof(why));
	if (err) {
		run_explain(&run, why);
	} else {
		err = hpcc ? demo_hpcc_read(demo, run.wall_s, values) :
			     read_result(one, line, values);
		if (err)
			say("The command was: %s", run.command);
		else
			add_values(one, variant.name, round, values);
	}
	if (run.counters) {
		json_decref(one->counters);
		one->counters = run.counters;
	}
	json_decref(line);
	return err;
}

void demo_plan_case(struct demo *demo, struct demo_case *one)
{
	const struct launcher_info *info = launcher_info(one->mpi);

	for (size_t m = 0; m < one->program->num_metrics; m++) {
		const struct demo_metric *metric = &one->program->metrics[m];
		struct figure *figure = figure_new(&demo->results, &demo->x, 1, "", "%s-%s-%s",
						   info->word, one->program->name, metric->id);

		snprintf(figure->title, sizeof(figure->title), "%s, %s: %s", one->program->name,
			 info->name, metric->label);
		snprintf(figure->about, sizeof(figure->about), "%s", one->program->what);
		snprintf(figure->row, sizeof(figure->row), "%-9s %.50s",
			 m ? "" : one->program->name, metric->label);
		figure->x_name = "ranks";
		figure->x_is_bytes = false;
		figure->more_is_better = metric->is_rate;
		figure->folded = true;
		figure->group = (unsigned int)one->mpi;
		one->figures[m] = figure;
	}
	results_turn(&demo->results);
	for (unsigned int side = 0; side < 2; side++)
		results_step(&demo->results, run_case, one, side, "%s, %s, %s onecopy",
			     one->program->name, info->name, demo_side(side));
}
