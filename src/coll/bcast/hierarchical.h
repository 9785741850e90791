/* SPDX-License-Identifier: BSD-3-Clause */
/* Down a tree by hierarchy, segment by segment: what Bcast hierarchical and the second stage of
 * Allgather gather-hierarchical have in common. */
#ifndef OC_COLL_HIERARCHICAL_H
#define OC_COLL_HIERARCHICAL_H

#include "coll/build.h"
#include "coll/tree.h"

/* v, which is not the root, reads all of `to` from its parent, where it is `from`, and hands each
 * segment on where others read from it. The root has it all at its POST of `step`. */
static inline void oci_build_down(struct oci_builder *b, const struct oci_tree *t,
				  struct oci_range to, struct oci_range from, uint16_t step)
{
	const struct oci_plan_key *key = oci_builder_key(b);
	uint32_t parent = oci_tree_parent(t, key->v);
	bool leaf = oci_tree_is_leaf(t, key->v), whole = parent == 0;

	if (whole)
		oci_build_wait_post(b, parent, 1, step, 0);
	if (whole && leaf) {
		oci_build_pull(b, to, parent, from);
		return;
	}
	oci_build_loop(b, to);
	if (!whole)
		oci_build_wait_post(b, parent, 1, 1, 1);
	oci_build_pull(b, oci_segmented(to), parent, oci_segmented(from));
	if (!leaf)
		oci_build_post(b, OCI_POST_ADDRESS, 1, 1);
	oci_build_next(b);
}

/* Acknowledgements of v's children. */
static inline void oci_build_wait_children(struct oci_builder *b, const struct oci_tree *t,
					   uint16_t step)
{
	const struct oci_plan_key *key = oci_builder_key(b);
	uint32_t child = key->v;

	while ((child = oci_tree_ascending(t, key->v, child)) != key->v)
		oci_build_wait_ack(b, child, 1, step, 0);
}

/* So many bytes down to the last level, acknowledged. */
static inline void oci_cost_down(struct oci_costing *c, size_t n)
{
	size_t segment = c->parameter < n ? c->parameter : n;
	uint32_t children, levels = oci_cost_tree(c->shape, &children);
	/* The first level's readers, all of the root's, read as a whole what is there from the
	 * start; each further level is a segment behind. */
	double segments = segment ? oci_cost_pieces(n, segment) : 1;

	if (levels == 1) {
		oci_cost_flags(c, 1);
		oci_cost_copies(c, OCI_MODEL_PULL, 1, n, children);
	} else {
		oci_cost_flags(c, segments + levels - 1);
		c->whole = n;
		oci_cost_copies(c, OCI_MODEL_PULL, segments + levels - 1, segment, children);
		c->whole = 0;
	}
	oci_cost_flag_row(c, children);
	oci_cost_ops(c, 3 + 3 * segments + levels);
}

#endif
