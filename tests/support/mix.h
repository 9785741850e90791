/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers that look random, the same in every run and on every rank. */
#ifndef OC_TESTS_MIX_H
#define OC_TESTS_MIX_H

#include <stdint.h>

static inline uint64_t oct_mix(uint64_t x)
{
	x ^= x >> 30;
	x *= 0xbf58476d1ce4e5b9ull;
	x ^= x >> 27;
	x *= 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

#endif
