/* SPDX-License-Identifier: BSD-3-Clause */
/* The algorithms of Allreduce, in the order of the list. */
#ifndef OC_COLL_ALLREDUCE_H
#define OC_COLL_ALLREDUCE_H

#include "coll/tree.h"

extern const struct oci_algorithm oci_allreduce_inline, oci_allreduce_cico,
	oci_allreduce_cico_sliced, oci_allreduce_sliced, oci_allreduce_tree,
	oci_allreduce_hierarchical;

/* The plan over a tree, which is `in_order` for an operation that does not commute. */
void oci_allreduce_build_by(struct oci_builder *b, const struct oci_tree *t, bool in_order);

#endif
