/* SPDX-License-Identifier: BSD-3-Clause */
/* The algorithms of Barrier, in the order of the list. */
#ifndef OC_COLL_BARRIER_H
#define OC_COLL_BARRIER_H

#include "coll/coll.h"

extern const struct oci_algorithm oci_barrier_flat, oci_barrier_dissemination, oci_barrier_tree;

#endif
