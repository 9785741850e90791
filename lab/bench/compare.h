/* SPDX-License-Identifier: BSD-3-Clause */
/* oc_bench_compare's options. A ratio is stock/onecopy, above 1 when onecopy is faster. */
#ifndef BENCH_COMPARE_H
#define BENCH_COMPARE_H

#include <limits.h>
#include <stdbool.h>

#include "buffers.h"
#include "collective.h"
#include "lab/experiment/mpi_found.h"
#include "lab/harness/options.h"

enum { COMPARE_MAX_RANKS = 8, COMPARE_WAYS = 6 };

/* A way in which users measure. */
struct compare_way {
	const char *name, *arguments; /* of the benchmark */
	const char *about;	      /* what a value is */
	bool cached;		      /* the same buffers each time */
	bool keeps;		      /* a request of one collective: stock is not verified */
};
extern const struct compare_way compare_ways[COMPARE_WAYS];

struct compare_options {
	enum launcher mpi; /* the first, or the only one */
	bool mpis[LAUNCHERS];
	bool ways[COMPARE_WAYS];
	size_t ranks[COMPARE_MAX_RANKS];
	int ranks_n;
	long runs, timeout_s;
	long iterations; /* 0: as the benchmark chooses */
	struct collective_list collectives;
	struct size_list sizes;
	enum buffer_mode mode;
	const char *token; /* --token-ns, passed on; NULL: all calls count */
	bool no_check, quick, no_plots, gate;
	bool everything;		 /* with a quarter of an hour for what is timed */
	bool shared_heap, better, limit; /* what else takes turns */
	const char *with;		 /* NULL: this build's onecopy run */
	const char *mpirun;		 /* NULL: what is on PATH */
	const char *program;		 /* NULL: beside this one */
	const char *json, *out;		 /* NULL: results.json in @out; bench-out/<date> */
};

/* Ends the program where they are wrong. */
void compare_options_parse(int argc, char **argv, struct compare_options *options);

#endif
