/* SPDX-License-Identifier: BSD-3-Clause */
#include "data.h"
#include "support/mix.h"

#include <string.h>

uint64_t data_seed(uint64_t call, int rank, int block)
{
	return oct_mix(call * 0x9e3779b97f4a7c15u + ((uint64_t)(unsigned int)rank << 32) +
		       (uint64_t)(unsigned int)block + 1);
}

/* Of each place another, in a few instructions: to make them is much of what such a test does. */
static uint64_t word(uint64_t seed, size_t i)
{
	uint64_t x = seed + i * 0x9e3779b97f4a7c15u;

	return x ^ x >> 29;
}

/* 20 bits: sums over any number of ranks that we start are exact in an int and in a double. */
static int32_t number(uint64_t seed, size_t i)
{
	return (int32_t)(word(seed, i) >> 44);
}

/* Eight bytes are of one word. */
static unsigned char byte(uint64_t seed, size_t i)
{
	return (unsigned char)(word(seed, i / 8) >> i % 8 * 8);
}

/* Buffers lie at multiples of 8, or hold bytes. */
void data_fill(void *buffer, enum plain plain, uint64_t seed, size_t first, size_t count)
{
	unsigned char *bytes = buffer;
	double *doubles = buffer;
	int32_t *ints = buffer;
	size_t i = 0;

	switch (plain) {
	case PLAIN_BYTES:
		for (; i < count && (first + i) % 8; i++)
			bytes[i] = byte(seed, first + i);
		for (; i + 8 <= count; i += 8) {
			uint64_t eight = word(seed, (first + i) / 8);

			memcpy(bytes + i, &eight, 8);
		}
		for (; i < count; i++)
			bytes[i] = byte(seed, first + i);
		return;
	case PLAIN_INTS:
	case PLAIN_INTS_MOST:
		for (; i < count; i++)
			ints[i] = number(seed, first + i);
		return;
	default:
		for (; i < count; i++)
			doubles[i] = number(seed, first + i);
	}
}

static void combine_run(void *buffer, const void *other, enum plain plain, size_t count)
{
	unsigned char *bytes = buffer;
	const unsigned char *other_bytes = other;
	double *doubles = buffer;
	const double *other_doubles = other;
	int32_t *ints = buffer;
	const int32_t *other_ints = other;

	for (size_t i = 0; i < count; i++) {
		if (plain == PLAIN_BYTES)
			bytes[i] ^= other_bytes[i];
		else if (plain == PLAIN_INTS)
			ints[i] += other_ints[i];
		else if (plain == PLAIN_INTS_MOST)
			ints[i] = ints[i] > other_ints[i] ? ints[i] : other_ints[i];
		else if (plain == PLAIN_DOUBLES)
			doubles[i] += other_doubles[i];
		else
			doubles[i] = doubles[i] > other_doubles[i] ? doubles[i] : other_doubles[i];
	}
}

void data_combine(void *buffer, enum plain plain, uint64_t seed, size_t first, size_t count)
{
	enum { RUN = 512 };
	double other[RUN]; /* of the largest kind */

	for (size_t at = 0; at < count; at += RUN) {
		size_t run = count - at < RUN ? count - at : RUN;

		data_fill(other, plain, seed, first + at, run);
		combine_run((char *)buffer + at * (size_t)layout_plain[plain].extent, other, plain,
			    run);
	}
}

static uint64_t hash_word(uint64_t hash, uint64_t word)
{
	hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
	return hash ^ hash >> 29;
}

uint64_t data_hash(uint64_t hash, const void *buffer, size_t bytes)
{
	const char *at = buffer;
	uint64_t lane[4] = { hash, 1, 2, 3 }; /* so that the next need not wait for the last */
	size_t i = 0;

	for (; i + 32 <= bytes; i += 32) {
		uint64_t words[4];

		memcpy(words, at + i, 32);
		for (int k = 0; k < 4; k++)
			lane[k] = hash_word(lane[k], words[k]);
	}
	for (; i < bytes; i += 8) {
		uint64_t word = 0;

		memcpy(&word, at + i, bytes - i < 8 ? bytes - i : 8);
		lane[0] = hash_word(lane[0], word);
	}
	for (int k = 1; k < 4; k++)
		lane[0] = hash_word(lane[0], lane[k]);
	return lane[0];
}
