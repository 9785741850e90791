// SPDX-License-Identifier: BSD-3-Clause
/* Runs the benchmark in its configurations, taking turns, and gathers the medians. */
#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "compare.h"

struct progress {
	bool shown;
	double start_s;
	long done;
	long total;
};

static double now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* One line that rewrites itself; nothing where no person watches. */
static void progress_show(const struct progress *p, const struct compare *compare, long round,
			  int ranks, enum config config)
{
	double elapsed = now_s() - p->start_s;
	long left = p->done ? (long)(elapsed / (double)p->done * (double)(p->total - p->done)) : 0;

	if (!p->shown) {
		return;
	}
	fprintf(stderr, "\r\033[Kround %ld of %ld, %d ranks, %s: %ld:%02ld elapsed", round + 1,
		compare->options.runs, ranks, config_name(config), (long)elapsed / 60,
		(long)elapsed % 60);
	if (p->done) {
		fprintf(stderr, ", about %ld:%02ld left", left / 60, left % 60);
	}
	fflush(stderr);
}

static void progress_clear(const struct progress *p)
{
	if (p->shown) {
		fprintf(stderr, "\r\033[K");
	}
}

static void add_lists(const struct compare_options *o, struct child_args *args)
{
	char text[TEXT_MAX_SIZES * TEXT_SIZE_CHARS];
	size_t used = 0;
	int i;

	for (i = 0; i < o->collectives.n; i++) {
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s", i ? "," : "",
					 oci_collective_name(o->collectives.at[i]));
	}
	child_args_add(args, "--collectives");
	child_args_add(args, text);
	for (used = 0, i = 0; i < o->sizes.n; i++) {
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%zu", i ? "," : "",
					 o->sizes.bytes[i]);
	}
	child_args_add(args, "--sizes");
	child_args_add(args, text);
}

/* The command of one run. Returns 0, or -EINVAL after saying which option cannot be read. */
static int build_command(const struct compare *compare, int ranks_index, enum config config,
			 const char *json, struct child_args *args)
{
	const struct compare_options *o = &compare->options;
	const struct compare_mpi *mpi = compare_mpi(compare, config);
	char folder[COMPARE_PATH_CHARS - 32], program[COMPARE_PATH_CHARS];

	bool ours = config == CONFIG_ONECOPY || config == CONFIG_HEAP;
	int err = ours ? child_args_add_words(args, o->with) : 0;

	if (config == CONFIG_HEAP && !err) {
		child_args_add(args, "--shared-heap");
	}
	if (err || child_args_add_words(args, mpi == o->mpi ? o->mpirun : mpi->mpirun)) {
		fprintf(stderr,
			"oc_bench_compare: The command in --with or --mpirun cannot be split "
			"into words; check its quotes and variables.\n");
		return -EINVAL;
	}
	child_args_add(args, "-n");
	child_args_add_long(args, o->ranks[ranks_index]);
	if (compare_oversubscribed(compare, ranks_index)) {
		child_args_add_words(args, mpi->unbound);
	} else {
		child_args_add_words(args, mpi->bound);
	}
	if (o->program && mpi == o->mpi) {
		child_args_add(args, o->program);
	} else {
		host_program_folder(folder, sizeof(folder));
		snprintf(program, sizeof(program), "%s/%s", folder, mpi->program);
		child_args_add(args, program);
	}
	add_lists(o, args);
	if (o->mode != BUFFERS_ROTATED) {
		child_args_add(args, o->mode == BUFFERS_CACHED ? "--cached" : "--cold");
	}
	if (!o->check) {
		child_args_add(args, "--no-check");
	}
	if (config == CONFIG_LIMIT) {
		child_args_add(args, "--memcpy");
	}
	if (o->iterations) {
		child_args_add(args, "--iterations");
		child_args_add_long(args, o->iterations);
	}
	if (o->token && !compare_oversubscribed(compare, ranks_index)) {
		child_args_add(args, "--token-ns");
		child_args_add(args, o->token);
	}
	child_args_add(args, "--json");
	child_args_add(args, json);
	return 0;
}

