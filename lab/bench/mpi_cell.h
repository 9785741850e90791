/* SPDX-License-Identifier: BSD-3-Clause */
/* oc_bench_coll's state on a rank, and the measurement of one cell: mpi_coll.c has the rest. */
#ifndef BENCH_MPI_CELL_H
#define BENCH_MPI_CELL_H

#include "coll_options.h"
#include "coll_result.h"
#include "lab/harness/shm_barrier.h"

struct bench {
	struct coll_options options;
	struct coll_job job;
	struct shm_barrier barrier;
	int rank;
	uint64_t calls; /* of the whole program: the seed, so that no two calls send the same */
};

/* Measure one cell on all ranks; @cell is filled on rank 0 only. */
void run_cell(struct bench *b, struct coll_cell *cell);

/* Say what failed, with -@err's text, and end the job. */
void die(const struct bench *b, const char *what, int err);

#endif
