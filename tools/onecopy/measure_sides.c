/* SPDX-License-Identifier: BSD-3-Clause */
#include "measure_sides.h"

#include "lab/tune/tune.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* More than the private caches of today's cores, twice. */
#define POOL_BYTES ((size_t)8 << 20)
#define PAGE_BYTES ((size_t)4096)

size_t side_sent(const struct measure *m, bool root)
{
	return oci_send_blocks(m->collective, m->ranks, root) * m->bytes;
}

size_t side_received(const struct measure *m, bool root)
{
	return oci_recv_blocks(m->collective, m->ranks, root) * m->bytes;
}

struct side side_plan(size_t bytes)
{
	struct side side = { .bytes = bytes, .stride = PAGE_BYTES, .places = 1 };

	if (!bytes)
		return side; /* an address, as calls have one */
	side.stride = (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
	side.places = (POOL_BYTES + side.stride - 1) / side.stride;
	if (side.places < 2)
		side.places = 2;
	return side;
}

int side_fill(struct side *side)
{
	side->pool = aligned_alloc(PAGE_BYTES, side->places * side->stride);
	if (side->pool)
		memset(side->pool, 1, side->places * side->stride);
	return side->pool ? 0 : -ENOMEM;
}

int side_fill_mapped(struct side *side)
{
	side->pool = oc_alloc(side->places * side->stride + PAGE_BYTES);
	if (!side->pool)
		return -ENOMEM;
	if (!oc_is_shared(side->pool))
		return -ENOTSUP;
	side->pool += -(uintptr_t)side->pool % PAGE_BYTES;
	memset(side->pool, 1, side->places * side->stride);
	return 0;
}

static double total(size_t bytes)
{
	struct side side = side_plan(bytes);

	return (double)side.places * (double)side.stride;
}

int measure_fits(const struct measure *m, char *error, size_t n)
{
	double root = total(side_sent(m, true)) + total(side_received(m, true));
	double other = total(side_sent(m, false)) + total(side_received(m, false));
	double needed = root + (m->ranks - 1) * other, left = (double)oci_tune_memory_left();

	if (needed <= left)
		return 0;
	snprintf(error, n, "its buffers on %u ranks take %.1f GiB and %.1f GiB of memory are left",
		 m->ranks, needed / (1 << 30), left / (1 << 30));
	return -ENOMEM;
}
