/* SPDX-License-Identifier: BSD-3-Clause */
/* Times of algorithms on this machine, by ranks of our own: no MPI is needed. */
#ifndef ONECOPY_MEASURE_H
#define ONECOPY_MEASURE_H

#include "lab/inspect/inspect.h"
#include "predict.h"

#include <onecopy/collectives.h>

struct measure {
	enum oc_collective collective;
	uint32_t ranks;
	size_t bytes;
	bool mapped;   /* buffers are of oc_alloc(), which peers map */
	double span_s; /* calls of each algorithm take about so long; 0: 0.2 */
	unsigned int count;
	const char *const *algorithms; /* [count] "knomial:4" */
	double *seconds; /* [count]: median over calls of the slowest rank; negative: it failed */
};

/* Does a measurement know how to call it? The v-variants and Reduce_scatter need tables. */
int measure_can(enum oc_collective collective);
/* Sizes that cannot be called end in usage(): no bytes, or a sum of no whole numbers of so many. */
void measure_check_sizes(enum oc_collective collective, const struct size_list *sizes,
			 size_t number_bytes);

/* The sentence for that, without its full stop. */
void measure_no_room(double needed, double left, uint32_t ranks, char *error, size_t n);
/* 0, or -ENOMEM with a sentence in error[0..n) where memory lacks for all ranks' buffers. */
int measure_fits(const struct measure *m, char *error, size_t n);

/*
 * Forks the ranks, each bound to a CPU of its own where there are enough. 0, or a negative errno
 * with a sentence in error[0..n).
 */
int measure_run(struct measure *m, char *error, size_t n);

#endif
