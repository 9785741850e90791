/* SPDX-License-Identifier: BSD-3-Clause */
/* One run of a command, mostly `onecopy run mpirun PROGRAM`: output, exit status, statistics. */
#ifndef ONECOPY_TESTS_JOB_H
#define ONECOPY_TESTS_JOB_H

#include <jansson.h>
#include <stdbool.h>

enum { JOB_WORDS = 128 };

struct job {
	const char *word[JOB_WORDS]; /* the command; NULL-terminated */
	int words;
	const char *environment[32]; /* "NAME=VALUE" pairs that the command gets on top */
	int variables;
	double silence_s; /* 0: as support/watch.h has it */
	bool wants_stats;
	bool leaves_nothing; /* whether it does is looked at */
	bool yields; /* MPICH's idle ranks give their CPU away, as Open MPI's do by themselves;
		      * otherwise they spin away the turns of those that they wait for */
};

struct job_result {
	int status;	  /* exit status, or 128 plus the signal */
	bool hung;	  /* and was ended by us; what its ranks did has been printed */
	bool left_behind; /* processes that it had started went on; they were ended by us */
	double seconds;
	char *output;  /* standard output and error, in the order in which they came */
	json_t *stats; /* NULL: none */
};

/* Paths of this build: where the command and the test programs are. */
extern const char *job_onecopy, *job_programs;
/* Jobs are MPICH's, else Open MPI's. */
extern bool job_is_mpich;
/* `onecopy run --shared-heap`: of the jobs that job_mpi() makes from then on. */
extern bool job_shares_heaps;

/* Words of the command: job_add(&job, "a", "b"). */
#define job_add(job, ...) job_add_words(job, (const char *const[]){ __VA_ARGS__, NULL })
void job_add_words(struct job *job, const char *const *words);
/* "sh -c SCRIPT". */
void job_add_shell(struct job *job, const char *script);
/* Kept until the process ends, like all words of a job. */
const char *job_text(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* That path, which is removed when the driver ends, by a signal, too, while a job runs. */
const char *job_file(const char *path);
/* A tuning file for this machine, with these cells. */
const char *job_tuning(const char *cells);
#define job_set(job, ...) job_set_variables(job, (const char *const[]){ __VA_ARGS__, NULL })
void job_set_variables(struct job *job, const char *const *names_are_values);
/* `onecopy run` with statistics, behind which the caller adds the command. */
struct job job_under_onecopy(void);
/*
 * `onecopy run mpirun -n RANKS PROGRAM` (mpirun.mpich), with statistics. Ranks are not bound, as
 * there are more of them than cores; then they yield. NULL: the caller adds the program.
 */
struct job job_mpi(int ranks, const char *program);
/* The same without onecopy. */
struct job job_stock(int ranks, const char *program);
/* What is added next runs with behind.c's library behind onecopy's, if there is one. `how`: what
 * MPICH does then. */
void job_add_behind(struct job *job, const char *how);
/* The MPI's own messages are not copied singly: they would complain about a filter, and of what it
 * denies they lose bytes, while the test is about onecopy's copies. */
void job_leave_cma_to_us(struct job *job);
/* Adds a test program by its name. */
void job_add_program(struct job *job, const char *name);

void job_run(const struct job *job, struct job_result *result);
void job_free(struct job_result *result);

#endif
