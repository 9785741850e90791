/* SPDX-License-Identifier: BSD-3-Clause */
/* Algorithms of Scatterv; see src/coll/README.md. */
#ifndef OC_COLL_SCATTERV_H
#define OC_COLL_SCATTERV_H

#include "coll/coll.h"

extern const struct oci_algorithm oci_scatterv_throttled_read, oci_scatterv_parallel_read,
	oci_scatterv_sequential_write;

#endif
