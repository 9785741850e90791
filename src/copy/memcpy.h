/* SPDX-License-Identifier: BSD-3-Clause */
/* Plain copies by this core: through the caches, or past them where they would only be emptied. */
#ifndef OC_COPY_MEMCPY_H
#define OC_COPY_MEMCPY_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Copies `bytes` that do not overlap, a part of `whole` that this operation copies in all. Above
 * oci_memcpy_streams_above() the stores stream, and are fenced here: a flag that is raised
 * afterwards comes after them.
 */
void oci_memcpy(void *to, const void *from, size_t bytes, size_t whole);

/* DMAmin of paper 001, section 3.5 (004, section 3.3): the size of the largest cache over twice the
 * cores that share it; source and destination of each of them fill it. Of a machine by the folder
 * that describes it, as OCI_SYSFS. SIZE_MAX: no cache is known. */
size_t oci_memcpy_dma_min(const char *sysfs);
/* That of this machine; SIZE_MAX, too, where it has no streaming store. */
size_t oci_memcpy_streams_above(void);
/* Does it stream what copies so much in all? */
bool oci_memcpy_streams(size_t whole);

#endif
