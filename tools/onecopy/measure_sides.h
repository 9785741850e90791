/* SPDX-License-Identifier: BSD-3-Clause */
/* The buffers of a measured call. */
#ifndef ONECOPY_MEASURE_SIDES_H
#define ONECOPY_MEASURE_SIDES_H

#include "measure.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One side of a call on one rank: a pool of `places` buffers of `stride` bytes, `bytes` used. */
struct side {
	uint8_t *pool;
	size_t bytes, stride, places;
};

/* What a call reads, and what it writes, on rank 0, which is the root, or on another rank. */
size_t side_sent(const struct measure *m, bool root);
size_t side_received(const struct measure *m, bool root);
/* Two buffers at least: with one, each call would find what the last one left in the cache. */
struct side side_plan(size_t bytes);
/* Makes the pool; touched, so that no call pays for a page's first use. 0 or -ENOMEM. */
int side_fill(struct side *side);
/* The same in memory that peers map; -ENOTSUP: there is none. */
int side_fill_mapped(struct side *side);

static inline uint8_t *side_next(const struct side *side, uint64_t turn)
{
	return side->pool + turn % side->places * side->stride;
}

#endif
