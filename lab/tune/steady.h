/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Measuring on a machine that changes.
 *
 * The host of a virtual machine may move its CPUs to other cores, near to each other or far apart,
 * from one second to the next; a flag between two of them tells which it is (a look). A mean over
 * both would be the time of no machine at all. So of each quantity those batches of samples count
 * before and behind which a look found one and the same state, the same one for all quantities.
 */
#ifndef OC_TUNE_STEADY_H
#define OC_TUNE_STEADY_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Looks whose latencies are within this factor of their median, up and down, are of one state. */
#define OCI_STEADY_WIDTH 1.3
/* The nearest state is taken that makes up so much of all looks: it is what two neighbours on a
 * machine of one's own have. Rarer, and too few of its batches would come by. */
#define OCI_STEADY_SHARE 0.25

struct oci_steady {
	double flag_s;		/* the state's median look; 0: nothing is known, all belong to it */
	double share;		/* of all looks, 0 to 1 */
	double other_s;		/* the median of the looks that are not of it; 0: there are none */
	double least_s, most_s; /* a look in here belongs to it */
};

/* The state to measure in, of these looks, which it orders. None: all belong to it. */
void oci_steady_choose(double *look, size_t count, struct oci_steady *state);
/* The state of a known latency. */
void oci_steady_at(double flag_s, struct oci_steady *state);
static inline bool oci_steady_holds(const struct oci_steady *state, double look_s)
{
	return state->flag_s <= 0 || (look_s >= state->least_s && look_s <= state->most_s);
}
/* "near", "far", or "only" where no others were seen. */
const char *oci_steady_name(const struct oci_steady *state);

/* Two flags that nothing else shares a line with; in shared memory, zeroed. */
struct oci_steady_lines {
	uint64_t there, pad_there[15];
	uint64_t back, pad_back[15];
};

/*
 * One way of a flag between two ranks, who both call this at the same point of what they do: the
 * one that asks gets the latency, the other one 0. *turn counts on either side, from 0. The fastest
 * of a few dozen trips each, so that an interrupt is not taken for a distance.
 */
double oci_steady_look(struct oci_steady_lines *lines, bool asks, uint64_t *turn);

/*
 * The samples of one point, batch by batch: which of them count. Times in seconds by one clock.
 */
struct oci_steady_batches {
	const struct oci_steady *state;
	double begun_s;	 /* of this batch */
	double before_s; /* the look before it */
	double lost_s;	 /* in batches that do not count */
	double patience_s;
	uint32_t first; /* number of its first sample */
	bool mixed;	/* patience is over: from then on all count */
};

/* Before the first sample, behind a look; `seconds` are what the samples that count should take:
 * when twice as many have been lost, all count. */
void oci_steady_begin(struct oci_steady_batches *b, const struct oci_steady *state, double look_s,
		      double now_s, double seconds);
/* Is it time for a look? Batches are short beside the second or so that a state lasts. */
static inline bool oci_steady_is_over(const struct oci_steady_batches *b, double now_s)
{
	return now_s - b->begun_s > 4e-3;
}
/* Ends a batch by the look behind it: how many of the `samples` so far are to be kept. The next
 * batch begins. */
uint32_t oci_steady_end(struct oci_steady_batches *b, double look_s, double now_s,
			uint32_t samples);

#endif
