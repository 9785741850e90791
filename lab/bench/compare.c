// SPDX-License-Identifier: BSD-3-Clause
/*
 * oc_bench_compare: the same benchmark with and without onecopy, in turns, and what the difference
 * is worth. `make bench` runs it.
 */
#include "compare.h"
#include "lab/harness/descendants.h"
#include "lab/harness/stock_environment.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char *config_name(enum config config)
{
	static const char *const names[CONFIG_COUNT] = {
		[CONFIG_STOCK] = "stock",	[CONFIG_ONECOPY] = "onecopy",
		[CONFIG_CONTROL] = "control",	[CONFIG_HEAP] = "shared heap",
		[CONFIG_OTHER] = "other stock", [CONFIG_LIMIT] = "memcpy",
	};

	return names[config];
}

double *compare_quantile(const struct compare *compare, enum quantile quantile, int ranks_index,
			 enum config config, int cell)
{
	size_t table = (size_t)quantile * (size_t)compare->options.ranks_n;
	size_t row =
		((table + (size_t)ranks_index) * CONFIG_COUNT + config) * (size_t)compare->cells_n;

	return compare->us + (row + (size_t)cell) * (size_t)compare->options.runs;
}

double *compare_us(const struct compare *compare, int ranks_index, enum config config, int cell)
{
	return compare_quantile(compare, QUANTILE_50, ranks_index, config, cell);
}

bool compare_oversubscribed(const struct compare *compare, int ranks_index)
{
	return compare->options.ranks[ranks_index] > compare->host.cores;
}

bool compare_has(const struct compare *compare, enum config config)
{
	switch (config) {
	case CONFIG_HEAP:
		return compare->options.shared_heap;
	case CONFIG_OTHER:
		return compare->options.better;
	case CONFIG_LIMIT:
		return compare->options.limit;
	default:
		return true;
	}
}

const struct compare_mpi *compare_mpi(const struct compare *compare, enum config config)
{
	return config == CONFIG_OTHER ? compare->options.other : compare->options.mpi;
}

static void list_cells(struct compare *compare)
{
	const struct compare_options *o = &compare->options;
	int c, i;

	for (c = 0; c < o->collectives.n; c++) {
		bool barrier = o->collectives.at[c] == OC_BARRIER;

		for (i = 0; i < (barrier ? 1 : o->sizes.n); i++) {
			compare->cells[compare->cells_n++] =
				(struct compare_cell){ o->collectives.at[c],
						       barrier ? 0 : o->sizes.bytes[i] };
		}
	}
}

/* mkdir -p. Returns 0 or -errno. */
static int make_folders(const char *path)
{
	char part[COMPARE_PATH_CHARS];
	struct stat status;
	size_t i;

	for (i = 1; path[i - 1] && i < sizeof(part); i++) {
		if (path[i] == '/' || path[i] == '\0') {
			memcpy(part, path, i);
			part[i] = '\0';
			if (mkdir(part, 0777) && errno != EEXIST) {
				return -errno;
			}
		}
	}
	/* What was there already may be a file. */
	if (stat(path, &status)) {
		return -errno;
	}
	return S_ISDIR(status.st_mode) ? 0 : -ENOTDIR;
}

static int prepare_out(struct compare *compare)
{
	const char *out = compare->options.out;
	char date[32], folder[PATH_MAX], *colon;
	int err;

	snprintf(date, sizeof(date), "%s", compare->host.date);
	/* A colon in a file name troubles make, scp and Windows. */
	while ((colon = strchr(date, ':'))) {
		memmove(colon, colon + 1, strlen(colon));
	}
	if (out) {
		snprintf(compare->out, sizeof(compare->out), "%s", out);
	} else {
		snprintf(compare->out, sizeof(compare->out), "bench-out/%s", date);
	}
	err = make_folders(compare->out);
	if (err) {
		fprintf(stderr,
			"oc_bench_compare: The folder '%s' cannot be made: %s. Choose "
			"another with --out.\n",
			compare->out, strerror(-err));
		return err;
	}
	/* Absolute, as the ranks may start elsewhere; this folder was made a moment ago. */
	snprintf(compare->stats, sizeof(compare->stats), "%.*s/.stats", COMPARE_PATH_CHARS - 16,
		 realpath(compare->out, folder) ? folder : compare->out);
	return 0;
}

/*
 * The stock runs must be stock. If this program itself was started under onecopy, what that left in
 * the environment goes; the onecopy runs get it anew from --with.
 */
