/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * onecopy-demo: runs a few unmodified MPI programs under Open MPI and under MPICH, without and with
 * onecopy, in turn, verifies each run and says what changed and what onecopy served.
 *
 *   main.c     command line, what is needed
 *   round.c    the rounds of a case: a program under an MPI
 *   mpi.c      the MPIs: their launchers, what can run under them
 *   run.c      one run: its files, its end in words
 *   program.c  the programs: their commands, how their results are read
 *   hpcc.c     HPC Challenge's input and its own checks
 *   stats.c    what onecopy says it served
 *   report.c   table and JSON
 *
 * Times are seconds in double. Functions return 0, or -1 after having printed a sentence that says
 * what went wrong (who finds an error prints it).
 */
#ifndef OC_DEMO_H
#define OC_DEMO_H

#include <jansson.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "lab/harness/child.h"
#include "lab/harness/host.h"

#define DEMO_METRICS_MAX 8
#define DEMO_ROUNDS_MAX 99
#define DEMO_RANKS_MAX 256
#define DEMO_PROGRAMS_MAX 8

enum demo_side {
	DEMO_WITHOUT,
	DEMO_WITH,
	DEMO_SIDES,
};

enum demo_mpi_index {
	DEMO_OPENMPI,
	DEMO_MPICH,
	DEMO_MPIS,
};

struct demo_options {
	const char *with; /* command put before mpirun, "--stats-json FILE" is appended */
	const char *mpirun[DEMO_MPIS]; /* names or paths */
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

/* One run of one program. */
struct demo_result {
	double wall_s; /* of the whole command, mpirun's start included */
	double values[DEMO_METRICS_MAX];
	char checksum[32]; /* of the result, equal in all runs; empty if the program has none */
	json_t *stats;	   /* onecopy's statistics, NULL without onecopy; owned */
};

/* A run's files, inside the scratch folder. */
struct demo_files {
	char folder[PATH_MAX];
	char out[PATH_MAX];
	char err[PATH_MAX];
	char stats[PATH_MAX];
	char hpcc_in[PATH_MAX];
	char hpcc_out[PATH_MAX];
};

struct demo_mpi {
	const char *name;   /* "Open MPI" */
	const char *option; /* "openmpi", as --mpi and --json have it */
	const char *folder; /* of its programs, in options.programs */
	const char *says;   /* what its launcher's --version has in it */
	/* Options that bind ranks: a core for each, a hardware thread for each, more than CPUs. */
	const char *cores, *threads, *shared;
};

/* A program under an MPI. */
struct demo_case {
	const struct demo_program *program;
	int mpi;
	char skipped[256];	     /* why it is not run; "" if it is */
	struct demo_result *results; /* [side * rounds + round]; NULL if it is not run */
};

struct demo {
	struct demo_options opt;
	struct host host;
	struct demo_files files;
	char version[DEMO_MPIS][128]; /* "" for an MPI that is not used */
	struct demo_case cases[DEMO_MPIS * DEMO_PROGRAMS_MAX];
	int num_cases;
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

extern const struct demo_program *const demo_programs[];
extern const size_t demo_num_programs;
extern const struct demo_mpi demo_mpis[DEMO_MPIS];

/* mpi.c */
/* Asks the launchers for their versions and lists the cases, also those that will not be run. */
void demo_cases_list(struct demo *demo);
/* Adds the launcher and its options. */
int demo_mpi_launch(const struct demo *demo, int mpi, struct child_args *args);

/* program.c */
/* Path that must exist before the first run, in a static buffer, and what helps if it does not. */
const char *demo_program_path(const struct demo *demo, const struct demo_program *program, int mpi);
const char *demo_program_remedy(const struct demo_program *program);
/* Adds what follows mpirun's own options. */
int demo_program_command(const struct demo *demo, const struct demo_program *program, int mpi,
			 struct child_args *args);
/*
 * Reads and judges the output of a run that exited with 0: fills values and checksum, or prints
 * what is not right.
 */
int demo_program_read(const struct demo *demo, const struct demo_program *program,
		      struct demo_result *result);

/* round.c: all runs of a case. */
int demo_case_run(const struct demo *demo, struct demo_case *one);

/* run.c */
/* As child_args_add_words, with a sentence where a shell would not split it. */
int demo_words(struct child_args *args, const char *words);
void demo_run_setup(void);
int demo_run(const struct demo *demo, struct child_args *args, double *wall_s);
/* The end of what a run said. */
void demo_tail(const struct demo *demo, const struct child_args *args);

/* Whole text of a file, to be freed; NULL (errno set, nothing printed) if it cannot be read. */
char *demo_read_text(const char *path);

/* hpcc.c */
int demo_hpcc_prepare(const struct demo *demo);
int demo_hpcc_read(const struct demo *demo, struct demo_result *result);

/* stats.c */
int demo_stats_read(const struct demo *demo, struct demo_result *result);
void demo_stats_print(const struct demo_case *one, json_t *stats);

/* report.c */
void demo_report_head(const struct demo *demo);
void demo_report_table(const struct demo *demo);
int demo_report_json(const struct demo *demo);

#endif
