/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Each rank puts its block beside its flag; everyone collects them.
 *
 * Wins up to OCI_INLINE_BYTES a block. Cost: (p - 1) line transfers a rank.
 */
#include "coll/allgather/allgather.h"
#include "coll/build.h"
#include "coll/cost.h"

static void build(struct oci_builder *b)
{
	const struct oci_plan_key *key = oci_builder_key(b);

	oci_build_copy(b, oci_block(OCI_BUF_SEND, 0), oci_block(OCI_BUF_INLINE, 0));
	oci_build_post(b, OCI_POST_FLAG, 1, 0);
	oci_build_copy(b, oci_block(OCI_BUF_SEND, 0), oci_block(OCI_BUF_RECV, key->v));
	for (uint32_t i = 1; i < key->size; i++) {
		uint32_t source = oci_next(key, i);

		oci_build_wait_post(b, source, 1, 1, 0);
		oci_build_pull(b, oci_block(OCI_BUF_RECV, source), source,
			       oci_block(OCI_BUF_INLINE, 0));
	}
}

static void cost(struct oci_costing *c)
{
	size_t n = c->shape->bytes;
	double others = c->shape->size - 1.0;

	oci_cost_memcpy(c, 2, n, n);
	oci_cost_fetch(c, others, n, n);
	oci_cost_flags(c, others);
	oci_cost_ops(c, 3 + 2 * others);
}

const struct oci_algorithm oci_allgather_inline = {
	.name = "inline",
	.idea = "each block rides in its rank's flag lines",
	.build = build,
	.cost = cost,
	.fits = oci_fits_inline_one,
};
