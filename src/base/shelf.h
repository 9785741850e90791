/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory of calls, kept for the next one: malloc gives large blocks back to the kernel, and the
 * next call would fault in every page anew, which takes longer than to copy what is on it.
 */
#ifndef OC_BASE_SHELF_H
#define OC_BASE_SHELF_H

#include <stddef.h>

/* By any thread. Aligned to 128 bytes; NULL where there is no memory. */
void *oci_shelf_get(size_t bytes);
/* NULL: nothing. */
void oci_shelf_put(void *memory);
/* What another thread of the parent's was about to keep is left to itself. */
void oci_shelf_fork_child(void);

#endif
