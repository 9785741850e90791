/* SPDX-License-Identifier: BSD-3-Clause */
/* What Reduce and Allreduce over a tree (coll/tree.h) have in common. */
#ifndef OC_COLL_SUM_H
#define OC_COLL_SUM_H

#include "coll/tree.h"

/*
 * In a loop over segments: the operands of a rank's subtree, combined into `acc`. The children's
 * are pulled: a leaf's from its SEND (its POST 1, without a loop), another's from `partial` in its
 * memory (its POST of step 1, step_loop 1).
 *
 * `in_order`, the tree is: from the last child to the first. Else those that are ready soonest
 * come first: the leaves. The rank's own operand is applied last, so never copied.
 */
void oci_build_sum(struct oci_builder *b, const struct oci_tree *t, bool in_order,
		   enum oci_buf partial, struct oci_range acc);

#endif
