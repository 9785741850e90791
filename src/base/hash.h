/* SPDX-License-Identifier: BSD-3-Clause */
/* FNV-1a: equal on every rank for equal bytes, which is all that is asked of it. */
#ifndef OC_BASE_HASH_H
#define OC_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#define OCI_HASH_START 0xcbf29ce484222325u

static inline uint64_t oci_hash(uint64_t hash, const void *bytes, size_t count)
{
	const uint8_t *byte = bytes;

	for (size_t i = 0; i < count; i++)
		hash = (hash ^ byte[i]) * 0x100000001b3u;
	return hash;
}

#endif
