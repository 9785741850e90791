/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * onecopy-demo: runs a few unmodified MPI programs without and with onecopy, in turn, verifies
 * each run and says what changed and what onecopy served.
 *
 *   main.c     command line, the rounds
 *   child.c    one run: start, time limit, captured output
 *   program.c  the programs: their commands, how their results are read
 *   hpcc.c     HPC Challenge's input and its own checks
 *   stats.c    what onecopy says it served
 *   host.c     the machine, in words and CPUs
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

#define DEMO_METRICS_MAX 8
#define DEMO_ROUNDS_MAX 99
#define DEMO_RANKS_MAX 256

enum demo_side {
	DEMO_WITHOUT,
	DEMO_WITH,
	DEMO_SIDES,
};

struct demo_options {
	const char *with;     /* command put before mpirun, "--stats-json FILE" is appended */
	const char *mpirun;   /* name or path */
	const char *hpcc;     /* path of the HPC Challenge binary */
	const char *asp;      /* path of the ASP binary */
	const char *examples; /* folder with gradients.py and hpcc/hpccinf.txt */
	const char *json;     /* where to write the results, or NULL */
	const char *only;     /* name of the one program to run, or NULL */
	int ranks;
	int rounds;
	int timeout_s;
	int asp_size;
};

struct demo_host {
	char cpu_model[128];
	char kernel[256];
	char mpi[128];
	int cpus;  /* that we may run on */
	int cores; /* behind those CPUs */
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

struct demo {
	struct demo_options opt;
	struct demo_host host;
	struct demo_files files;
};

/* A growing argument vector: strings one after the other, as glibc's argz keeps them. */
struct demo_args {
	char *argz;
	size_t len;
};

struct demo_program {
	const char *name;
	const char *what;
	const char *checks; /* what "verified" means here */
	const char *remedy; /* when the program cannot be found */
	const struct demo_metric *metrics;
	size_t num_metrics;

	/* Path that must exist before the first run. */
	const char *(*needs)(const struct demo *demo);
	/* Lays out input files, removes old output. NULL: nothing to do. */
	int (*prepare)(const struct demo *demo);
	/* Adds what follows mpirun's own options. */
	void (*command)(const struct demo *demo, struct demo_args *args);
	/* Reads and judges the output of a run that exited with 0: fills values and checksum, or
	 * prints what is not right.
	 */
	int (*read)(const struct demo *demo, struct demo_result *result);
};

extern const struct demo_program *const demo_programs[];
extern const size_t demo_num_programs;

/* child.c */
void demo_args_add(struct demo_args *args, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
int demo_args_add_words(struct demo_args *args, const char *words);
void demo_args_free(struct demo_args *args);
void demo_child_setup(void);
int demo_child_run(const struct demo *demo, const struct demo_args *args, double *wall_s);
void demo_tail(const struct demo *demo, const struct demo_args *args);

/* Whole text of a file, to be freed; NULL (errno set, nothing printed) if it cannot be read. */
char *demo_read_text(const char *path);

/* hpcc.c */
int demo_hpcc_prepare(const struct demo *demo);
int demo_hpcc_read(const struct demo *demo, struct demo_result *result);

/* stats.c */
int demo_stats_read(const struct demo *demo, struct demo_result *result);
void demo_stats_print(const char *program, json_t *stats);

/* host.c */
int demo_host_read(const char *mpirun, struct demo_host *host);

/* report.c: results[side * rounds + round] per program; NULL for a program that was not run. */
void demo_report_head(const struct demo *demo);
void demo_report_table(const struct demo *demo, struct demo_result *const *results);
int demo_report_json(const struct demo *demo, struct demo_result *const *results);

#endif
