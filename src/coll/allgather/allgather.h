/* SPDX-License-Identifier: BSD-3-Clause */
/* The algorithms of Allgather, in the order of the list. */
#ifndef OC_COLL_ALLGATHER_H
#define OC_COLL_ALLGATHER_H

#include "coll/coll.h"

extern const struct oci_algorithm oci_allgather_inline, oci_allgather_cico,
	oci_allgather_ring_source_read, oci_allgather_ring_neighbor,
	oci_allgather_ring_source_write, oci_allgather_recursive_doubling, oci_allgather_bruck,
	oci_allgather_gather_bcast;

#endif
