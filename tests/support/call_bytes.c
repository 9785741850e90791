/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/call_bytes.h"

#include <string.h>

size_t oct_send_bytes(enum oc_collective collective, size_t bytes, uint32_t size, bool is_root)
{
	return oci_send_blocks(collective, size, is_root) * bytes;
}

size_t oct_recv_bytes(enum oc_collective collective, size_t bytes, uint32_t size, bool is_root)
{
	if (oci_has_one_buffer(collective)) /* what is in its one buffer afterwards */
		return bytes;
	return oci_recv_blocks(collective, size, is_root) * bytes;
}

/*
 * To make bytes and to look at them would be the longest part of tests by far with the sanitizers,
 * which look at each access: so it is done in runs, whose ends memcpy() and memcmp() look at.
 */
#define UNCHECKED __attribute__((no_sanitize("address", "undefined")))
#define RUN OCT_RUN

UNCHECKED uint8_t oct_byte(unsigned int n, uint32_t from, uint32_t to, size_t i)
{
	return (uint8_t)(n * 131 + from * 29 + to * 7 + i + (i >> 8) * 3 + (i >> 16));
}

/* From a multiple of RUN on each byte is one more than that before it, for as long. */
static uint8_t rising[2 * RUN];

__attribute__((constructor)) static void make_rising(void)
{
	for (size_t i = 0; i < sizeof(rising); i++)
		rising[i] = (uint8_t)i;
}

static size_t run_at(size_t at, size_t bytes)
{
	return bytes - at < RUN ? bytes - at : RUN;
}

void oct_fill_from(uint8_t *out, unsigned int n, uint32_t from, uint32_t to, size_t first,
		   size_t bytes)
{
	for (size_t at = 0; at < bytes; at += RUN)
		memcpy(out + at, rising + oct_byte(n, from, to, first + at), run_at(at, bytes));
}

void oct_fill(uint8_t *out, unsigned int n, uint32_t from, uint32_t to, size_t bytes)
{
	oct_fill_from(out, n, from, to, 0, bytes);
}

bool oct_filled(const uint8_t *in, unsigned int n, uint32_t from, uint32_t to, size_t bytes)
{
	for (size_t at = 0; at < bytes; at += RUN)
		if (memcmp(in + at, rising + oct_byte(n, from, to, at), run_at(at, bytes)))
			return false;
	return true;
}

bool oct_all(const uint8_t *in, uint8_t byte, size_t bytes)
{
	return !bytes || (in[0] == byte && !memcmp(in, in + 1, bytes - 1));
}

UNCHECKED static void add_run(const uint8_t *a, uint8_t *b, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		b[i] = (uint8_t)(a[i] + b[i]);
}

UNCHECKED static void compose_run(const uint8_t *f, uint8_t *g, size_t bytes)
{
	for (size_t i = 0; i < bytes; i += 2) {
		uint8_t a = (uint8_t)(f[i] * g[i]), b = (uint8_t)(f[i] * g[i + 1] + f[i + 1]);

		g[i] = a;
		g[i + 1] = b;
	}
}

static void by_runs(void (*run)(const uint8_t *a, uint8_t *b, size_t bytes), const uint8_t *in,
		    uint8_t *inout, size_t bytes)
{
	uint8_t a[RUN], b[RUN];

	for (size_t at = 0; at < bytes; at += RUN) {
		size_t length = run_at(at, bytes);

		memcpy(a, in + at, length);
		memcpy(b, inout + at, length);
		run(a, b, length);
		memcpy(inout + at, b, length);
	}
}

void oct_add(void *context, const void *in, void *inout, size_t count)
{
	(void)context;
	by_runs(add_run, in, inout, count);
}

void oct_compose(void *context, const void *in, void *inout, size_t count)
{
	(void)context;
	by_runs(compose_run, in, inout, 2 * count);
}

const struct oc_op oct_sum = { .apply = oct_add, .bytes = 1, .commutative = 1, .id = 1 };
const struct oc_op oct_composition = { .apply = oct_compose, .bytes = 2, .id = 2 };
