/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Trees over the ranks of a team, for plans: by radix (pattern/knomial.h) or by hierarchy
 * (topo/hierarchy.h); and rings.
 *
 * By hierarchy: the root leads every group that it is in, else the lowest rank does. A rank's
 * parent is the leader of the narrowest group that it does not lead itself, or the root. So each
 * package gets the bytes once, then each NUMA node in it, then each cache. Without a hierarchy all
 * ranks are children of the root.
 *
 * A ring by hierarchy goes through all ranks of a group before it goes on to the next.
 *
 * In order: for a reduction that does not commute. The ranks below a child are consecutive, all of
 * them are above the parent, and children ascend. Then rank 0 is the tree's root, whoever is the
 * call's; where groups are not runs of ranks, it is a binomial tree instead.
 */
#ifndef OC_COLL_TREE_H
#define OC_COLL_TREE_H

#include "coll/coll.h"

/* Ranks are v's of the key, for plans; inside, trees are of absolute ranks (with key->root 0 the
 * same). */
struct oci_tree {
	const struct oci_hierarchy *hierarchy;
	uint32_t size, root; /* of the key */
	uint32_t radix;	     /* k of a k-nomial tree; 0: by hierarchy */
	uint32_t top;	     /* absolute rank of the tree's root */
};

struct oci_tree oci_tree_by_hierarchy(const struct oci_plan_key *key, bool in_order);

/* The root of the tree. */
uint32_t oci_tree_top(const struct oci_tree *t);
/* The parent of v, which is not the root. */
uint32_t oci_tree_parent(const struct oci_tree *t, uint32_t v);
/* The child of v after this one, in ascending or descending order of absolute ranks; `child` = v:
 * the first. v past the last. */
uint32_t oci_tree_ascending(const struct oci_tree *t, uint32_t v, uint32_t child);
uint32_t oci_tree_descending(const struct oci_tree *t, uint32_t v, uint32_t child);

static inline bool oci_tree_is_leaf(const struct oci_tree *t, uint32_t v)
{
	return oci_tree_ascending(t, v, v) == v;
}

/* The rank before this one in the ring by hierarchy (NULL: in the order of ranks), or behind it.
 * Absolute ranks. */
uint32_t oci_ring_next(const struct oci_hierarchy *hierarchy, uint32_t size, uint32_t rank,
		       bool before);

/*
 * In a loop over segments: the operands of a rank's subtree, combined into `acc`. The children's
 * are pulled: a leaf's from its SEND (its POST 1, without a loop), another's from `partial` in its
 * memory (its POST of step 1, step_loop 1).
 *
 * Of an operation that does not commute, from the last child to the first, of a tree in order. Else
 * those that are ready soonest come first: the leaves. The rank's own operand is applied last, so
 * never copied.
 */
void oci_build_sum(struct oci_builder *b, const struct oci_tree *t, enum oci_buf partial,
		   struct oci_range acc);
/* The tree of the algorithm whose plan is being built, by its parameter as the radix or by
 * hierarchy with the parameter as the segment; begins the plan. */
struct oci_tree oci_sum_tree(struct oci_builder *b);

#endif
