/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * k-nomial tree over ranks 0..p-1, rooted at 0: in each round every rank that has the data serves k
 * more, so a round multiplies them by k + 1 (k = 1 is the binomial tree).
 *
 * Pure index arithmetic. A rank's parent is its number with the lowest non-zero digit, to the base
 * k + 1, set to zero; its children differ from it in one digit below that.
 */
#ifndef OC_PATTERN_KNOMIAL_H
#define OC_PATTERN_KNOMIAL_H

#include <stdint.h>

/* Weight of the lowest non-zero digit of v > 0. */
static inline uint64_t oci_knomial_weight(uint32_t v, uint32_t k)
{
	uint64_t weight = 1;

	while (v / weight % ((uint64_t)k + 1) == 0)
		weight *= (uint64_t)k + 1;
	return weight;
}

/* Parent of v > 0. */
static inline uint32_t oci_knomial_parent(uint32_t v, uint32_t k)
{
	uint64_t weight = oci_knomial_weight(v, k);

	return (uint32_t)(v - v / weight % ((uint64_t)k + 1) * weight);
}

/*
 * The i-th child of v in the order in which it serves them (largest subtree first), or 0 past the
 * last: no rank is the parent of 0.
 */
static inline uint32_t oci_knomial_child(uint32_t v, uint32_t k, uint32_t p, uint32_t i)
{
	uint64_t base = (uint64_t)k + 1, weight = 1;

	/* The largest weight a child of v can have: below v's own lowest digit, and below p. */
	while (weight < p && (v == 0 || v / weight % base == 0))
		weight *= base;
	for (weight /= base; weight; weight /= base) {
		for (uint64_t digit = 1; digit <= k; digit++) {
			uint64_t child = v + digit * weight;

			if (child < p && i-- == 0)
				return (uint32_t)child;
		}
	}
	return 0;
}

#endif
