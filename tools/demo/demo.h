/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * onecopy-demo: runs a few unmodified MPI programs under Open MPI and under MPICH, without onecopy,
 * with it and with its shared heap, in turn, verifies each run and says what changed.
 *
 *   main.c      command line, what can be run
 *   programs.c  the programs, and what they are run under
 *   runs.c      the runs: commands, results, when there are enough of them
 *   report.c    tables and the verdict
 */
#ifndef OC_DEMO_H
#define OC_DEMO_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "lab/experiment/run.h"

enum {
	DEMO_ROUNDS_MAX = 99,
	DEMO_SECONDS = 120, /* where the user says none */
	DEMO_RANKS_MAX = 256,
	DEMO_PROGRAMS_MAX = 8,
	DEMO_VARIANTS_MAX = 4,
	DEMO_CASES_MAX = LAUNCHERS * DEMO_PROGRAMS_MAX,
};

/* Of a run, in ms: by the program's own clock, and what of it its ranks were in MPI, on average. */
enum demo_metric { DEMO_TOTAL, DEMO_IN_MPI, DEMO_METRICS };

struct demo_options {
	const char *mpirun[LAUNCHERS]; /* words; NULL: what is on PATH */
	const char *mpi4py;	       /* folder with an mpi4py for MPICH, or NULL */
	const char *json, *out;	       /* where to write the results; NULL: nowhere, by date */
	const char *only;	       /* name of the one program to run, or NULL */
	const char *only_mpi;	       /* name of the one MPI, or NULL */
	long ranks, rounds, seconds, timeout_s;
	bool quick, paper;
};

struct demo_program {
	const char *name;
	const char *file;   /* of the program, which calls itself so, too; NULL: its name */
	const char *checks; /* what "verified" means here */
	bool script;	    /* Python */
	const char *arguments, *quick; /* words */
	size_t rank_bytes, rank_rows;  /* of the matrix of asp as in the paper; 0: another one */
};

/* What is compared. One of the variants is demo_stock. */
struct demo_set {
	const struct demo_program *programs;
	const struct variant *variants;
	unsigned int program_count, variant_count;
	bool openmpi_only;
	const char *about; /* lines for the head, or NULL */
};

/* A program under an MPI. */
struct demo_case {
	struct demo *demo;
	const struct demo_program *program;
	enum launcher mpi;
	const char *skipped; /* why it is not run; NULL: it is */
	unsigned int x;	     /* its place in the MPI's figures */
	struct step *steps[DEMO_VARIANTS_MAX];
	char checksum[32]; /* of the result, the same in all runs */
	json_t *counters;  /* of the last run with onecopy; owned */
};

struct demo {
	struct demo_options opt;
	const struct demo_set *set;
	struct results results;
	enum binding binding;
	char build[PATH_MAX], with[PATH_MAX + 64];
	bool warming; /* runs are not counted yet */
	struct demo_case cases[DEMO_CASES_MAX];
	unsigned int case_count;
	/* Of each MPI; NULL: nothing is run under it. */
	struct figure *figures[LAUNCHERS][DEMO_METRICS];
	const char *names[LAUNCHERS][DEMO_PROGRAMS_MAX];
};

/* programs.c */
extern const char demo_stock[];
extern const struct demo_set demo_usual, demo_paper;

/* runs.c */
void demo_program_path(const struct demo *demo, const struct demo_case *one, char *path);
/* Figures, comparisons, and a run of each variant of each case for every round. */
void demo_plan(struct demo *demo);
/* Runs that are not counted: what was built just now is not in memory yet. 0 or -errno */
int demo_warm_up(struct demo *demo);
/* Whether all intervals are narrow; cases whose ones are, are no longer run. */
bool demo_enough(struct results *results);

/* report.c */
/* Statistics, and the verdict as the results' summary. */
void demo_judge(struct demo *demo);
void demo_report(const struct demo *demo, FILE *out);

#endif
