/* SPDX-License-Identifier: BSD-3-Clause */
/* What the C programs here share and is not their subject: numbers that look random, and options.
 */
#ifndef EXAMPLES_COMMON_H
#define EXAMPLES_COMMON_H

#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* splitmix64's finaliser: a well mixed function of its argument. */
static inline uint64_t mix(uint64_t x)
{
	x ^= x >> 30;
	x *= 0xbf58476d1ce4e5b9ULL;
	x ^= x >> 27;
	x *= 0x94d049bb133111ebULL;
	return x ^ (x >> 31);
}

/* The number of an option, "program: --name"; or false and a sentence, which opterr = 0 leaves out
 * as it does getopt's own. */
static inline bool parse_number(const char *option, const char *text, uint64_t min, uint64_t max,
				uint64_t *value)
{
	char *end;
	uint64_t parsed = strtoull(text, &end, 10);

	if (text[0] < '0' || text[0] > '9' || *end || parsed < min || parsed > max) {
		if (opterr)
			fprintf(stderr, "%s: '%s' is not a number from %llu to %llu\n", option,
				text, (unsigned long long)min, (unsigned long long)max);
		return false;
	}
	*value = parsed;
	return true;
}

#endif
