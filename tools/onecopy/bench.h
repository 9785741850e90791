/* SPDX-License-Identifier: BSD-3-Clause */
/* The experiments of `onecopy bench`; lab/experiment runs and shows them. */
#ifndef ONECOPY_BENCH_H
#define ONECOPY_BENCH_H

#include "lab/bench/buffers.h"
#include "lab/bench/collective.h"
#include "lab/bench/ways.h"
#include "lab/experiment/experiment.h"
#include "lab/experiment/run.h"
#include "measure.h"
#include "predict.h"

#include <stdbool.h>

enum { ROUNDS_MOST = 401, BENCH_RANKS_MOST = 8 };

enum bench_what {
	BENCH_ALGORITHMS = 1,
	BENCH_MECHANISMS = 2,
	BENCH_CONTENTION = 4,
	BENCH_MODEL = 8,
	BENCH_ALL = 15, /* without a word; what follows is for those who name it */
	BENCH_P2P = 16,
	BENCH_START = 32,
	BENCH_MESSAGES = 64,
	BENCH_OVERLAP = 128,
	BENCH_COLLECTIVES = 256,
	BENCH_PROGRAMS = 512
};

struct bench_choice {
	unsigned int what; /* of enum bench_what */
	struct collective_list collectives;
	struct size_list sizes;
	uint32_t ranks;
	size_t ranks_at[BENCH_RANKS_MOST]; /* of collectives, which have several; the first is
					      `ranks` */
	int ranks_count;
	long rounds;
	bool quick, every_parameter, touch, mapped, spare;
	bool mpis[LAUNCHERS]; /* of messages, overlap, collectives and programs */
	unsigned int flows;   /* of messages: bits, 0: all but one-sided ones */
	const char *profile;  /* NULL: what jobs go by here */
	const char *json, *out;
	bool no_plots;
	/* Of collectives and programs; the launcher is the first MPI's, of programs Open MPI's. */
	const char *with, *mpirun; /* NULL: this command's run, what is on PATH */
	long timeout_s;		   /* 0: as bench_prepare() has it */
	/* Of programs alone. */
	long seconds;				  /* 0: two minutes, or what six rounds take */
	const char *only, *mpirun_mpich, *mpi4py; /* NULL: all, what is on PATH, none is named */
	bool paper;
	/* Of collectives alone. */
	bool ways[BENCH_WAYS];
	long iterations; /* 0: as the program has it */
	enum buffer_mode mode;
	bool no_check, gate;
	bool everything;			     /* within a quarter of an hour, or: */
	bool night;				     /* in as many hours as it takes */
	bool shared_heap, better, two_copies, limit; /* what else takes turns */
	long nodes;				     /* 0: one; else `mpirun` says where they are */
	const char *program;			     /* NULL: ours */
};

struct bench {
	struct bench_choice options;
	struct results results;
	uint32_t cpus; /* that may be used */
};

/*
 * Each plans figures and steps; what it says of the samples before statistics are made, and behind,
 * is in functions of its own.
 */

/* bench_algorithms.c: algorithms, model */
void bench_algorithms_plan(struct bench *bench);
void bench_algorithms_sum_up(struct bench *bench);

/* bench_copies.c: mechanisms, contention */
void bench_copies_plan(struct bench *bench);
void bench_copies_end(void);

/* bench_p2p.c: p2p, messages */
void bench_p2p_plan(struct bench *bench);
void bench_p2p_sum_up(struct bench *bench);
void bench_messages_plan(struct bench *bench);
/* Is this word the name of one of its flows? Then it is one of those that are named. */
bool bench_take_flow(unsigned int *flows, const char *word);

/* bench_start.c: start */
void bench_start_plan(struct bench *bench);
void bench_start_end(struct bench *bench);
void bench_start_sum_up(struct bench *bench);

/* bench_overlap.c: overlap */
void bench_overlap_plan(struct bench *bench);

/* bench_collectives.c: collectives */
void bench_collectives_plan(struct bench *bench);
void bench_collectives_end(struct bench *bench);
void bench_collectives_sum_up(struct bench *bench);

/* bench_programs.c: programs. The names and MPIs that were given are checked before all else. */
void bench_programs_check(const struct bench_choice *options);
void bench_programs_plan(struct bench *bench);
void bench_programs_sum_up(struct bench *bench);

/* bench_program.c: the programs that are installed beside the command. */

/* Of a collective, over the sizes; a barrier has none. */
struct figure *bench_figure(struct bench *bench, enum oc_collective collective, const char *unit,
			    const char *name);
/* Of a group: subject against stock, within each round, beside stock against itself. */
void bench_against(struct bench *bench, unsigned int group, const char *stock, const char *subject,
		   const char *title);
/* Puts into a run what it lacks of onecopy-NAME[-MPI], this command's `run` and the time that it
 * may take. 0; -ENOENT and why, without a full stop: the program is not there. */
int bench_prepare(struct run *run, const char *name, char *why, size_t n);
/* "--collectives LIST --sizes LIST", for onecopy-collectives: as a stream for more, to be closed.
 */
FILE *bench_arguments(char *text, size_t n, const struct bench_choice *options);
/* Runs onecopy-NAME[-MPI], with this command's `run` where it is under onecopy. If it fails the
 * step is left out from now on, and a note of the figure says why. 0, or -EINTR. */
int bench_run(struct results *results, struct step *step, struct run *run, const char *name,
	      unsigned int round, struct figure *figure);
/* The variant is no longer run: a note says why. */
void bench_leave_out(struct step *step, struct figure *figure, const char *name, const char *why);

#endif
