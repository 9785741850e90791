/* SPDX-License-Identifier: BSD-3-Clause */
/* The algorithms of Reduce, in the order of the list. */
#ifndef OC_COLL_REDUCE_H
#define OC_COLL_REDUCE_H

#include "coll/coll.h"

extern const struct oci_algorithm oci_reduce_inline, oci_reduce_cico, oci_reduce_sliced;

#endif
