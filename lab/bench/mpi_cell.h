/* SPDX-License-Identifier: BSD-3-Clause */
/* onecopy-collectives's state on a rank, and the measurement of one cell: mpi_coll.c has the rest.
 */
#ifndef BENCH_MPI_CELL_H
#define BENCH_MPI_CELL_H

#include "coll_options.h"
#include "lab/harness/shm_barrier.h"
#include "mpi_call.h"

struct bench {
	struct coll_options options;
	int ranks;
	struct shm_barrier barrier;
	int rank;
	double tokens_ns[OC_COLLECTIVES * SIZES_MOST]; /* on rank 0: a cell's median */
	size_t cells;
	uint64_t calls; /* of the whole program: the seed, so that no two calls send the same */
};

/* As onecopy-collectives takes calls: in so many blocks. */
enum { BLOCKS_PER_CELL = 40 };

/* The cell being measured, as this rank has it. */
struct cell_run {
	struct collective_call call;
	struct mpi_call mpi;
	struct buffers send;
	struct buffers recv;
	double *times; /* this rank's, which all can read */
	/* On rank 0: of the blocks that count, two for each, and of all. */
	double tokens_ns[2 * (BLOCKS_PER_CELL + 1)];
	size_t tokens;
	struct range seen_ns;
};

/* Measure one cell on all ranks; rank 0 prints it, and keeps the median of its tokens. */
void run_cell(struct bench *b, enum oc_collective collective, size_t bytes);

/* Say what was wrong with a call, and make every rank end with status 1. absent: the rank that an
 * MPI_Barrier did not wait for, or -1. */
void cell_verify(struct bench *b, const struct collective_call *call, const void *recv, int absent);

/* overlap.c: the same cell, and how many samples of a rank it notes. */
void overlap_measure(struct bench *b, struct cell_run *cell);
size_t overlap_samples(void);

/* Say what failed, with -@err's text, and end the job. */
void die(const struct bench *b, const char *what, int err);

#endif
