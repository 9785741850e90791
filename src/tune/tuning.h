/* SPDX-License-Identifier: BSD-3-Clause */
/* What the parts of a tuning run share. Each part runs experiments and gives terms; 0 or -errno,
 * with the sentence in t->why. */
#ifndef OC_TUNE_TUNING_H
#define OC_TUNE_TUNING_H

#include "tune/measure.h"
#include "tune/tune.h"

#define OCI_TUNING_CPUS 8192

struct oci_tuning {
	const struct oci_tune_options *options;
	const struct oci_tune_listener *listener;
	struct oci_model *model;
	struct oci_tune_world world;
	unsigned int cpus[OCI_TUNING_CPUS];
	uint32_t ranks; /* most copiers at a time */
	struct oci_measure_sizes sizes;
	size_t split; /* sizes that are in cache */
	unsigned int step, steps;
	char date[24];
	char *why;
	size_t why_bytes;
};

/* Tells the listener that a measurement begins; tells it a sentence. */
void oci_tuning_step(struct oci_tuning *t, const char *what);
void oci_tuning_note(struct oci_tuning *t, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Sets a term, kept within its bounds; the format is its method. */
void oci_tuning_give(struct oci_tuning *t, const char *name, double value, double residual,
		     const char *format, ...) __attribute__((format(printf, 5, 6)));

/* tune_copies.c, in this order: later ones use terms of earlier ones */
int oci_tuning_memcpy(struct oci_tuning *t);
int oci_tuning_cma(struct oci_tuning *t);
int oci_tuning_contention(struct oci_tuning *t);
int oci_tuning_domain(struct oci_tuning *t);
int oci_tuning_map(struct oci_tuning *t);
int oci_tuning_shm(struct oci_tuning *t);

/* tune_signals.c */
int oci_tuning_local(struct oci_tuning *t);
int oci_tuning_flags(struct oci_tuning *t);
int oci_tuning_call(struct oci_tuning *t);
/* Two CPUs at a distance: the first that may be used and the first that is so far from it. */
bool oci_tuning_pair(struct oci_tuning *t, enum oci_model_distance distance, unsigned int pair[2]);

#endif
