/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Each rank puts its block beside its flag; the root collects them.
 *
 * Wins up to OCI_INLINE_BYTES a block. Nobody waits for the root.
 * Cost: (p - 1) line transfers into the root, in flight together.
 */
#include "coll/build.h"
#include "coll/cost.h"
#include "coll/gather/gather.h"

static void build(struct oci_builder *b)
{
	const struct oci_plan_key *key = oci_builder_key(b);

	if (key->v) {
		oci_build_copy(b, oci_block(OCI_BUF_SEND, 0), oci_block(OCI_BUF_INLINE, 0));
		oci_build_post(b, OCI_POST_FLAG, 1, 0);
		return;
	}
	oci_build_copy(b, oci_block(OCI_BUF_SEND, 0), oci_block_rel(OCI_BUF_RECV, 0));
	for (uint32_t v = 1; v < key->size; v++) {
		oci_build_wait_post(b, v, 1, 1, 0);
		oci_build_pull(b, oci_block_rel(OCI_BUF_RECV, v), v, oci_block(OCI_BUF_INLINE, 0));
	}
}

static void cost(struct oci_costing *c)
{
	size_t n = c->shape->bytes;

	oci_cost_memcpy(c, 1, n, n);
	oci_cost_flags(c, c->shape->size - 1.0);
	oci_cost_fetch(c, c->shape->size - 1.0, n, n);
	oci_cost_ops(c, 2.0 * c->shape->size);
}

const struct oci_algorithm oci_gather_inline = {
	.name = "inline",
	.idea = "each block rides in its rank's flag lines",
	.build = build,
	.cost = cost,
	.fits = oci_fits_inline_one,
};
