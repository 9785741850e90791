/* SPDX-License-Identifier: BSD-3-Clause */
/* The algorithms of Scatter, in the order of the list. */
#ifndef OC_COLL_SCATTER_H
#define OC_COLL_SCATTER_H

#include "coll/coll.h"

extern const struct oci_algorithm oci_scatter_inline, oci_scatter_cico, oci_scatter_throttled_read,
	oci_scatter_cooperative, oci_scatter_parallel_read, oci_scatter_sequential_write;

#endif
