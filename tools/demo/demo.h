/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * onecopy-demo: runs a few unmodified MPI programs under Open MPI and under MPICH, without and with
 * onecopy, in turn, verifies each run and says what changed and what onecopy served.
 *
 *   main.c      command line, what can be run, the report; lab/experiment does the rest
 *   runs.c      the runs: commands, results
 *   programs.c  the programs: their commands and metrics
 *   hpcc.c      HPC Challenge's input and its own checks
 */
#ifndef OC_DEMO_H
#define OC_DEMO_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "lab/experiment/run.h"

enum { DEMO_METRICS_MAX = 8, DEMO_ROUNDS_MAX = 99, DEMO_RANKS_MAX = 256, DEMO_CASES_MAX = 16 };

struct demo_options {
	const char *with;	       /* command put before mpirun */
	const char *mpirun[LAUNCHERS]; /* words; NULL: what is on PATH */
	const char *hpcc;	       /* path of the HPC Challenge binary */
	const char *programs; /* folder of the compiled examples; MPICH's are in mpich/ there */
	const char *examples; /* folder with the scripts and hpcc/hpccinf.txt */
	const char *mpi4py;   /* folder with an mpi4py for MPICH, or NULL */
	const char *json;     /* where to write the results, or NULL */
	const char *only;     /* name of the one program to run, or NULL */
	const char *only_mpi; /* name of the one MPI, or NULL */
	int ranks;
	int rounds;
	int timeout_s;
	int asp_size;
};

struct demo_metric {
	const char *id; /* in JSON */
	const char *label;
	bool is_rate; /* more is better */
};

enum demo_kind {
	DEMO_BINARY, /* of ours, built once for each MPI */
	DEMO_SCRIPT, /* Python */
	DEMO_HPCC,   /* Debian's, of Open MPI */
};

struct demo_program {
	const char *name;
	const char *what;
	const char *checks; /* what "verified" means here */
	enum demo_kind kind;
	const char *arguments; /* words; NULL: none */
	/* For our own programs their ids are the names of the numbers in the result. */
	const struct demo_metric *metrics;
	size_t num_metrics;
};

/* A program under an MPI. */
struct demo_case {
	struct demo *demo;
	const struct demo_program *program;
	enum launcher mpi;
	const char *skipped; /* why it is not run; NULL: it is */
	struct figure *figures[DEMO_METRICS_MAX];
	char checksum[32]; /* of the result, the same in all runs */
	json_t *counters;  /* of the last run with onecopy; owned */
};

struct demo {
	struct demo_options opt;
	struct results results;
	char folder[PATH_MAX - 32]; /* where hpcc runs */
	size_t x;		    /* the figures' one place: the ranks */
	enum binding binding;
	struct demo_case cases[DEMO_CASES_MAX];
	int num_cases;
};

extern const struct demo_program *const demo_programs[];
extern const size_t demo_num_programs;

/* runs.c */
const char *demo_side(bool with); /* the series of a side: "with" onecopy, or "without" */
void demo_program_path(const struct demo *demo, const struct demo_case *one, char *path);
/* Its figures, and a run on each side for every round. */
void demo_plan_case(struct demo *demo, struct demo_case *one);

/* hpcc.c: 0, or -1 after saying what is wrong. */
int demo_hpcc_prepare(const struct demo *demo);
/* The metrics of a run that took wall_s. */
int demo_hpcc_read(const struct demo *demo, double wall_s, double *values);

#endif
