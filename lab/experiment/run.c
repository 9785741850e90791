/* SPDX-License-Identifier: BSD-3-Clause */
#include "lab/experiment/run.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lab/experiment/counters.h"
#include "lab/harness/descendants.h"
#include "lab/harness/stock_environment.h"

struct reader {
	struct results *results;
	struct run *run;
	unsigned int round;
	char other[256]; /* the first line that was not expected: a reason, if it fails */
	char wrong[256]; /* a sample that has no place; "": none */
};

void run_begin(void)
{
	char dropped[1024];

	child_heed_signals(false);
	descendants_adopt();
	if (stock_environment(dropped, sizeof(dropped)))
		say("not passed on, as it would change what is measured: %s", dropped);
	if (!geteuid()) {
		/* mpirun refuses root otherwise; in a container there is often nobody else. */
		setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 0);
		setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 0);
	}
	launchers_find();
}

/* The words of a line in front of what runs it; -EINVAL: they cannot be read. */
static int add_words(struct child_args *args, const char *words, char *why, size_t n)
{
	if (!words || !child_args_add_words(args, words))
		return 0;
	snprintf(why, n, "'%s' cannot be split into words; check its quotes and variables", words);
	return -EINVAL;
}

enum binding binding_of(const struct host *host, uint32_t ranks)
{
	return (int)ranks <= host->cores ? BIND_CORES :
	       (int)ranks <= host->cpus	 ? BIND_THREADS :
					   BIND_NONE;
}

static const struct launcher_info *launcher_of_run(const struct run *run)
{
	return launcher_info(run->variant->launcher ? run->variant->launcher : run->launcher);
}

static int add_launcher(struct child_args *args, const struct run *run, char *why, size_t n)
{
	const struct launcher_info *info = launcher_of_run(run);
	int err;

	if (!info)
		return 0;
	if (!run->mpirun && !*info->command) {
		snprintf(why, n, "no launcher of %s is on PATH", info->name);
		return -ENOENT;
	}
	if (run->mpirun) {
		err = add_words(args, run->mpirun, why, n);
		if (err)
			return err;
	} else {
		child_args_add(args, info->command);
	}
	child_args_add(args, "-n");
	child_args_add_long(args, (long)run->ranks);
	return run->binding == BIND_AS_SAID ? 0 : add_words(args, info->bind[run->binding], why, n);
}

static int build_command(const struct run *run, struct child_args *args, char *why, size_t n)
{
	const struct variant *variant = run->variant;
	int err = 0;

	if (variant->setting || variant->two_copies) {
		child_args_add(args, "env");
		child_args_add(args, variant->two_copies ? launcher_of_run(run)->two_copies :
							   variant->setting);
	}
	if (variant->onecopy)
		err = add_words(args, run->with, why, n);
	if (variant->onecopy && variant->shared_heap)
		child_args_add(args, "--shared-heap");
	if (!err)
		err = add_launcher(args, run, why, n);
	child_args_add(args, run->program);
	return err ? err : add_words(args, run->arguments, why, n);
}

static void add_sample(struct reader *reader, const char *line)
{
	const struct run *run = reader->run;
	char name[64], full[128];
	double value, spread[2];
	struct figure_cell *cell;
	struct figure *figure;
	unsigned int x = 0;
	size_t at;
	int count =
		sscanf(line, "= %63s %zu %lf %lf %lf", name, &at, &value, &spread[0], &spread[1]);

	snprintf(full, sizeof(full), "%s%s%s", run->stem ? run->stem : "", run->stem ? "-" : "",
		 name);
	figure = count >= 3 ? figure_find(reader->results, full) : NULL;
	while (figure && x < figure->x_count && figure->x[x] != at)
		x++;
	if (!figure || x == figure->x_count) {
		snprintf(reader->wrong, sizeof(reader->wrong), "%.200s", line);
		return;
	}
	cell = figure_cell(figure, figure_series(figure, run->variant->name), x);
	/* Of what has delivered wrong bytes programs print nan. */
	if (isnan(value))
		cell->wrong = true;
	else
		figure_add(figure, cell, reader->round, value);
	if (count == 5)
		figure_add_spread(figure, cell, reader->round, spread);
	reader->run->values++;
}

