/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/call_bytes.h"

size_t oct_send_bytes(enum oc_collective collective, size_t bytes, uint32_t size, bool is_root)
{
	return oci_send_blocks(collective, size, is_root) * bytes;
}

size_t oct_recv_bytes(enum oc_collective collective, size_t bytes, uint32_t size, bool is_root)
{
	if (collective == OC_BCAST) /* what is in its one buffer afterwards */
		return bytes;
	return oci_recv_blocks(collective, size, is_root) * bytes;
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
