/* SPDX-License-Identifier: BSD-3-Clause */
/* What the parts of a tuning run share: experiments are made in turns (tune.c), and when all turns
 * are over terms are made of their points (terms.c). */
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

/* Copies of the contention experiment: long beside a system call, short enough for private caches.
 */
#define OCI_TUNING_CONTENTION_BYTES ((size_t)256 << 10)

/* Points whose quartiles lie further around the median say more about the machine's other work. */
#define OCI_TUNING_CALM 0.25

/* Of local copies into a slot. */
#define OCI_TUNING_SLOTS 2
static const struct oci_measure_sizes oci_tuning_slots = {
	.bytes = { OCI_MEASURE_SLOT_BYTES / 4, OCI_MEASURE_SLOT_BYTES },
	.count = OCI_TUNING_SLOTS,
};

/* Experiments by name: the kinds of copies (measure.h), and these. */
enum oci_tuning_series {
	OCI_TUNING_PAGES = OCI_MEASURE_KINDS,
	OCI_TUNING_DOMAIN,
	OCI_TUNING_RING,
	OCI_TUNING_SUM,
	OCI_TUNING_CALL,
	OCI_TUNING_ACROSS, /* as copies by cma, between two packages */
	OCI_TUNING_FLAG,   /* one for each distance */
	OCI_TUNING_SERIES = OCI_TUNING_FLAG + OCI_MODEL_DISTANCES
};

struct oci_tuning {
	const struct oci_tune_options *options;
	const struct oci_tune_listener *listener;
	struct oci_model *model;
	struct oci_tune_world world;
	unsigned int cpus[OCI_TUNING_CPUS]; /* in the order of lab/tune/order.h */
	/* Two CPUs at each distance: the first that may be used and the first that is so far from
	 * it; alike where there is none. */
	unsigned int pair[OCI_MODEL_DISTANCES][2];
	bool near_pair; /* the first two CPUs, between which copies are measured, share a package */
	uint32_t package_cores; /* of the first CPU's package, that may be used; 0: not known */
	uint32_t ranks;		/* most copiers at a time */
	uint32_t domain_ranks;	/* of these, under one memory domain */
	size_t domain_bytes;	/* that each of them copies */
	struct oci_measure_sizes sizes;
	size_t split; /* sizes that are in cache */
	unsigned int turns;
	struct oci_tune_point kept[OCI_TUNING_SERIES][OCI_TUNING_TURNS][OCI_TUNING_POINTS];
	struct oci_tune_point point[OCI_TUNING_SERIES][OCI_TUNING_POINTS]; /* of all turns */
	unsigned int points, unsteady; /* of these: how many differed between the turns */
	bool no_cma, no_kmod, no_engine, no_call; /* cannot be measured here */
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
/* Can this experiment be made here? Its points are true only then. */
bool oci_tuning_can(const struct oci_tuning *t, unsigned int series);

/* Is there a pair of CPUs in one package to hold one in two packages against? */
bool oci_tuning_two_packages(const struct oci_tuning *t);

/* Leaves out, and notes, single copies that an error says are not permitted; false: it is another.
 */
bool oci_tuning_refused(struct oci_tuning *t, int error);

/* terms.c: terms of the points of all turns. Measures contention, which goes by terms of the others
 * and has turns of its own. 0 or -errno, with the sentence in t->why. */
int oci_tuning_terms(struct oci_tuning *t);
/* How many measurements that takes. */
unsigned int oci_tuning_contention_steps(const struct oci_tuning *t);

#endif
