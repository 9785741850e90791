/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is in the buffers of a call: oct_fill(), oct_byte().
 *
 * Bytes of the caller's buffers for a call without blocks; 0 where that rank has none. Of a
 * Reduce_scatter: with parts of `bytes` each.
 */
#ifndef OC_TESTS_CALL_BYTES_H
#define OC_TESTS_CALL_BYTES_H

#include "coll/coll.h"

size_t oct_send_bytes(enum oc_collective collective, size_t bytes, uint32_t size, bool is_root);
size_t oct_recv_bytes(enum oc_collective collective, size_t bytes, uint32_t size, bool is_root);

/* The byte that rank `from` means for rank `to` at offset i of call n; a block of them. */
uint8_t oct_byte(unsigned int n, uint32_t from, uint32_t to, size_t i);
void oct_fill(uint8_t *out, unsigned int n, uint32_t from, uint32_t to, size_t bytes);

#endif
