/* SPDX-License-Identifier: BSD-3-Clause */
/* The results of oc_bench_coll: a table for people, JSON for programs. */
#ifndef BENCH_COLL_RESULT_H
#define BENCH_COLL_RESULT_H

#include <stddef.h>

#include "coll_options.h"

struct coll_cell {
	enum oc_collective collective;
	size_t bytes;
	size_t iterations;
	double median_us;
	double p10_us;
	double p90_us;
	double token_ns;    /* median of the tokens around the calls, 0 if ranks outnumber CPUs */
	double *samples_us; /* in the order of the calls; owned by whoever filled the cell, or NULL
			     */
};

struct coll_job {
	const char *mpi; /* the library's own name and version, one line */
	int ranks;
	bool oversubscribed;
};

/* Median and quantiles of @n slowest-rank times, left sorted in @us. */
void coll_cell_summarise(struct coll_cell *cell, double *us, size_t n);

void coll_result_print_header(const struct coll_options *options, const struct coll_job *job);
void coll_result_print_cell(const struct coll_options *options, const struct coll_cell *cell);

/* Returns 0, or -errno after saying why on stderr. */
int coll_result_write_json(const struct coll_options *options, const struct coll_job *job,
			   const struct coll_cell *cells, size_t n);

#endif
