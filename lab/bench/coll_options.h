/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of onecopy-collectives. */
#ifndef BENCH_COLL_OPTIONS_H
#define BENCH_COLL_OPTIONS_H

#include <stdbool.h>

#include "buffers.h"
#include "collective.h"
#include "lab/harness/options.h"
#include "ways.h"

struct coll_options {
	struct collective_list collectives;
	struct size_list sizes;
	long iterations; /* 0: by size */
	long nodes;
	bool ways[BENCH_WAYS];
	struct bench_cells cells;
	bool overlap;
	double cell_seconds;
	enum buffer_mode mode;
	bool no_check;
	bool tolerant[BENCH_WAYS]; /* wrong bytes do not end the job */
	bool spare;		   /* with `overlap`: odd ranks sleep instead of computing */
	bool memcpy;		   /* of the bytes that the collective has to move, instead of it */
};

/* Ends the program where they are wrong, and says why. */
void coll_options_parse(int argc, char **argv, struct coll_options *options);

/* Timed calls of a cell: as asked, or many for small messages and fewer for large ones. */
long coll_options_iterations(const struct coll_options *options, const struct bench_way *way,
			     size_t bytes);

/* The most that coll_options_iterations can return. */
long coll_options_max_iterations(const struct coll_options *options);

#endif