static void explain_failure(const struct child_args *args, const struct child_result *result,
			    long timeout_s, int err)
{
	char why[128];

	if (err == -EINTR) {
		fprintf(stderr, "oc_bench_compare: Interrupted; the run in progress was ended.\n");
		return;
	}
	if (result->timed_out) {
		snprintf(why, sizeof(why), "did not end within %ld s (--timeout) and was killed",
			 timeout_s);
	} else if (err != -ECHILD) {
		snprintf(why, sizeof(why), "could not be started (%s)", strerror(-err));
	} else if (WIFSIGNALED(result->status)) {
		snprintf(why, sizeof(why), "was ended by signal %d (%s)", WTERMSIG(result->status),
			 strsignal(WTERMSIG(result->status)));
	} else {
		snprintf(why, sizeof(why), "failed with exit status %d",
			 WEXITSTATUS(result->status));
	}
	fprintf(stderr,
		"oc_bench_compare: A run %s. Run it by hand to see more:\n  %s\nIts last output:\n%s\n",
		why, child_args_text(args), result->tail[0] ? result->tail : "(none)");
}

/* One cell in a run's JSON, or NULL. */
static const json_t *find_cell(const json_t *cells, const struct compare_cell *wanted)
{
	const json_t *cell;
	size_t i;

	json_array_foreach(cells, i, cell)
	{
		const char *name = json_string_value(json_object_get(cell, "collective"));

		if (name && strcmp(name, oci_collective_name(wanted->collective)) == 0 &&
		    json_integer_value(json_object_get(cell, "bytes")) ==
			    (json_int_t)wanted->bytes) {
			return cell;
		}
	}
	return NULL;
}

static void widen(struct range *range, double value)
{
	range->low = range->high == 0 || value < range->low ? value : range->low;
	range->high = value > range->high ? value : range->high;
}

/* Take a run's quantiles from its file into round @round. */
static int read_run(struct compare *compare, int ranks_index, enum config config, long round,
		    const char *path)
{
	static const char *const keys[QUANTILE_COUNT] = {
		[QUANTILE_50] = "median_us",
		[QUANTILE_10] = "p10_us",
		[QUANTILE_90] = "p90_us",
	};
	json_error_t where;
	json_t *root = json_load_file(path, 0, &where);
	const char *mpi = json_string_value(json_object_get(root, "mpi"));
	int i, q, err = 0;

	if (!root) {
		fprintf(stderr,
			"oc_bench_compare: A run left no readable results in '%s': %s. Was "
			"the disk full?\n",
			path, where.text);
		return -EIO;
	}
	snprintf(compare->mpi[config == CONFIG_OTHER], sizeof(compare->mpi[0]), "%s",
		 mpi ? mpi : "unknown");
	for (i = 0; i < compare->cells_n && !err; i++) {
		const json_t *cell = find_cell(json_object_get(root, "cells"), &compare->cells[i]);

		for (q = 0; q < QUANTILE_COUNT; q++) {
			compare_quantile(compare, (enum quantile)q, ranks_index, config, i)[round] =
				json_number_value(json_object_get(cell, keys[q]));
		}
		widen(&compare->token_ns[ranks_index],
		      json_number_value(json_object_get(cell, "token_ns")));
		if (compare_us(compare, ranks_index, config, i)[round] <= 0) {
			fprintf(stderr,
				"oc_bench_compare: The results of a run lack %s of %zu bytes; is "
				"--program another version than this?\n",
				oci_collective_name(compare->cells[i].collective),
				compare->cells[i].bytes);
			err = -EBADMSG;
		}
	}
	json_decref(root);
	return err;
}

static long long sum_calls(const json_t *rows)
{
	long long calls = 0;
	const json_t *row;
	size_t i;

	json_array_foreach(rows, i, row)
	{
		calls += json_integer_value(json_object_get(row, "calls"));
	}
	return calls;
}

/* Add up and remove the counters that the ranks left. Returns the number of files. */
static int take_counters(const char *folder, struct compare_service *service)
{
	DIR *stream = opendir(folder);
	struct dirent *entry;
	int files = 0;

	while (stream && (entry = readdir(stream))) {
		char path[COMPARE_PATH_CHARS + sizeof(entry->d_name)];
		json_t *root;

		if (entry->d_name[0] == '.') {
			continue;
		}
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		root = json_load_file(path, 0, NULL);
		files += root != NULL;
		service->served += sum_calls(json_object_get(root, "collectives"));
		service->handed_back += sum_calls(json_object_get(root, "handed_back"));
		json_decref(root);
		unlink(path);
	}
	if (stream) {
		closedir(stream);
	}
	rmdir(folder);
	return files;
}

