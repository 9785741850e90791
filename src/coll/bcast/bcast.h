/* SPDX-License-Identifier: BSD-3-Clause */
/* The algorithms of Bcast, in the order of the list. */
#ifndef OC_COLL_BCAST_H
#define OC_COLL_BCAST_H

#include "coll/coll.h"

extern const struct oci_algorithm oci_bcast_inline, oci_bcast_cico, oci_bcast_direct_read,
	oci_bcast_knomial, oci_bcast_scatter_allgather, oci_bcast_cooperative,
	oci_bcast_direct_write, oci_bcast_hierarchical;

#endif
