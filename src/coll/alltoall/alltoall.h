/* SPDX-License-Identifier: BSD-3-Clause */
/* The algorithms of Alltoall, in the order of the list. */
#ifndef OC_COLL_ALLTOALL_H
#define OC_COLL_ALLTOALL_H

#include "coll/coll.h"

/* alltoall_pairwise.c: blocks that change places. */
void oci_build_alltoall_in_place(struct oci_builder *b);

extern const struct oci_algorithm oci_alltoall_inline, oci_alltoall_cico, oci_alltoall_pairwise,
	oci_alltoall_bruck, oci_alltoall_shm, oci_alltoall_point_to_point;

#endif
