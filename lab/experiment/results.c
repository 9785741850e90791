/* SPDX-License-Identifier: BSD-3-Clause */
#include "lab/experiment/experiment.h"
#include "lab/harness/child.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void *must(void *memory)
{
	if (!memory) {
		say("no memory for the results");
		exit(1);
	}
	return memory;
}

void results_begin(struct results *results, int argc, char **argv, unsigned int rounds)
{
	size_t length = 0;

	*results = (struct results){ .rounds = rounds, .about = "", .model = "" };
	for (int i = 0; i < argc && length < sizeof(results->command); i++)
		length += (size_t)snprintf(results->command + length,
					   sizeof(results->command) - length, "%s%s", i ? " " : "",
					   argv[i]);
	host_describe(&results->host);
	progress_begin(&results->progress);
}

void results_end(struct results *results)
{
	for (unsigned int i = 0; i < results->figure_count; i++)
		figure_free(results->figures[i]);
	for (unsigned int i = 0; i < results->comparison_count; i++) {
		free(results->comparisons[i]->cells);
		free(results->comparisons[i]);
	}
	for (unsigned int i = 0; i < results->step_count; i++)
		free(results->steps[i]);
	for (unsigned int i = 0; i < results->text_count; i++)
		free(results->texts[i]);
	free(results->texts);
	free(results->figures);
	free(results->comparisons);
	free(results->steps);
	free(results->summary);
	json_decref(results->settings);
}

void results_turn(struct results *results)
{
	results->turn++;
}

struct step *results_step(struct results *results,
			  int (*run)(struct results *, struct step *, unsigned int), void *context,
			  unsigned int at, const char *what, ...)
{
	struct step *step = must(malloc(sizeof(*step)));
	va_list arguments;

	*step = (struct step){ .turn = results->turn, .run = run, .context = context, .at = at };
	va_start(arguments, what);
	vsnprintf(step->what, sizeof(step->what), what, arguments);
	va_end(arguments);
	LIST_ADD(results->steps, results->step_count, step);
	return step;
}

/* The steps from `first` on that belong to its turn. */
static unsigned int steps_of_turn(const struct results *results, unsigned int first)
{
	unsigned int n = 1;

	while (first + n < results->step_count &&
	       results->steps[first + n]->turn == results->steps[first]->turn)
		n++;
	return n;
}

/* Of a step of a round: of all steps there are, or of the time, and of the rounds that there are to
 * be in any case. */
static double part_done(const struct results *results, unsigned int round, unsigned int step)
{
	double rounds = round + (double)step / results->step_count;
	double done = rounds / results->rounds;
	double time =
		results->seconds > 0 ? progress_seconds(&results->progress) / results->seconds : 0;

	if (results->least && rounds < results->least && rounds / results->least < time)
		time = rounds / results->least;
	return time < done ? done : time > 1 ? 1 : time;
}

/* Whether another round, as long as the last one, would end too late. */
static bool time_is_up(const struct results *results)
{
	return results->seconds > 0 && results->complete && results->complete >= results->least &&
	       progress_seconds(&results->progress) + results->last_s > results->seconds;
}

static int interrupted(struct results *results)
{
	progress_end(&results->progress);
	say("interrupted");
	return -EINTR;
}

static int run_round(struct results *results, unsigned int round)
{

	for (unsigned int first = 0, n; first < results->step_count; first += n) {
		n = steps_of_turn(results, first);
		for (unsigned int i = 0; i < n; i++) {
			/* In their order at first, so that figures list them so. */
			struct step *step = results->steps[first + (i + round) % n];
			int failed;

			if (step->left_out)
				continue;
			progress_show(&results->progress, step->what,
				      part_done(results, round, first + i));
			failed = step->run(results, step, round);
			if (failed)
				return failed;
			if (child_interrupted() && first + i + 1 < results->step_count)
				return interrupted(results);
		}
	}
	return 0;
}

