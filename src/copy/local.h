/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_COPY_LOCAL_H
#define OC_COPY_LOCAL_H

#include <stddef.h>
#include <stdint.h>

/* From here on a copy of a rank's own block goes past the cache. */
#define OCI_STREAM_BYTES ((size_t)512 << 10)

/* memcpy, ordered before a flag raised afterwards. The buffers do not overlap. */
void oci_copy_local(void *to, const void *from, size_t bytes);

#endif
