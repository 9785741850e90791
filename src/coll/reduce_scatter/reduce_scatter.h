/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The algorithms of Reduce_scatter_block and Reduce_scatter, in the order of the list: rank v gets
 * block v of the reduction.
 */
#ifndef OC_COLL_REDUCE_SCATTER_H
#define OC_COLL_REDUCE_SCATTER_H

#include "coll/coll.h"

extern const struct oci_algorithm oci_reduce_scatter_inline, oci_reduce_scatter_cico,
	oci_reduce_scatter_sliced;

#endif
