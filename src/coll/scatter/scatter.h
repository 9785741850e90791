/* SPDX-License-Identifier: BSD-3-Clause */
/* Algorithms of Scatter that Gather does not mirror; the others are in coll/rooted. */
#ifndef OC_COLL_SCATTER_H
#define OC_COLL_SCATTER_H

#include "coll/coll.h"

extern const struct oci_algorithm oci_scatter_inline, oci_scatter_cico;

#endif
