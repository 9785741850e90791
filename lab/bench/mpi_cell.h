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
	struct shm_barrier barrier; /* of the node's ranks */
	int rank;
	MPI_Comm leaders; /* of several nodes, on each one's first rank; else MPI_COMM_NULL */
	int nodes;
	MPI_Comm comm;	/* of the way that is measured */
	uint64_t calls; /* of the whole program: the seed, so that no two calls send the same */
};

/* The cell being measured, as this rank has it. */
struct cell_run {
	struct collective_call call;
	const struct bench_way *way;
	bool checked;  /* bytes are verified in some of the calls */
	bool tolerant; /* and wrong ones leave it without a time, instead of ending the job */
	struct mpi_call mpi;
	struct buffers send;
	struct buffers recv;
	double *times; /* this rank's, which all can read */
};

/* Measure a cell on all ranks; rank 0 prints it, and the same of `shorter`, a way of fewer first
 * calls, unless that is NULL. */
void run_cell(struct bench *b, struct bench_cell cell, const struct bench_way *shorter);
/* The same with --overlap. */
void run_overlap(struct bench *b, enum oc_collective collective, size_t bytes);

/* Say what was wrong with a call, and make every rank end with status 1, unless the cell tolerates
 * it. absent: the rank that an MPI_Barrier did not wait for, or -1. */
void cell_verify(struct bench *b, const struct cell_run *run, const void *recv, int absent);

/* overlap.c: the same cell, and how many samples of a rank it notes. */
void overlap_measure(struct bench *b, struct cell_run *cell);
size_t overlap_samples(void);

/* Say what failed, with -@err's text, and end the job. */
void die(const struct bench *b, const char *what, int err);

#endif