static void read_line(void *context, const char *line)
{
	struct reader *reader = context;

	if (line[0] == '=')
		add_sample(reader, line);
	else if (line[0] == '#' && line[1])
		snprintf(reader->run->said, sizeof(reader->run->said), "%s", line + 2);
	else if (!reader->other[0] && line[0] && line[0] != '-')
		snprintf(reader->other, sizeof(reader->other), "%s", line);
	if (reader->run->line && line[0] != '=' && line[0] != '#')
		reader->run->line(reader->run->context, line);
}

static void explain(const struct reader *reader, int err, const struct child_result *result,
		    char *why, size_t n)
{
	const char *other = reader->other;

	if (err == -EINTR)
		snprintf(why, n, "it was interrupted");
	else if (result->timed_out)
		snprintf(why, n, "it did not end within %ld s", reader->run->timeout_s);
	else if (err != -ECHILD)
		snprintf(why, n, "it cannot be started: %s", strerror(-err));
	else if (WIFSIGNALED(result->status))
		snprintf(why, n, "it was ended by signal %d (%s)%s%s", WTERMSIG(result->status),
			 strsignal(WTERMSIG(result->status)), *other ? ": " : "", other);
	else
		snprintf(why, n, "it ended with status %d%s%s", WEXITSTATUS(result->status),
			 *other ? ": " : "", other);
}

/* A run that onecopy did not take part in compares stock with stock: its counters tell. */
static int take_counters(struct run *run, const char *dir, char *why, size_t n)
{
	json_t *counters = counters_collect(dir);
	json_t *handed = json_object_get(counters, "handed_back");

	counters_remove(dir);
	if (!json_integer_value(json_object_get(counters, "ranks"))) {
		json_decref(counters);
		snprintf(why, n, "onecopy left no counters, so it was not under the run");
		return run->may_lack_counters ? 0 : -ENOTSUP;
	}
	run->counters = counters;
	if (run->ranks == 1 || run->may_serve_nothing ||
	    json_array_size(json_object_get(counters, "collectives")) ||
	    json_array_size(json_object_get(counters, "two_levels")))
		return 0;
	snprintf(why, n,
		 "onecopy served no call of it (%zu kinds were handed back to the MPI, the "
		 "first because: %s)",
		 json_array_size(handed),
		 json_array_size(handed) ?
			 json_string_value(json_object_get(json_array_get(handed, 0), "reason")) :
			 "none");
	return -ENOTSUP;
}

int run_program(struct results *results, struct run *run, unsigned int round, char *why, size_t n)
{
	struct reader reader = { .results = results, .run = run, .round = round };
	struct child_args args = { .line = read_line, .context = &reader };
	const char *tmp = getenv("TMPDIR");
	struct child_result result = { 0 };
	char dir[PATH_MAX];
	int err;

	run->values = 0;
	run->said[0] = run->tail[0] = '\0';
	run->counters = NULL;
	err = build_command(run, &args, why, n);
	if (err)
		goto out;
	snprintf(run->command, sizeof(run->command), "%s", child_args_text(&args));
	snprintf(dir, sizeof(dir), "%s/onecopy-run-XXXXXX", tmp && *tmp ? tmp : "/tmp");
	if (run->counted && run->variant->onecopy) {
		if (!mkdtemp(dir)) {
			snprintf(why, n, "%s cannot be made: %s", dir, strerror(errno));
			err = -errno;
			goto out;
		}
		setenv("ONECOPY_STATS_DIR", dir, 1);
	}
	err = child_run(&args, run->timeout_s, &result);
	unsetenv("ONECOPY_STATS_DIR");
	run->wall_s = result.seconds;
	memcpy(run->tail, result.tail, sizeof(run->tail));
	if (err)
		explain(&reader, err, &result, why, n);
	if (err && run->counted && run->variant->onecopy)
		counters_remove(dir);
	else if (run->counted && run->variant->onecopy)
		err = take_counters(run, dir, why, n);
	if (!err && reader.wrong[0]) {
		snprintf(why, n, "'%s' is no part of this experiment; is it another version?",
			 reader.wrong);
		err = -EBADMSG;
	}
out:
	child_args_destroy(&args);
	return err;
}

void run_explain(const struct run *run, int error, const char *why)
{
	const char *stop = *why && why[strlen(why) - 1] == '.' ? "" : ".";

	if (error == -EINTR) {
		say("interrupted");
		return;
	}
	if (!run->command[0])
		say("A run failed: %s%s", why, stop);
	else
		say("A run failed: %s%s Run it by hand to see more:\n  %s\nIts last output:\n%s",
		    why, stop, run->command, run->tail[0] ? run->tail : "(none)");
}
