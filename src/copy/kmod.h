/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernel module: what peers may copy of ours is registered (team/registration.h). */
#ifndef OC_COPY_KMOD_H
#define OC_COPY_KMOD_H

#include "copy/copy.h"
#include "team/registration.h"

/* A buffer with gaps, and the list of its pieces: as one, where the gaps that are pinned, too, are
 * less than a page each on average; else piece by piece, if they are few. */
void oci_register_layout(const struct oc_layout *layout);
/* The same of blocks that a table places from `base` on; no list. */
void oci_register_blocks(uint64_t base, const struct oc_block *blocks, size_t count);

/* Measured here: larger operations are quicker by a DMA engine. Not set, or 0: they are above
 * DMAmin (copy/memcpy.h). Before any copy. */
void oci_kmod_engines_above(size_t bytes);

/* Bytes that this process has copied so, and copies that went another way though the pair has this
 * one. */
struct oci_kmod_counts {
	uint64_t bytes, misses;
};
struct oci_kmod_counts oci_kmod_counts(void);
void oci_kmod_missed(void);

#endif
