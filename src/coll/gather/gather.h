/* SPDX-License-Identifier: BSD-3-Clause */
/* Algorithms of Gather that Scatter does not mirror; the others are in coll/rooted. */
#ifndef OC_COLL_GATHER_H
#define OC_COLL_GATHER_H

#include "coll/coll.h"

extern const struct oci_algorithm oci_gather_inline, oci_gather_cico;

#endif