int results_run(struct results *results)
{
	int failed = 0;

	child_heed_signals(true);
	while (results->complete < results->rounds && !failed && !time_is_up(results) &&
	       !(results->enough && results->enough(results))) {
		double begun_s = progress_seconds(&results->progress);

		failed = run_round(results, results->complete);
		results->complete += !failed;
		results->last_s = progress_seconds(&results->progress) - begun_s;
		if (!failed && child_interrupted())
			failed = interrupted(results);
	}
	progress_end(&results->progress);
	/* What is shown and drawn is of the rounds before. */
	child_forget_interrupt();
	return failed;
}

void results_finish(struct results *results)
{
	for (unsigned int i = 0; i < results->figure_count; i++) {
		/* What a round that was broken off has left is no part of the results. */
		results->figures[i]->rounds = results->complete;
		figure_finish(results->figures[i]);
	}
	for (unsigned int i = 0; i < results->comparison_count; i++)
		comparison_finish(results, results->comparisons[i]);
}

const char *results_text(struct results *results, const char *format, ...)
{
	va_list arguments;
	char *text;

	va_start(arguments, format);
	if (vasprintf(&text, format, arguments) < 0)
		text = must(NULL);
	va_end(arguments);
	LIST_ADD(results->texts, results->text_count, text);
	return text;
}

struct comparison *results_compare(struct results *results, unsigned int group, const char *stock,
				   const char *subject)
{
	struct comparison *comparison = must(calloc(1, sizeof(*comparison)));

	comparison->group = group;
	comparison->stock = comparison->controlled = stock;
	comparison->subject = subject;
	comparison->title = comparison->about = comparison->stem = comparison->note = "";
	comparison->floor = 1;
	LIST_ADD(results->comparisons, results->comparison_count, comparison);
	return comparison;
}

void results_folder(const struct results *results, const char *parent, char *out, size_t n)
{
	snprintf(out, n, "%s/%s", parent, results->host.date);
	/* A colon in a file name troubles make, scp and Windows. */
	for (char *colon; (colon = strchr(out, ':'));)
		memmove(colon, colon + 1, strlen(colon));
}

static int check_file(const char *path, const char *elsewhere)
{
	bool there = !access(path, F_OK);
	FILE *file = fopen(path, "a");

	if (file) {
		fclose(file);
		if (!there)
			unlink(path);
		return 0;
	}
	say("%s cannot be written: %s; %s writes elsewhere", path, strerror(errno), elsewhere);
	return 1;
}

int results_check_places(const char *json, const char *out, const char *option)
{
	char probe[PATH_MAX];
	int error;

	if (out) {
		snprintf(probe, sizeof(probe), "%s/table.txt", out);
		error = host_make_folders(probe);
		if (error)
			say("%s cannot be made: %s; %s writes elsewhere", out, strerror(-error),
			    option);
		if (error || check_file(probe, option))
			return 1;
	}
	return json && strcmp(json, "-") != 0 ? check_file(json, "--json FILE") : 0;
}

FILE *results_open(const char *folder, const char *stem, const char *end, char *path)
{
	FILE *file;

	snprintf(path, PATH_MAX, "%s/%s.%s", folder, stem, end);
	file = fopen(path, "w");
	if (!file)
		say("%s cannot be written: %s", path, strerror(errno));
	return file;
}

int results_close(FILE *file, const char *path)
{
	bool failed = ferror(file);

	if (!fclose(file) && !failed)
		return 0;
	say("%s cannot be written: %s", path, strerror(errno));
	return 1;
}

static int write_tables(const struct results *results, const char *out)
{
	char path[PATH_MAX];
	FILE *file = results_open(out, "table", "txt", path);

	if (!file)
		return 1;
	results_print(results, file);
	return results_close(file, path);
}

int results_write_folder(const struct results *results, const char *out, bool plots)
{
	char path[PATH_MAX];
	int unplotted = plots ? results_plot(results, out) : 1, failed;

	snprintf(path, sizeof(path), "%s/results.json", out);
	failed = results_write_page(results, out, !unplotted);
	failed |= results_write_json(results, path);
	failed |= write_tables(results, out);
	if (!failed)
		say("all of it, with %s: %s/index.html", unplotted ? "no plots" : "the plots", out);
	return failed ? 1 : plots && unplotted ? 2 : 0;
}
