/* SPDX-License-Identifier: BSD-3-Clause */
/* Algorithms of Gatherv; see src/coll/README.md. */
#ifndef OC_COLL_GATHERV_H
#define OC_COLL_GATHERV_H

#include "coll/coll.h"

extern const struct oci_algorithm oci_gatherv_throttled_write;

#endif
