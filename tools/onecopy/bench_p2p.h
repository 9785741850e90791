/* SPDX-License-Identifier: BSD-3-Clause */
/* What `onecopy bench p2p` runs, and what a run of it gives. */
#ifndef ONECOPY_BENCH_P2P_H
#define ONECOPY_BENCH_P2P_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "predict.h"

enum p2p_launcher { P2P_NONE, P2P_OPENMPI, P2P_MPICH, P2P_LAUNCHERS };

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

/* Looks for programs and launchers. */
void p2p_find(void);
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

#endif
