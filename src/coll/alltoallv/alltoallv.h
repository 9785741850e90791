/* SPDX-License-Identifier: BSD-3-Clause */
/* Algorithms of Alltoallv and Alltoallw; see src/coll/README.md. */
#ifndef OC_COLL_ALLTOALLV_H
#define OC_COLL_ALLTOALLV_H

#include "coll/coll.h"

/* alltoallv_pairwise.c: LARGE blocks, from `limit` on, change places with those of all others. */
void oci_build_alltoallv_trade(struct oci_builder *b, uint32_t limit);

extern const struct oci_algorithm oci_alltoallv_pairwise, oci_alltoallv_point_to_point;

#endif
