/* SPDX-License-Identifier: BSD-3-Clause */
/* The algorithms of Exscan that are not those of Scan. */
#ifndef OC_COLL_EXSCAN_H
#define OC_COLL_EXSCAN_H

#include "coll/coll.h"

extern const struct oci_algorithm oci_exscan_chain;

#endif