static void clean_environment(void)
{
	char dropped[1024];

	if (stock_environment(dropped, sizeof(dropped))) {
		fprintf(stderr,
			"oc_bench_compare: Dropped from the environment, since the stock runs "
			"must be without onecopy: %s. Only --with decides what the onecopy runs "
			"get.\n",
			dropped);
	}
	if (geteuid() == 0) {
		/* mpirun refuses root otherwise; in a container there is often nobody else. */
		setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 0);
		setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 0);
	}
}

/* Better said now than after the first stock run. */
static int check_with(const char *with)
{
	struct child_args args = { .n = 0 };
	int err = 0;

	if (child_args_add_words(&args, with) || args.n == 0) {
		fprintf(stderr, "oc_bench_compare: --with takes a command, as in 'onecopy run'.\n");
		err = -EINVAL;
	} else if (strchr(args.argv[0], '/') && access(args.argv[0], X_OK)) {
		fprintf(stderr,
			"oc_bench_compare: '%s', to run under onecopy, cannot be executed: "
			"%s. Build it with 'make', or name it with --with.\n",
			args.argv[0], strerror(errno));
		err = -ENOENT;
	}
	child_args_destroy(&args);
	return err;
}

/* Better said now than after a quarter of an hour. */
static int check_json(const char *path)
{
	FILE *file = path ? fopen(path, "a") : NULL;

	if (path && !file) {
		fprintf(stderr,
			"oc_bench_compare: '%s' (--json) cannot be written: %s. Choose another "
			"place.\n",
			path, strerror(errno));
		return -errno;
	}
	if (file) {
		fclose(file);
	}
	return 0;
}

static void on_signal(int number)
{
	(void)number;
	child_interrupt();
}

static void print_to_file(const struct compare *compare, const struct ranks_summary *summaries)
{
	char path[COMPARE_PATH_CHARS + 16];
	FILE *file;

	snprintf(path, sizeof(path), "%s/table.txt", compare->out);
	file = fopen(path, "w");
	if (!file) {
		fprintf(stderr, "oc_bench_compare: '%s' cannot be written: %s.\n", path,
			strerror(errno));
		return;
	}
	compare_print(compare, summaries, file);
	fclose(file);
}

/* Tables, files and plots of the rounds that are complete. Returns the exit status. */
static int report(const struct compare *compare)
{
	const struct compare_options *o = &compare->options;
	char path[COMPARE_PATH_CHARS + 16];
	struct ranks_summary *summaries =
		calloc((size_t)compare_summaries(compare), sizeof(*summaries));
	int status = STATUS_FAILED;
	bool plotted;

	if (!summaries || compare_summarise(compare, summaries)) {
		fprintf(stderr, "oc_bench_compare: Out of memory while summing up.\n");
		goto out;
	}
	compare_print(compare, summaries, stdout);
	print_to_file(compare, summaries);
	snprintf(path, sizeof(path), "%s/results.json", compare->out);
	if (compare_write_json(compare, summaries, o->json ? o->json : path)) {
		goto out;
	}
	/* No plots, no harm: the reason was said, and the numbers are there. */
	plotted = o->plots && compare_plot(compare, summaries) == 0;
	printf("\nWritten to %s: table.txt%s%s\n", compare->out, o->json ? "" : ", results.json",
	       plotted ? ", plots" : "");
	status = STATUS_OK;
	if (o->gate && !compare_gate_passes(compare, summaries, stdout)) {
		status = STATUS_GATE;
	}
out:
	free(summaries);
	return status;
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = on_signal };
	static struct compare compare;
	int status, err, i, config;
	size_t values;

	status = compare_options_parse(argc, argv, &compare.options);
	if (status >= 0) {
		return status;
	}
	if (check_with(compare.options.with) || check_json(compare.options.json)) {
		return STATUS_USAGE;
	}
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	clean_environment();
	descendants_adopt();
	host_describe(&compare.host);
	list_cells(&compare);
	values = QUANTILE_COUNT * (size_t)compare.options.ranks_n * CONFIG_COUNT *
		 (size_t)compare.cells_n * (size_t)compare.options.runs;
	compare.us = calloc(values, sizeof(*compare.us));
	if (!compare.us || prepare_out(&compare)) {
		free(compare.us);
		return STATUS_FAILED;
	}
	err = compare_run(&compare);
	/* What was measured before a failure is still worth a table. */
	status = compare.rounds ? report(&compare) : STATUS_FAILED;
	for (i = 0; i < compare.options.ranks_n; i++) {
		for (config = 0; config < CONFIG_COUNT; config++) {
			free(compare.commands[i][config]);
		}
	}
	free(compare.us);
	return err ? STATUS_FAILED : status;
}
