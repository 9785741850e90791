/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/call_bytes.h"

size_t oct_send_bytes(enum oc_collective collective, size_t bytes, uint32_t size, bool is_root)
{
	switch (collective) {
	case OC_BARRIER:
		return 0;
	case OC_SCATTER:
		return is_root ? size * bytes : 0;
	case OC_ALLTOALL:
	case OC_REDUCE_SCATTER_BLOCK:
	case OC_REDUCE_SCATTER:
		return size * bytes;
	default:
		return bytes;
	}
}

size_t oct_recv_bytes(enum oc_collective collective, size_t bytes, uint32_t size, bool is_root)
{
	switch (collective) {
	case OC_BARRIER:
		return 0;
	case OC_BCAST:
	case OC_SCATTER:
	case OC_ALLREDUCE:
	case OC_REDUCE_SCATTER_BLOCK:
	case OC_REDUCE_SCATTER:
	case OC_SCAN:
	case OC_EXSCAN:
		return bytes;
	case OC_GATHER:
		return is_root ? size * bytes : 0;
	case OC_REDUCE:
		return is_root ? bytes : 0;
	default:
		return size * bytes;
	}
}

/* What makes bytes would be the longest part of tests by far with the sanitizers. */
#define UNCHECKED __attribute__((no_sanitize("address", "undefined")))

UNCHECKED uint8_t oct_byte(unsigned int n, uint32_t from, uint32_t to, size_t i)
{
	return (uint8_t)(n * 131 + from * 29 + to * 7 + i + (i >> 8) * 3 + (i >> 16));
}

UNCHECKED void oct_fill(uint8_t *out, unsigned int n, uint32_t from, uint32_t to, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		out[i] = oct_byte(n, from, to, i);
}
