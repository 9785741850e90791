/* SPDX-License-Identifier: BSD-3-Clause */
/* What the parts of a tuning run share. Each part is called in each turn, when it makes its
 * experiments, and once more when it gives terms; 0 or -errno, with the sentence in t->why. */
#ifndef OC_TUNE_TUNING_H
#define OC_TUNE_TUNING_H

#include "lab/tune/measure.h"
#include "lab/tune/tune.h"

#define OCI_TUNING_CPUS 8192

/* Every experiment is made so many times, each time for a part of its time and in turns with all
 * others: what the machine does meanwhile, such as a host that moves the CPUs of a virtual machine
 * every second, meets all terms alike. */
#define OCI_TUNING_TURNS 8 /* of a quick run half as many */
#define OCI_TUNING_POINTS 8

/* Experiments by name: the kinds of copies (measure.h), and these. */
enum oci_tuning_series {
	OCI_TUNING_PAGES = OCI_MEASURE_KINDS,
	OCI_TUNING_DOMAIN,
	OCI_TUNING_RING,
	OCI_TUNING_LOCAL,
	OCI_TUNING_CALL,
	OCI_TUNING_FLAG, /* one for each distance */
	OCI_TUNING_SERIES = OCI_TUNING_FLAG + OCI_MODEL_DISTANCES
};

struct oci_tuning {
	const struct oci_tune_options *options;
	const struct oci_tune_listener *listener;
	struct oci_model *model;
	struct oci_tune_world world;
	unsigned int cpus[OCI_TUNING_CPUS];
	uint32_t ranks; /* most copiers at a time */
	struct oci_measure_sizes sizes;
	size_t split; /* sizes that are in cache */
	unsigned int turns;
	unsigned int turn; /* turns: all are over, and terms are made of them */
	struct oci_tune_point kept[OCI_TUNING_SERIES][OCI_TUNING_TURNS][OCI_TUNING_POINTS];
	unsigned int points, unsteady; /* of those made of turns: how many differed between them */
	size_t cache_bytes;	       /* of the last level; 0: not known */
	unsigned int cache_cores;      /* that share it */
	bool no_cma, no_call;	       /* cannot be measured here */
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

typedef int oci_tuning_take(struct oci_tuning *t, unsigned int series,
			    struct oci_tune_point *point);
/*
 * An experiment of `count` points. In a turn: makes it and keeps its points, nothing is in `point`.
 * When all turns are over: the means of their middle halves. 0, or what `take` returned.
 */
int oci_tuning_points(struct oci_tuning *t, unsigned int series, const char *what,
		      oci_tuning_take *take, struct oci_tune_point *point, unsigned int count);
static inline bool oci_tuning_is_over(const struct oci_tuning *t)
{
	return t->turn == t->turns;
}

/* tune_copies.c, in this order: later ones use terms of earlier ones */
int oci_tuning_memcpy(struct oci_tuning *t);
int oci_tuning_cma(struct oci_tuning *t);
int oci_tuning_contention(struct oci_tuning *t);
int oci_tuning_domain(struct oci_tuning *t);
int oci_tuning_ring(struct oci_tuning *t);
int oci_tuning_map(struct oci_tuning *t);
int oci_tuning_shm(struct oci_tuning *t);
int oci_tuning_slot(struct oci_tuning *t);

/* tune_signals.c */
int oci_tuning_local(struct oci_tuning *t);
int oci_tuning_flags(struct oci_tuning *t);
int oci_tuning_call(struct oci_tuning *t);
/* Two CPUs at a distance: the first that may be used and the first that is so far from it. */
bool oci_tuning_pair(struct oci_tuning *t, enum oci_model_distance distance, unsigned int pair[2]);

#endif
