/* SPDX-License-Identifier: BSD-3-Clause */
/* The algorithms of Bcast, in the order of the list. */
#ifndef OC_COLL_BCAST_H
#define OC_COLL_BCAST_H

#include "coll/coll.h"

extern const struct oci_algorithm oci_bcast_inline, oci_bcast_cico, oci_bcast_direct_read,
	oci_bcast_knomial, oci_bcast_scatter_allgather, oci_bcast_cooperative,
	oci_bcast_direct_write, oci_bcast_hierarchical, oci_bcast_scatter_ring_neighbor,
	oci_bcast_scatter_ring_write, oci_bcast_scatter_doubling, oci_bcast_scatter_bruck;

/* A step beyond those of ranks that get the parts of a message one after the other in fewer than 64
 * steps: at which the root, which has them all, posts. */
#define OCI_BCAST_ALL 64
/* A rank other than the root reads its part and posts its address as step 1. */
void oci_bcast_build_scatter(struct oci_builder *b);

#endif
