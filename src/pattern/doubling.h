/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Recursive doubling over ranks 0..p-1 for readers, for any p: after level i each rank has what the
 * ranks of its group of 2^(i+1) neighbours had.
 *
 * Pure index arithmetic. Where the neighbouring group is cut short by p, as many ranks of mine as
 * it has members read from them, one from each; the others read from those of mine that have it by
 * then, in twice as many each time. So nobody is read by two at once for this reason, at the price
 * of ceil(lg(2^i / members)) reads more, one after the other.
 */
#ifndef OC_PATTERN_DOUBLING_H
#define OC_PATTERN_DOUBLING_H

#include <stdbool.h>
#include <stdint.h>

struct oci_doubling {
	uint32_t from;	       /* the rank to read from */
	uint32_t first, count; /* whose data */
	bool relayed;	       /* `from` has them only when it is through with this level */
	uint32_t after;	       /* relayed: nor before this rank is through with it (or `from`) */
};

/* Is there a level of this number? */
static inline bool oci_doubling_level(uint32_t p, unsigned int level)
{
	return level < 32 && (uint64_t)1 << level < p;
}

/* What rank v reads in a level; false: nothing. */
static inline bool oci_doubling_step(uint32_t v, uint32_t p, unsigned int level,
				     struct oci_doubling *step)
{
	uint32_t group = 1u << level, mine = v & ~(group - 1), other = mine ^ group;
	uint32_t in = v - mine, have, span;

	if (other >= p)
		return false;
	have = p - other < group ? p - other : group;
	*step = (struct oci_doubling){ .first = other, .count = have };
	if (in < have) {
		step->from = step->after = other + in;
		return true;
	}
	for (span = have; in >= 2 * span;)
		span *= 2;
	step->relayed = true;
	step->from = step->after = v - span;
	/* The round before this one had a reader of the same rank, if that had the data by then. */
	if (span > have && in - span < span / 2)
		step->after = step->from + span / 2;
	return true;
}

#endif
