/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which memory a call uses. What a program sends is rarely what it sent the time before, so by
 * default calls walk through a pool larger than the private caches.
 */
#ifndef BENCH_BUFFERS_H
#define BENCH_BUFFERS_H

#include <stddef.h>

enum buffer_mode {
	BUFFERS_ROTATED, /* the next of a pool larger than the private caches */
	BUFFERS_CACHED,	 /* the same each time, as the OSU benchmarks do */
	BUFFERS_COLD,	 /* allocated for the call, used once, freed */
};

struct buffers {
	enum buffer_mode mode;
	size_t bytes;  /* of one buffer; 0: this rank has none and gets NULL */
	size_t stride; /* from one buffer to the next */
	size_t count;
	size_t next;
	char *memory;
	char *base; /* @memory, aligned */
};

/* --cached or --cold: not both. */
void take_cached(void *mode, const char *text);
void take_cold(void *mode, const char *text);
const char *buffer_mode_name(enum buffer_mode mode);

/* After so many calls a buffer of so many bytes comes again. */
size_t buffers_in_turn(enum buffer_mode mode, size_t bytes);
/* Returns 0 or -ENOMEM. All of a pool's pages have been touched. Undone by buffers_destroy. */
int buffers_create(struct buffers *buffers, enum buffer_mode mode, size_t bytes);
void buffers_destroy(struct buffers *buffers);

/*
 * The buffer for the next call, given back by buffers_put after it. NULL in *@out when this rank
 * has none. Returns 0 or -ENOMEM.
 */
int buffers_get(struct buffers *buffers, void **out);
void buffers_put(struct buffers *buffers, void *buffer);

#endif
