// SPDX-License-Identifier: BSD-3-Clause
#include "coll_result.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "lab/harness/stats.h"

void coll_cell_summarise(struct coll_cell *cell, double *us, size_t n)
{
	cell->iterations = n;
	cell->median_us = stats_median(us, n);
	cell->p10_us = stats_quantile(us, n, 0.1);
	cell->p90_us = stats_quantile(us, n, 0.9);
}

void coll_result_print_header(const struct coll_options *options, const struct coll_job *job)
{
	printf("%d ranks%s, %s buffers, %s\n", job->ranks,
	       job->oversubscribed ? " (more than CPUs)" : "", buffer_mode_name(options->mode),
	       options->memcpy ? "memcpy" : job->mpi);
	printf("%-*s %9s %12s %10s %10s %7s %9s\n", collective_list_width(&options->collectives),
	       "collective", "bytes", "median us", "10 %", "90 %", "calls", "token ns");
}

void coll_result_print_cell(const struct coll_options *options, const struct coll_cell *cell)
{
	char size[TEXT_SIZE_CHARS] = "-";

	if (cell->collective != OC_BARRIER) {
		size_format(cell->bytes, size);
	}
	printf("%-*s %9s %12.2f %10.2f %10.2f %7zu %9.0f\n",
	       collective_list_width(&options->collectives), oci_collective_name(cell->collective),
	       size, cell->median_us, cell->p10_us, cell->p90_us, cell->iterations, cell->token_ns);
	/* A cell can take a while; a pipe shows it at once too. */
	fflush(stdout);
}

static json_t *cell_to_json(const struct coll_cell *cell)
{
	json_t *out = json_pack("{s:s, s:I, s:I, s:f, s:f, s:f, s:f}", "collective",
				oci_collective_name(cell->collective), "bytes",
				(json_int_t)cell->bytes, "iterations", (json_int_t)cell->iterations,
				"median_us", cell->median_us, "p10_us", cell->p10_us, "p90_us",
				cell->p90_us, "token_ns", cell->token_ns);
	json_t *samples;
	size_t i;

	if (!out || !cell->samples_us) {
		return out;
	}
	samples = json_array();
	for (i = 0; i < cell->iterations; i++) {
		json_array_append_new(samples, json_real(cell->samples_us[i]));
	}
	json_object_set_new(out, "samples_us", samples);
	return out;
}

int coll_result_write_json(const struct coll_options *options, const struct coll_job *job,
			   const struct coll_cell *cells, size_t n)
{
	json_t *list = json_array(), *root;
	struct utsname host;
	size_t i;
	int failed;

	uname(&host);
	for (i = 0; i < n; i++) {
		json_array_append_new(list, cell_to_json(&cells[i]));
	}
	root = json_pack("{s:s, s:s, s:s, s:s, s:i, s:b, s:s, s:b, s:b, s:i, s:o}", "program",
			 "oc_bench_coll", "host", host.nodename, "kernel", host.release, "mpi",
			 job->mpi, "ranks", job->ranks, "oversubscribed", job->oversubscribed,
			 "buffers", buffer_mode_name(options->mode), "checked", options->check,
			 "memcpy", options->memcpy, "root", (int)options->root, "cells", list);
	if (!root) {
		fprintf(stderr, "oc_bench_coll: Out of memory while writing the results.\n");
		return -ENOMEM;
	}
	if (strcmp(options->json, "-") == 0) {
		failed = json_dumpf(root, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
		putchar('\n');
	} else {
		failed = json_dump_file(root, options->json,
					JSON_INDENT(1) | JSON_REAL_PRECISION(9));
	}
	json_decref(root);
	if (failed) {
		fprintf(stderr,
			"oc_bench_coll: The results could not be written to '%s': %s. Choose "
			"a file in a folder that exists and is writable.\n",
			options->json, strerror(errno));
		return -EIO;
	}
	return 0;
}
