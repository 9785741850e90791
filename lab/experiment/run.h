/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A run of a program under a variant: by an MPI's launcher or without one, with onecopy or without.
 * What it prints is its result:
 *
 *   = FIGURE X VALUE [LOW HIGH]	a sample, and what its own calls differ by
 *   # SENTENCE				something that it has to say about itself
 *
 * MPIs are as they are installed; of onecopy nothing is left in the environment but what a variant
 * asks for.
 */
#ifndef EXPERIMENT_RUN_H
#define EXPERIMENT_RUN_H

#include <stdint.h>

#include "lab/experiment/experiment.h"
#include "lab/experiment/mpi_found.h"
#include "lab/harness/child.h"

struct variant {
	const char *name;	/* of its series */
	enum launcher launcher; /* LAUNCH_NONE: that of the run */
	bool onecopy, shared_heap;
	bool two_copies;     /* the MPI is told to copy through shared memory alone */
	const char *setting; /* "VARIABLE=VALUE"; NULL: none */
};

enum binding { BIND_NONE, BIND_CORES, BIND_THREADS, BIND_AS_SAID /* by run.mpirun */ };
/* A core for each rank, else a hardware thread, as far as there are enough. */
enum binding binding_of(const struct host *host, uint32_t ranks);

struct run {
	const struct variant *variant;
	enum launcher launcher; /* LAUNCH_NONE: without one */
	const char *with;	/* words in front of the launcher for `onecopy` */
	const char *mpirun;	/* words instead of the launcher that is on PATH; NULL: that one */
	uint32_t ranks;
	enum binding binding;
	const char *program, *arguments; /* its path; words, NULL: none */
	const char *stem; /* of the figures' names, which its lines leave out; NULL: they don't */
	/* Gets the lines that are neither; NULL: nobody does. */
	void (*line)(void *context, const char *line);
	void *context;
	long timeout_s;
	bool counted; /* the ranks' counters of a run with onecopy are read, and have to be there */
	bool may_lack_counters;
	bool may_serve_nothing; /* counters are enough: it may call no collective */
	/* What came of it. */
	unsigned int values; /* lines that were samples */
	double wall_s;
	char said[512];	    /* the last sentence, or "" */
	json_t *counters;   /* owned by the caller; NULL: there are none */
	char command[2048]; /* to be pasted into a shell */
	char tail[CHILD_TAIL_CHARS];
};

/*
 * Before the first run: the environment has nothing of onecopy, signals end the run that is under
 * way, root may run jobs, launchers are found.
 */
void run_begin(void);
/*
 * Samples go to the results' figures, into the variant's series. 0, or -errno and why, a sentence
 * without its full stop; -EINTR: it was interrupted.
 */
int run_program(struct results *results, struct run *run, unsigned int round, char *why, size_t n);
/* Says why a run failed, how to repeat it, and what it said last. */
void run_explain(const struct run *run, int error, const char *why);

#endif
