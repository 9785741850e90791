/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The root copies the blocks into its slot, a piece of each in turn, and says how far it is; each
 * rank takes its own.
 *
 * Wins while p - 1 blocks fit a slot. The root leaves without waiting.
 * Cost: (p - 1) n memcpy in by the root, overlapped with n memcpy out by each rank.
 */
#include "coll/build.h"

static void build(struct oci_builder *b)
{
	const struct oci_plan_key *key = oci_builder_key(b);
	uint16_t ranks = (uint16_t)(key->size - 1);

	oci_build_segment(b, OCI_PIPELINE_ROOT_BYTES);
	oci_build_loop(b, oci_block(OCI_BUF_RECV, 0));
	if (key->v) {
		oci_build_wait_post(b, 0, 1, (uint16_t)key->v, ranks);
		oci_build_pull(b, oci_segmented(oci_block(OCI_BUF_RECV, 0)), 0,
			       oci_segmented(oci_block(OCI_BUF_SLOT, key->v - 1)));
		oci_build_next(b);
		return;
	}
	for (uint32_t v = 1; v < key->size; v++) {
		oci_build_copy(b, oci_segmented(oci_block_rel(OCI_BUF_SEND, v)),
			       oci_segmented(oci_block(OCI_BUF_SLOT, v - 1)));
		oci_build_post(b, v == 1 ? OCI_POST_SLOT : OCI_POST_FLAG, (uint16_t)v, ranks);
	}
	oci_build_next(b);
	oci_build_copy(b, oci_block_rel(OCI_BUF_SEND, 0), oci_block(OCI_BUF_RECV, 0));
}

static void cost(struct oci_costing *c)
{
	size_t n = c->shape->bytes;
	double pieces = oci_cost_pieces(n, OCI_PIPELINE_ROOT_BYTES), others = c->shape->size - 1.0;
	double before = oci_cost_total(&c->cost);

	oci_cost_flags(c, pieces);
	oci_cost_fetch(c, 1, n, n);
	/* A rank's pieces come as fast as the root fills those of all, or as it takes them. */
	oci_cost_fill_ahead(c, (size_t)others * n, (size_t)others * OCI_PIPELINE_ROOT_BYTES,
			    before);
	oci_cost_ops(c, 2 + 2 * pieces * others);
}

const struct oci_algorithm oci_scatter_cico = {
	.name = "cico",
	.idea = "through the root's slot in shared memory, pipelined",
	.build = build,
	.cost = cost,
	.fits = oci_fits_slot_others,
};
