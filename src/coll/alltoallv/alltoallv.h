/* SPDX-License-Identifier: BSD-3-Clause */
/* Algorithms of Alltoallv and Alltoallw; see src/coll/README.md. */
#ifndef OC_COLL_ALLTOALLV_H
#define OC_COLL_ALLTOALLV_H

#include "coll/coll.h"

extern const struct oci_algorithm oci_alltoallv_pairwise, oci_alltoallv_point_to_point;

#endif
