// SPDX-License-Identifier: BSD-3-Clause
/* The runs: their commands, what they printed and whether that is right; when they are enough. */
#include "demo.h"

#include <errno.h>
#include <jansson.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* An interval is narrow enough if its ends are no further apart than this part of the median. */
#define NARROW 0.04

static const char *file_of(const struct demo_program *program)
{
	return program->file ? program->file : program->name;
}

void demo_program_path(const struct demo *demo, const struct demo_case *one, char *path)
{
	if (one->program->script)
		snprintf(path, PATH_MAX, "%s/%s.py", OC_EXAMPLES_DIR, file_of(one->program));
	else
		snprintf(path, PATH_MAX, "%.*s/examples/%s%s", PATH_MAX - 64, demo->build,
			 one->mpi == LAUNCH_MPICH ? "mpich/" : "", file_of(one->program));
}

/* The programs print one line of JSON; a launcher's chatter may stand around it. */
static void keep_json(void *context, const char *line)
{
	json_t **found = context, *parsed = line[0] == '{' ? json_loads(line, 0, NULL) : NULL;

	if (!*found && json_is_string(json_object_get(parsed, "program")))
		*found = parsed;
	else
		json_decref(parsed);
}

/* Takes the metrics' numbers, and what has to be the same in all runs. */
static int read_result(struct demo_case *one, const json_t *line, double values[DEMO_METRICS])
{
	static const char *const keys[DEMO_METRICS] = { "total_s", "mpi_s" };
	const char *checksum = json_string_value(json_object_get(line, "checksum"));
	const char *name = one->program->name, *file = file_of(one->program);

	if (!line || strcmp(json_string_value(json_object_get(line, "program")), file)) {
		say("%s printed no result", name);
		return -EBADMSG;
	}
	if (!json_is_true(json_object_get(line, "verified"))) {
		say("%s: not verified: it says so itself", name);
		return -EBADMSG;
	}
	for (int m = 0; m < DEMO_METRICS; m++) {
		const json_t *number = json_object_get(line, keys[m]);

		if (!json_is_number(number)) {
			say("%s: '%s' is missing from its result", name, keys[m]);
			return -EBADMSG;
		}
		values[m] = 1e3 * json_number_value(number);
	}
	checksum = checksum ? checksum : "none";
	if (!one->checksum[0])
		snprintf(one->checksum, sizeof(one->checksum), "%s", checksum);
	if (!strcmp(one->checksum, checksum))
		return 0;
	say("%s: not verified: its result has checksum %s, the first run's has %s", name, checksum,
	    one->checksum);
	return -EBADMSG;
}

/* The program and its arguments, quoted as a shell takes them. */
static void write_command(const struct demo *demo, const struct demo_case *one, char *program,
			  char *arguments, size_t n)
{
	const struct demo_program *p = one->program;
	bool path = p->script && one->mpi == LAUNCH_MPICH && demo->opt.mpi4py;
	const char *words = demo->opt.quick ? p->quick : p->arguments;
	char file[PATH_MAX];

	demo_program_path(demo, one, file);
	/* Debian's interpreter by its path: mpi4py is built for it, and another may come first in
	 * PATH. */
	snprintf(program, PATH_MAX, "%s", path ? "env" : p->script ? "/usr/bin/python3" : file);
	if (path)
		snprintf(arguments, n, "'PYTHONPATH=%s' /usr/bin/python3 '%s' %s --json",
			 demo->opt.mpi4py, file, words);
	else if (p->script)
		snprintf(arguments, n, "'%s' %s --json", file, words);
	else if (p->rank_rows)
		snprintf(arguments, n, "%s --rows %zu --json", words,
			 p->rank_rows * (size_t)demo->opt.ranks);
	else
		snprintf(arguments, n, "%s --json", words);
}

/* step->at: the variant. */
static int run_case(struct results *results, struct step *step, unsigned int round)
{
	struct demo_case *one = step->context;
	struct demo *demo = one->demo;
	const struct variant *variant = &demo->set->variants[step->at];
	char program[PATH_MAX], arguments[3 * PATH_MAX], why[512];
	double values[DEMO_METRICS];
	json_t *line = NULL;
	struct run run = { .variant = variant,
			   .launcher = one->mpi,
			   .with = demo->with,
			   .mpirun = demo->opt.mpirun[one->mpi],
			   .ranks = (uint32_t)demo->opt.ranks,
			   .binding = demo->binding,
			   .program = program,
			   .arguments = arguments,
			   .timeout_s = demo->opt.timeout_s,
			   .counted = true,
			   .line = keep_json,
			   .context = &line };
	int err;

	write_command(demo, one, program, arguments, sizeof(arguments));
	err = run_program(results, &run, round, why, sizeof(why));
	if (err == -EINTR) {
		say("interrupted");
	} else if (err) {
		run_explain(&run, why);
	} else {
		err = read_result(one, line, values);
		if (err)
			say("The command was: %s", run.command);
	}
	for (int m = 0; m < DEMO_METRICS && !err && !demo->warming; m++) {
		struct figure *figure = demo->figures[one->mpi][m];

		figure_add(figure, figure_cell_of(figure, variant->name, one->x), round, values[m]);
	}
	if (run.counters) {
		json_decref(one->counters);
		one->counters = run.counters;
	}
	json_decref(line);
	return err;
}

