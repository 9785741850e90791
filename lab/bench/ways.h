/* SPDX-License-Identifier: BSD-3-Clause */
/* The ways in which users measure collectives. */
#ifndef BENCH_WAYS_H
#define BENCH_WAYS_H

#include <stdbool.h>
#include <stddef.h>

#include "collective.h"
#include "lab/harness/options.h"

enum { BENCH_WAYS = 6 };

/* How MPI is called: at once, begun and waited for, as a kept request that is started, or by
 * overlap.c. */
enum mpi_form { FORM_BLOCKING, FORM_NONBLOCKING, FORM_PERSISTENT, FORM_OVERLAP };

struct bench_way {
	const char *name;
	const char *about; /* what a value is */
	enum mpi_form form;
	long first;  /* so many calls, the first of their cell, and nothing before; 0: steady */
	bool osu;    /* MPI_Barrier behind each call, instead of our barrier around it */
	bool cached; /* the same buffers each time, whatever the options say */
};

extern const struct bench_way bench_ways[BENCH_WAYS];

/* "osu,persistent" or "all", into a bool [BENCH_WAYS]; ends the program where it is wrong. */
void bench_take_ways(void *chosen, const char *text);
/* Whether there is more than one among the `n`, so that they have to be told apart. */
bool bench_has_several(const bool *chosen, int n);

/* Some cells of all that the ways, collectives and sizes make. */
struct bench_cells {
	struct bench_cell {
		unsigned int way;
		enum oc_collective collective;
		size_t bytes;
	} * at;
	unsigned int count; /* 0: they are all meant */
};

/* "osu/bcast/64,persistent/barrier/0", into a struct bench_cells; ends the program where it is
 * wrong. */
void bench_take_cells(void *cells, const char *text);
bool bench_has_cell(const struct bench_cells *cells, struct bench_cell cell);

#endif
