/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The experiments: each runs ranks and returns points, or is what those ranks run (oci_tune_take).
 * 0, or -errno and a sentence.
 *
 * Sources are rewritten by their owner before each copy, what was received is read, and targets
 * rotate through more than the private caches hold, as in a program that has something new to say.
 */
#ifndef OC_TUNE_MEASURE_H
#define OC_TUNE_MEASURE_H

#include "lab/tune/world.h"

/* Of a copy that one rank makes from another's memory. */
enum oci_measure_kind {
	OCI_MEASURE_CMA,       /* process_vm_readv */
	OCI_MEASURE_PUSH,      /* process_vm_writev: its source is what the rank itself wrote, its
				* target what the owner has read */
	OCI_MEASURE_KMOD,      /* by the kernel module, from a region */
	OCI_MEASURE_KMOD_PUSH, /* to a region; source and target as of PUSH */
	OCI_MEASURE_KMOD_DMA,  /* from a region, by a DMA engine of the module's */
	OCI_MEASURE_MAP,       /* from shared memory, as the engine copies what it has mapped */
	OCI_MEASURE_MAP_PUSH,  /* into shared memory, likewise; source and target as of PUSH */
	OCI_MEASURE_SHM,    /* the owner copies into halves of a slot, the requester out of them */
	OCI_MEASURE_MEMCPY, /* memcpy from the rank's own memory */
	OCI_MEASURE_FILL,   /* memcpy from there into a slot that the owner has just read */
	OCI_MEASURE_KINDS
};

struct oci_measure_sizes {
	size_t bytes[8];
	uint32_t count;
};

/* Of FILL: a slot holds no more. */
#define OCI_MEASURE_SLOT_BYTES ((size_t)64 << 10)

/* Memory that all ranks take together for a size. */
double oci_measure_copies_need(size_t bytes);
/* point[i] of sizes.bytes[i]. */
int oci_measure_copies(struct oci_tune_world *world, enum oci_measure_kind kind,
		       const struct oci_measure_sizes *sizes, struct oci_tune_point *point,
		       char *why, size_t n);

/* Of two ranks: single copies of 1 byte, of 2 bytes on one page, of 2 bytes on two pages; a write
 * of 1 byte. */
#define OCI_MEASURE_PAGES 4
int oci_measure_pages(struct oci_tune_rank *me);

/* Where the copies of a contention experiment go or come from, of `copiers` ranks at a time. */
enum oci_measure_where {
	OCI_MEASURE_EACH,   /* each another process */
	OCI_MEASURE_APART,  /* one process, places so far apart that they are given */
	OCI_MEASURE_SHARED, /* one process, all the same buffer */
};

struct oci_measure_contended {
	uint32_t copiers;
	size_t bytes; /* of each */
	enum oci_measure_where where;
	size_t apart; /* APART */
	bool push;    /* they write there, else they read */
	/* EACH: all rewrite theirs before each copy, and buffers rotate. Else nothing is rewritten,
	 * so that what differs between EACH and the others is the lock. */
	bool rewritten;
};

/* The mean over copiers. */
int oci_measure_contention(struct oci_tune_world *world,
			   const struct oci_measure_contended *contended,
			   struct oci_tune_point *point, char *why, size_t n);

/* Of two ranks: one way of a flag between their CPUs, and each further flag that is up. */
int oci_measure_flags(struct oci_tune_rank *me);

/* Of one rank: seconds a byte of summing doubles. */
int oci_measure_sum(struct oci_tune_rank *me);

/* On a team of two ranks, with so much shared memory: Barrier `flat`, and Allgather `inline` of 8
 * bytes, whose flags are the same; their plans have so many operations (tune_test.c asks the closed
 * forms). */
#define OCI_MEASURE_CALL_PAGES 9
#define OCI_MEASURE_BARRIER_OPS 2
#define OCI_MEASURE_SMALL_OPS 5
int oci_measure_calls(struct oci_tune_rank *me);

#endif
