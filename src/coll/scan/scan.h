/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The algorithms of Scan, in the order of the list. Operands are always combined in the order of
 * the ranks; the first two serve Exscan too, whose rank v leaves out its own.
 */
#ifndef OC_COLL_SCAN_H
#define OC_COLL_SCAN_H

#include "coll/coll.h"

extern const struct oci_algorithm oci_scan_inline, oci_scan_cico, oci_scan_chain;

#endif
