/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bytes of the caller's buffers for a call without blocks; 0 where that rank has none. Of a
 * Reduce_scatter: with parts of `bytes` each.
 */
#ifndef OC_TESTS_CALL_BYTES_H
#define OC_TESTS_CALL_BYTES_H

#include "coll/coll.h"

size_t oct_send_bytes(enum oci_collective collective, size_t bytes, uint32_t size, bool is_root);
size_t oct_recv_bytes(enum oci_collective collective, size_t bytes, uint32_t size, bool is_root);

#endif
