// SPDX-License-Identifier: BSD-3-Clause
#include "buffers.h"

#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lab/harness/options.h"

enum {
	LINE_BYTES = 64,
	/* malloc's initial limit between its heap and fresh pages from the kernel. */
	FRESH_PAGES_FROM_BYTES = 128 * 1024,
	/* Where the system does not say: the largest private cache in common servers. */
	ASSUMED_CACHE_BYTES = 2 * 1024 * 1024,
};

static void set_mode(enum buffer_mode *mode, enum buffer_mode given)
{
	if (*mode != BUFFERS_ROTATED)
		usage("--cached and --cold exclude each other: give one.");
	*mode = given;
}

void take_cached(void *mode, const char *text)
{
	(void)text;
	set_mode(mode, BUFFERS_CACHED);
}

void take_cold(void *mode, const char *text)
{
	(void)text;
	set_mode(mode, BUFFERS_COLD);
}

const char *buffer_mode_name(enum buffer_mode mode)
{
	static const char *const names[] = {
		[BUFFERS_ROTATED] = "rotated",
		[BUFFERS_CACHED] = "cached",
		[BUFFERS_COLD] = "cold",
	};

	return names[mode];
}

/* Bytes of one core's private caches: what a buffer must not be found in. */
static size_t private_cache_bytes(void)
{
	long bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);

	return bytes > 0 ? (size_t)bytes : ASSUMED_CACHE_BYTES;
}

static size_t stride_of(size_t bytes)
{
	return (bytes + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
}

/* More than twice the cache, so that a buffer is surely gone when its turn comes again. */
size_t buffers_in_turn(enum buffer_mode mode, size_t bytes)
{
	return mode == BUFFERS_ROTATED && bytes ? 2 * private_cache_bytes() / stride_of(bytes) + 2 :
						  1;
}

int buffers_create(struct buffers *buffers, enum buffer_mode mode, size_t bytes)
{
	size_t total;

	*buffers = (struct buffers){ .mode = mode, .bytes = bytes };
	if (bytes == 0)
		return 0;
	if (mode == BUFFERS_COLD) {
		/*
		 * Left alone, malloc raises this limit at the first large free and hands the same
		 * warm pages out again; fixed, every large buffer is new memory, as in a program
		 * that allocates its buffers where it needs them.
		 */
		mallopt(M_MMAP_THRESHOLD, FRESH_PAGES_FROM_BYTES);
		return 0;
	}
	buffers->stride = stride_of(bytes);
	buffers->count = buffers_in_turn(mode, bytes);
	total = buffers->stride * buffers->count;
	buffers->memory = malloc(total + LINE_BYTES);
	if (!buffers->memory)
		return -ENOMEM;
	buffers->base = buffers->memory + LINE_BYTES - (uintptr_t)buffers->memory % LINE_BYTES;
	memset(buffers->base, 0xa5, total);
	return 0;
}

void buffers_destroy(struct buffers *buffers)
{
	free(buffers->memory);
	buffers->memory = NULL;
}

int buffers_get(struct buffers *buffers, void **out)
{
	*out = NULL;
	if (buffers->bytes == 0)
		return 0;
	if (buffers->mode == BUFFERS_COLD) {
		*out = malloc(buffers->bytes);
		return *out ? 0 : -ENOMEM;
	}
	*out = buffers->base + buffers->next * buffers->stride;
	buffers->next = (buffers->next + 1) % buffers->count;
	return 0;
}

void buffers_put(struct buffers *buffers, void *buffer)
{
	if (buffers->mode == BUFFERS_COLD)
		free(buffer);
}
