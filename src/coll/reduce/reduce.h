/* SPDX-License-Identifier: BSD-3-Clause */
/* The algorithms of Reduce, in the order of the list. */
#ifndef OC_COLL_REDUCE_H
#define OC_COLL_REDUCE_H

#include "coll/tree.h"

extern const struct oci_algorithm oci_reduce_inline, oci_reduce_cico, oci_reduce_sliced,
	oci_reduce_tree, oci_reduce_hierarchical;

/* The plan over a tree, which is `in_order` for an operation that does not commute. */
void oci_reduce_build_by(struct oci_builder *b, const struct oci_tree *t, bool in_order);

#endif
