/* SPDX-License-Identifier: BSD-3-Clause */
/* The algorithms of Allreduce, in the order of the list. */
#ifndef OC_COLL_ALLREDUCE_H
#define OC_COLL_ALLREDUCE_H

#include "coll/coll.h"

extern const struct oci_algorithm oci_allreduce_inline, oci_allreduce_cico,
	oci_allreduce_cico_sliced, oci_allreduce_sliced;

#endif
