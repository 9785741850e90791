/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Measures this machine: the terms of its cost model, each with method, residual, host and date.
 *
 * Linked into the command alone (docs/adr/0009). The model, and how it is written and read back,
 * are those of model/model.h.
 */
#ifndef OC_TUNE_TUNE_H
#define OC_TUNE_TUNE_H

#include "model/model.h"

struct oci_tune_options {
	uint32_t ranks;	    /* contention is measured up to so many, at most the CPUs that may be
			     * used; 0: all of these */
	bool quick;	    /* some 15 seconds instead of about a minute */
	double seconds;	    /* of each point; 0: by `quick` */
	unsigned int turns; /* in which each point is measured, at most OCI_TUNING_TURNS; 0: by
			       `quick` */
};

struct oci_tune_listener {
	/* Before each measurement; done: 0 to 1. */
	void (*step)(void *context, const char *what, double done);
	/* What could not be measured, and what follows from it. */
	void (*note)(void *context, const char *sentence);
	void *context;
};

/* How many CPUs the calling process may use, one at least; *cpus, unless NULL: which, rising. */
uint32_t oci_tune_cpus(const unsigned int **cpus);
/* Bytes that can still be had here, by the kernel's estimate and the cgroup's limit. */
size_t oci_tune_memory_left(void);
/* Most ranks that --ranks takes. */
#define OCI_TUNE_MOST_RANKS 256

/*
 * 0 and the model, the caller's to destroy; or -errno and a sentence. Takes all CPUs that it
 * measures on: an idle machine gives the best numbers. A mechanism that is refused here is not an
 * error, but left out and noted.
 */
int oci_tune(const struct oci_tune_options *options, const struct oci_tune_listener *listener,
	     struct oci_model *model, char *why, size_t n);

#endif
