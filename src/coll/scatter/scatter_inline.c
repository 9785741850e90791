/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The others' blocks ride beside the root's flag.
 *
 * Wins while p - 1 blocks fit OCI_INLINE_BYTES. The root leaves at once.
 * Cost: one line transfer a reader, all at once.
 */
#include "coll/build.h"

static void build(struct oci_builder *b)
{
	const struct oci_plan_key *key = oci_builder_key(b);

	if (key->v == 0) {
		for (uint32_t v = 1; v < key->size; v++)
			oci_build_copy(b, oci_block_rel(OCI_BUF_SEND, v),
				       oci_block(OCI_BUF_INLINE, v - 1));
		oci_build_post(b, OCI_POST_FLAG, 1, 0);
		oci_build_copy(b, oci_block_rel(OCI_BUF_SEND, 0), oci_block(OCI_BUF_RECV, 0));
		return;
	}
	oci_build_wait_post(b, 0, 1, 1, 0);
	oci_build_pull(b, oci_block(OCI_BUF_RECV, 0), 0, oci_block(OCI_BUF_INLINE, key->v - 1));
}

static void cost(struct oci_costing *c)
{
	size_t n = c->shape->bytes;

	oci_cost_memcpy(c, c->shape->size - 1.0, n, n);
	oci_cost_flags(c, 1);
	oci_cost_fetch(c, 1, n, n);
	oci_cost_ops(c, c->shape->size + 2.0);
}

const struct oci_algorithm oci_scatter_inline = {
	.name = "inline",
	.idea = "the blocks ride in the flag's cache lines",
	.build = build,
	.cost = cost,
	.fits = oci_fits_inline_others,
};