/* ---- plan ------------------------------------------------------------------------------------ */

static void plan_figures(struct demo *demo, enum launcher mpi, unsigned int count)
{
	static const size_t places[DEMO_PROGRAMS_MAX] = { 1, 2, 3, 4, 5, 6, 7, 8 };
	static const char *const stems[] = { "total", "in-mpi" };
	static const char *const rows[] = { "total time", "in MPI" };
	const struct launcher_info *info = launcher_info(mpi);
	const struct demo_set *set = demo->set;

	for (int m = 0; m < DEMO_METRICS; m++) {
		struct figure *figure = figure_new(&demo->results, places, count, "ms", "%s-%s",
						   info->word, stems[m]);

		figure->title = results_text(&demo->results, "%s: %s", info->name, rows[m]);
		figure->row = rows[m];
		figure->about =
			m ? "What of the total time a rank is in MPI, on average." :
			    "By the program's own clock, behind MPI_Init; the slowest rank's.";
		figure->x_names = demo->names[mpi];
		figure->x_name = "program";
		figure->x_is_bytes = false;
		figure->folded = true;
		figure->group = (unsigned int)mpi;
		for (unsigned int v = 0; v < set->variant_count; v++)
			figure_series(figure, set->variants[v].name);
		demo->figures[mpi][m] = figure;
	}
	for (unsigned int v = 0; v < set->variant_count; v++) {
		struct comparison *c;

		if (set->variants[v].name == demo_stock)
			continue;
		c = results_compare(&demo->results, (unsigned int)mpi, demo_stock,
				    set->variants[v].name);
		c->title = results_text(&demo->results, "%.20s %.20s, %ld ranks", info->name,
					info->version, demo->opt.ranks);
		c->stem = info->word;
	}
}

void demo_plan(struct demo *demo)
{
	unsigned int counts[LAUNCHERS] = { 0 };

	for (unsigned int i = 0; i < demo->case_count; i++) {
		struct demo_case *one = &demo->cases[i];

		if (one->skipped)
			continue;
		one->x = counts[one->mpi]++;
		demo->names[one->mpi][one->x] = one->program->name;
		results_turn(&demo->results);
		for (unsigned int v = 0; v < demo->set->variant_count; v++)
			one->steps[v] = results_step(
				&demo->results, run_case, one, v, "%s, %s, %s", one->program->name,
				launcher_info(one->mpi)->name, demo->set->variants[v].name);
	}
	for (int mpi = 1; mpi < LAUNCHERS; mpi++)
		if (counts[mpi])
			plan_figures(demo, (enum launcher)mpi, counts[mpi]);
}

int demo_warm_up(struct demo *demo)
{
	struct results *results = &demo->results;
	int err = 0;

	demo->warming = true;
	for (unsigned int i = 0; i < demo->case_count && !err; i++) {
		/* The last one needs all that the others do. */
		struct step *step = demo->cases[i].steps[demo->set->variant_count - 1];

		if (!step)
			continue;
		progress_show(&results->progress, "first runs, which are not counted",
			      progress_seconds(&results->progress) / results->seconds);
		err = run_case(results, step, 0);
	}
	demo->warming = false;
	return err;
}

bool demo_enough(struct results *results)
{
	struct demo *demo = (struct demo *)((char *)results - offsetof(struct demo, results));
	bool enough = results->complete > 0;

	for (unsigned int c = 0; c < results->comparison_count && enough; c++)
		comparison_finish(results, results->comparisons[c]);
	for (unsigned int i = 0; i < demo->case_count && results->complete; i++) {
		const struct demo_case *one = &demo->cases[i];
		bool narrow = true;

		for (unsigned int c = 0; c < results->comparison_count; c++) {
			const struct comparison *comparison = results->comparisons[c];
			const struct stats_estimate *ratio = &comparison->cells[one->x].ratio;

			if (comparison->group == (unsigned int)one->mpi)
				narrow &= ratio->coverage >= 0.95 &&
					  ratio->high - ratio->low <= NARROW * ratio->median;
		}
		for (unsigned int v = 0; v < demo->set->variant_count && !one->skipped; v++)
			one->steps[v]->left_out = narrow;
		enough &= narrow || one->skipped;
	}
	return enough;
}
