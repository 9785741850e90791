/* SPDX-License-Identifier: BSD-3-Clause */
/* oc_bench_coll's state on a rank, and the measurement of one cell: mpi_coll.c has the rest. */
#ifndef BENCH_MPI_CELL_H
#define BENCH_MPI_CELL_H

#include "coll_options.h"
#include "lab/harness/shm_barrier.h"

struct bench {
	struct coll_options options;
	int ranks;
	struct shm_barrier barrier;
	int rank;
	double tokens_ns[OC_COLLECTIVES * SIZES_MOST]; /* on rank 0: a cell's median */
	size_t cells;
	uint64_t calls; /* of the whole program: the seed, so that no two calls send the same */
};

/* Measure one cell on all ranks; rank 0 prints it, and keeps the median of its tokens. */
void run_cell(struct bench *b, enum oc_collective collective, size_t bytes);

/* Say what failed, with -@err's text, and end the job. */
void die(const struct bench *b, const char *what, int err);

#endif
