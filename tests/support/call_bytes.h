/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is in the buffers of a call: oct_fill(), oct_byte(); what reduces them: oct_add(),
 * oct_compose().
 *
 * Bytes of the caller's buffers for a call without blocks; 0 where that rank has none. Of a
 * Reduce_scatter: with parts of `bytes` each.
 */
#ifndef OC_TESTS_CALL_BYTES_H
#define OC_TESTS_CALL_BYTES_H

#include <stdbool.h>

#include "coll/coll.h"

size_t oct_send_bytes(enum oc_collective collective, size_t bytes, uint32_t size, bool is_root);
size_t oct_recv_bytes(enum oc_collective collective, size_t bytes, uint32_t size, bool is_root);

/* The byte that rank `from` means for rank `to` at offset i of call n; a block of them. */
uint8_t oct_byte(unsigned int n, uint32_t from, uint32_t to, size_t i);
void oct_fill(uint8_t *out, unsigned int n, uint32_t from, uint32_t to, size_t bytes);
/* Those from `first` on, a multiple of OCT_RUN. */
#define OCT_RUN 256
void oct_fill_from(uint8_t *out, unsigned int n, uint32_t from, uint32_t to, size_t first,
		   size_t bytes);
/* Are they what oct_fill() makes? Is each of them `byte`? */
bool oct_filled(const uint8_t *in, unsigned int n, uint32_t from, uint32_t to, size_t bytes);
bool oct_all(const uint8_t *in, uint8_t byte, size_t bytes);

/* Operations. Bytes: a sum; two bytes an element: x -> a x + b, associative, does not commute. */
void oct_add(void *context, const void *in, void *inout, size_t count);
void oct_compose(void *context, const void *in, void *inout, size_t count);
extern const struct oc_op oct_sum, oct_composition;

#endif
