/* SPDX-License-Identifier: BSD-3-Clause */
/* The algorithms of Gather, in the order of the list. */
#ifndef OC_COLL_GATHER_H
#define OC_COLL_GATHER_H

#include "coll/coll.h"

extern const struct oci_algorithm oci_gather_inline, oci_gather_cico, oci_gather_throttled_write,
	oci_gather_cooperative, oci_gather_parallel_write, oci_gather_sequential_read;

#endif
