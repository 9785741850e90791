// SPDX-License-Identifier: BSD-3-Clause
/* The results for programs: every median of every run, and what the tables show. */
#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "compare.h"

static json_t *estimate_to_json(const struct stats_estimate *e)
{
	return json_pack("{s:f, s:f, s:f, s:f}", "median", e->median, "low", e->low, "high",
			 e->high, "coverage", e->coverage);
}

static json_t *group_to_json(const struct group_summary *group)
{
	if (group->cells == 0) {
		return json_null();
	}
	return json_pack("{s:i, s:o, s:o}", "cells", group->cells, "stock_vs_onecopy",
			 estimate_to_json(&group->ratio), "stock_vs_stock",
			 estimate_to_json(&group->control));
}

/* One cell's values, one a round, in the order of the rounds. */
static json_t *runs_to_json(const struct compare *compare, enum quantile quantile, int ranks_index,
			    enum config config, int cell)
{
	const double *us = compare_quantile(compare, quantile, ranks_index, config, cell);
	json_t *list = json_array();
	long round;

	for (round = 0; round < compare->rounds; round++) {
		json_array_append_new(list, json_real(us[round]));
	}
	return list;
}

static json_t *configs_to_json(const struct compare *compare, enum quantile quantile,
			       int ranks_index, int cell)
{
	json_t *configs = json_object();
	int i;

	for (i = 0; i < CONFIG_COUNT; i++) {
		enum config config = (enum config)i;

		if (compare_has(compare, config)) {
			json_object_set_new(
				configs, config_name(config),
				runs_to_json(compare, quantile, ranks_index, config, cell));
		}
	}
	return configs;
}

static json_t *cell_to_json(const struct compare *compare, const struct ranks_summary *s,
			    int ranks_index, int cell)
{
	const struct compare_cell *c = &compare->cells[cell];
	const struct cell_summary *summary = &s->cells[cell];

	return json_pack("{s:s, s:I, s:s, s:f, s:f, s:o, s:o, s:o, s:b, s:o, s:o, s:o}",
			 "collective", oci_collective_name(c->collective), "bytes",
			 (json_int_t)c->bytes, "stock", compare_mpi(compare, summary->stock)->name,
			 "stock_us", summary->stock_us, "onecopy_us", summary->onecopy_us,
			 "memcpy_us",
			 summary->limit_us > 0 ? json_real(summary->limit_us) : json_null(),
			 "stock_vs_onecopy", estimate_to_json(&summary->ratio), "stock_vs_stock",
			 estimate_to_json(&summary->control), "lost", summary->lost,
			 "run_medians_us", configs_to_json(compare, QUANTILE_50, ranks_index, cell),
			 "run_p10_us", configs_to_json(compare, QUANTILE_10, ranks_index, cell),
			 "run_p90_us", configs_to_json(compare, QUANTILE_90, ranks_index, cell));
}

static json_t *ranks_to_json(const struct compare *compare, const struct ranks_summary *s,
			     int ranks_index)
{
	const struct compare_service *service = &compare->service[ranks_index];
	const struct range *token = &compare->token_ns[ranks_index];
	json_t *cells = json_array(), *commands = json_object();
	int i;

	for (i = 0; i < compare->cells_n; i++) {
		json_array_append_new(cells, cell_to_json(compare, s, ranks_index, i));
	}
	for (i = 0; i < CONFIG_COUNT; i++) {
		if (!compare_has(compare, (enum config)i)) {
			continue;
		}
		json_object_set_new(commands, config_name((enum config)i),
				    json_string(compare->commands[ranks_index][i]));
	}
	return json_pack(
		"{s:s, s:i, s:b, s:f, s:i, s:[f, f], s:o, s:o, s:o, s:o, s:{s:I, s:I}, s:o}",
		"configuration", config_name(s->subject), "ranks", s->ranks, "oversubscribed",
		s->oversubscribed, "floor", s->floor, "lost", s->lost, "token_ns", token->low,
		token->high, "geomean_all", group_to_json(&s->all), "geomean_64KiB_and_more",
		group_to_json(&s->large), "barrier", group_to_json(&s->barrier), "commands",
		commands, "onecopy_runs", "calls_served", (json_int_t)service->served,
		"calls_handed_back", (json_int_t)service->handed_back, "cells", cells);
}

static json_t *host_to_json(const struct host *host)
{
	return json_pack("{s:s, s:s, s:s, s:i, s:s}", "name", host->name, "cpu", host->cpu,
			 "kernel", host->kernel, "cores", host->cores, "transparent_hugepage",
			 host->huge_pages);
}

static json_t *options_to_json(const struct compare *compare)
{
	const struct compare_options *o = &compare->options;

	return json_pack("{s:I, s:s, s:b, s:I, s:s*, s:s, s:s, s:s, s:I}", "runs",
			 (json_int_t)o->runs, "buffers", buffer_mode_name(o->mode), "checked",
			 o->check, "iterations", (json_int_t)o->iterations, "token_ns", o->token,
			 "with", o->with, "mpi", o->mpi->name, "mpirun", o->mpirun, "timeout_s",
			 (json_int_t)o->timeout_s);
}

int compare_write_json(const struct compare *compare, const struct ranks_summary *summaries,
		       const char *path)
{
	const struct host *host = &compare->host;
	json_t *results = json_array(), *root;
	int i, failed;

	for (i = 0; i < compare_summaries(compare); i++) {
		json_array_append_new(results, ranks_to_json(compare, &summaries[i],
							     i % compare->options.ranks_n));
	}
	root = json_pack("{s:s, s:s, s:s, s:b, s:o, s:s, s:o, s:b, s:I, s:o}", "program",
			 "oc_bench_compare", "date", host->date, "commit", host->commit, "dirty",
			 host->dirty, "host", host_to_json(host), "mpi", compare->mpi[0], "options",
			 options_to_json(compare), "service_verified", !compare->unverified,
			 "complete_rounds", (json_int_t)compare->rounds, "results", results);
	if (!root) {
		fprintf(stderr, "oc_bench_compare: Out of memory while writing the results.\n");
		return -ENOMEM;
	}
	failed = json_dump_file(root, path, JSON_INDENT(1) | JSON_REAL_PRECISION(7));
	json_decref(root);
	if (failed) {
		fprintf(stderr,
			"oc_bench_compare: The results could not be written to '%s': %s. "
			"Choose a writable place with --json or --out.\n",
			path, strerror(errno));
		return -EIO;
	}
	return 0;
}
