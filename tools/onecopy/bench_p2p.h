/* SPDX-License-Identifier: BSD-3-Clause */
/* What `onecopy bench p2p` and `bench start` run, and what a run of it gives. */
#ifndef ONECOPY_BENCH_P2P_H
#define ONECOPY_BENCH_P2P_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "predict.h"

enum p2p_launcher { P2P_NONE, P2P_OPENMPI, P2P_MPICH, P2P_LAUNCHERS };

/* Which of the two is to run. */
enum p2p_program { P2P_PINGPONG, P2P_START, P2P_PROGRAMS };

struct p2p_run {
	enum p2p_launcher launcher; /* NONE: the C API, without an MPI */
	const char *setting;	    /* "VARIABLE=VALUE"; NULL: what the C API chooses */
	bool onecopy;		    /* under onecopy run */
	bool shared;		    /* memory that peers can map: oc_alloc(), --shared-heap */
	bool alltoall, touch, misses;
	uint32_t ranks;
	unsigned int cpus[2], cpu_count; /* that the ranks are bound to; 0: all that may be used */
	double seconds;			 /* a size */
	double token_ns[2];		 /* of the samples that count, low and high; high 0: all */
	const struct size_list *sizes;
};

struct p2p_value {
	double s, misses; /* of a message or call; misses negative: not counted */
};

/* Looks for the program as it is built for each launcher, and for the launchers. */
void p2p_find(enum p2p_program program);
/* NULL, or why it cannot be run: a sentence without its full stop. */
const char *p2p_missing(const struct p2p_run *run);
/* "4.1.4"; "" for an unknown one. */
const char *p2p_version(enum p2p_launcher launcher);
/*
 * One run; a value for each size. 0; or -1 and why. `said`: a sentence that the run has about
 * itself, or "".
 */
int p2p_execute(const struct p2p_run *run, struct p2p_value *values, char *why, size_t why_n,
		char *said, size_t said_n);
/* One run with these arguments, which shall print nothing. 0; or -1 and why. */
int p2p_launch(const struct p2p_run *run, const char *arguments, char *why, size_t why_n);

#endif
