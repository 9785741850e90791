/* SPDX-License-Identifier: BSD-3-Clause */
/* Algorithms of Gatherv; see src/coll/README.md. */
#ifndef OC_COLL_GATHERV_H
#define OC_COLL_GATHERV_H

#include "coll/coll.h"

extern const struct oci_algorithm oci_gatherv_throttled_write, oci_gatherv_parallel_write,
	oci_gatherv_sequential_read;

/* The root's plan where LARGE blocks are written to it, in whatever order. */
void oci_gatherv_build_root(struct oci_builder *b);

#endif
