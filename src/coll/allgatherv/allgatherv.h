/* SPDX-License-Identifier: BSD-3-Clause */
/* Algorithms of Allgatherv; see src/coll/README.md. */
#ifndef OC_COLL_ALLGATHERV_H
#define OC_COLL_ALLGATHERV_H

#include "coll/coll.h"

extern const struct oci_algorithm oci_allgatherv_ring_source_read, oci_allgatherv_ring_neighbor,
	oci_allgatherv_ring_source_write, oci_allgatherv_gather_bcast;

#endif
