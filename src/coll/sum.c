/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll/sum.h"

#include "coll/build.h"

struct sum {
	struct oci_builder *b;
	const struct oci_tree *t;
	enum oci_buf partial;
	struct oci_range acc;
	bool begun;
};

static void add_child(struct sum *s, uint32_t child)
{
	struct oci_range temp = oci_segmented(oci_block(OCI_BUF_TEMP, 0)), from;
	bool leaf = oci_tree_is_leaf(s->t, child);

	from = oci_segmented(oci_block(leaf ? OCI_BUF_SEND : s->partial, 0));
	oci_build_wait_post(s->b, child, 1, 1, leaf ? 0 : 1);
	oci_build_pull(s->b, s->begun ? temp : s->acc, child, from);
	if (s->begun)
		oci_build_reduce(s->b, temp, s->acc);
	s->begun = true;
}

void oci_build_sum(struct oci_builder *b, const struct oci_tree *t, bool in_order,
		   enum oci_buf partial, struct oci_range acc)
{
	struct sum s = { .b = b, .t = t, .partial = partial, .acc = acc };
	struct oci_range mine = oci_segmented(oci_block(OCI_BUF_SEND, 0));
	uint32_t v = oci_builder_key(b)->v, child = v;

	while (in_order && (child = oci_tree_descending(t, v, child)) != v)
		add_child(&s, child);
	for (int leaves = 1; !in_order && leaves >= 0; leaves--)
		while ((child = oci_tree_ascending(t, v, child)) != v)
			if (oci_tree_is_leaf(t, child) == leaves)
				add_child(&s, child);
	if (s.begun)
		oci_build_reduce(b, mine, acc);
	else
		oci_build_copy(b, mine, acc);
}
