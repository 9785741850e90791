/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Each rank puts the others' blocks beside its flag; everyone takes its own from each.
 *
 * Wins while p - 1 blocks fit OCI_INLINE_BYTES. Cost: (p - 1) line transfers a rank.
 */
#include "coll/build.h"

static void build(struct oci_builder *b)
{
	const struct oci_plan_key *key = oci_builder_key(b);

	/* Block i - 1 of the payload is for rank v + i. */
	for (uint32_t i = 1; i < key->size; i++)
		oci_build_copy(b, oci_block(OCI_BUF_SEND, oci_next(key, i)),
			       oci_block(OCI_BUF_INLINE, i - 1));
	oci_build_post(b, OCI_POST_FLAG, 1, 0);
	oci_build_copy(b, oci_block(OCI_BUF_SEND, key->v), oci_block(OCI_BUF_RECV, key->v));
	for (uint32_t i = 1; i < key->size; i++) {
		uint32_t source = oci_previous(key, i);

		oci_build_wait_post(b, source, 1, 1, 0);
		oci_build_pull(b, oci_block(OCI_BUF_RECV, source), source,
			       oci_block(OCI_BUF_INLINE, i - 1));
	}
}

static void cost(struct oci_costing *c)
{
	size_t n = c->shape->bytes;
	double others = c->shape->size - 1.0;

	oci_cost_memcpy(c, 1 + others, n, n);
	oci_cost_fetch(c, others, n, n);
	oci_cost_flags(c, others);
	oci_cost_ops(c, 2 + 3 * others);
}

const struct oci_algorithm oci_alltoall_inline = {
	.name = "inline",
	.idea = "the blocks ride in their rank's flag lines",
	.build = build,
	.cost = cost,
	.fits = oci_fits_inline_others,
};