/*
 * A run that onecopy did not take part in compares stock with stock. Its counters tell, however it
 * was loaded; only a command of the user's may do without them.
 */
static int verify_service(struct compare *compare, int ranks_index)
{
	const char *with = compare->options.with;
	struct compare_service run = { .served = 0 };
	int files = take_counters(compare->stats, &run);

	compare->service[ranks_index].served += run.served;
	compare->service[ranks_index].handed_back += run.handed_back;
	if (run.served > 0) {
		return 0;
	}
	if (files == 0 && compare->options.with_given) {
		if (!compare->unverified) {
			fprintf(stderr,
				"oc_bench_compare: '%s' (--with) left no counters in "
				"ONECOPY_STATS_DIR, so it is not verified that onecopy served "
				"anything.\n",
				with);
		}
		compare->unverified = true;
		return 0;
	}
	fprintf(stderr,
		"oc_bench_compare: onecopy served no call in a run under '%s' (%lld were handed "
		"back to the MPI), so there is nothing to compare. See '%s --stats mpirun -n 2 "
		"PROGRAM' and 'onecopy info' for the reason.\n",
		with, run.handed_back, with);
	return -ENOTSUP;
}

/* As child_run; the onecopy runs leave their counters in compare->stats. */
static int run_child(const struct compare *compare, enum config config,
		     const struct child_args *args, struct child_result *result)
{
	struct compare_service left_over = { .served = 0 };
	int err;

	if (config != CONFIG_ONECOPY && config != CONFIG_HEAP) {
		return child_run(args, compare->options.timeout_s, result);
	}
	take_counters(compare->stats, &left_over);
	if (mkdir(compare->stats, 0700)) {
		return -errno;
	}
	setenv("ONECOPY_STATS_DIR", compare->stats, 1);
	err = child_run(args, compare->options.timeout_s, result);
	unsetenv("ONECOPY_STATS_DIR");
	if (err) {
		take_counters(compare->stats, &left_over);
	}
	return err;
}

static int run_once(struct compare *compare, int ranks_index, enum config config, long round,
		    const struct progress *progress)
{
	char path[COMPARE_PATH_CHARS + 16];
	struct child_args args = { .n = 0 };
	struct child_result result;
	int err;

	snprintf(path, sizeof(path), "%s/.run.json", compare->out);
	err = build_command(compare, ranks_index, config, path, &args);
	if (err) {
		goto out;
	}
	if (!compare->commands[ranks_index][config]) {
		compare->commands[ranks_index][config] = strdup(child_args_text(&args));
	}
	/* A run that dies early must not be taken for the one before. */
	unlink(path);
	err = run_child(compare, config, &args, &result);
	if (err) {
		progress_clear(progress);
		explain_failure(&args, &result, compare->options.timeout_s, err);
		goto out;
	}
	err = read_run(compare, ranks_index, config, round, path);
	if (!err && (config == CONFIG_ONECOPY || config == CONFIG_HEAP)) {
		progress_clear(progress);
		err = verify_service(compare, ranks_index);
	}
out:
	unlink(path);
	child_args_destroy(&args);
	return err;
}

int compare_run(struct compare *compare)
{
	const struct compare_options *o = &compare->options;
	enum config configs[CONFIG_COUNT];
	int n = 0;
	struct progress progress = {
		.shown = isatty(STDERR_FILENO),
		.start_s = now_s(),
	};
	int i, turn, err = 0;
	long round;

	for (i = 0; i < CONFIG_COUNT; i++) {
		if (compare_has(compare, (enum config)i)) {
			configs[n++] = (enum config)i;
		}
	}
	progress.total = o->runs * o->ranks_n * n;

	for (round = 0; round < o->runs && !err; round++) {
		for (i = 0; i < o->ranks_n && !err; i++) {
			for (turn = 0; turn < n && !err; turn++) {
				/* Rotated, so that none is always first, or always after the same.
				 */
				enum config config = configs[(turn + round) % n];

				progress_show(&progress, compare, round, o->ranks[i], config);
				err = run_once(compare, i, config, round, &progress);
				progress.done++;
			}
		}
		compare->rounds += !err;
	}
	progress_clear(&progress);
	return err;
}
