/* SPDX-License-Identifier: BSD-3-Clause */
/* Plain copies by this core: through the caches, or past them where they would only be emptied. */
#ifndef OC_COPY_MEMCPY_H
#define OC_COPY_MEMCPY_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Copies `bytes` that do not overlap, a part of `whole` that this operation copies in all. Where
 * that is to go past the caches, the stores stream, and are fenced here: a flag that is raised
 * afterwards comes after them.
 */
void oci_memcpy(void *to, const void *from, size_t bytes, size_t whole);

/* DMAmin of paper 001, section 3.5 (004, section 3.3): the size of the largest cache over twice the
 * cores that share it; source and destination of each of them fill it. Of a machine by the folder
 * that describes it, as OCI_SYSFS. SIZE_MAX: no cache is known. */
size_t oci_memcpy_dma_min(const char *sysfs);
/* That of this machine. */
size_t oci_memcpy_dma_min_here(void);
/* Is such a copy, more than DMAmin in all, to go past the caches: by streaming stores, or by a DMA
 * engine? Of short pieces none is. */
bool oci_memcpy_goes_past(size_t bytes, size_t whole);

#endif
