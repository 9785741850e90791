/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * inline: the others' blocks ride beside the root's flag. Wins while p - 1 blocks fit
 * OCI_INLINE_BYTES. Cost: one line transfer a reader, all at once.
 *
 * cico: the root copies the blocks into its slot, a piece of each in turn, and says how far it is;
 * each rank takes its own. Wins while p - 1 blocks fit a slot. Cost: (p - 1) n memcpy in by the
 * root, overlapped with n memcpy out by each rank.
 *
 * The root leaves without waiting.
 */
#include "coll/build.h"

static void build(struct oci_builder *b)
{
	const struct oci_plan_key *key = oci_builder_key(b);
	uint32_t piece = oci_building(b)->piece;
	enum oci_buf buf = piece ? OCI_BUF_SLOT : OCI_BUF_INLINE;
	struct oci_range mine = oci_block(OCI_BUF_RECV, 0);
	/* A step for each rank, again for each piece; or one for all. */
	uint16_t loop = piece ? (uint16_t)(key->size - 1) : 0;

	oci_stage_begin(b, mine);
	if (key->v) {
		oci_build_wait_post(b, 0, 1, piece ? (uint16_t)key->v : 1, loop);
		oci_build_pull(b, oci_by_piece(b, mine), 0,
			       oci_by_piece(b, oci_block(buf, key->v - 1)));
		oci_stage_end(b);
		return;
	}
	for (uint32_t v = 1; v < key->size; v++) {
		oci_build_copy(b, oci_by_piece(b, oci_block_rel(OCI_BUF_SEND, v)),
			       oci_by_piece(b, oci_block(buf, v - 1)));
		if (piece)
			oci_build_post(b, v == 1 ? OCI_POST_SLOT : OCI_POST_FLAG, (uint16_t)v,
				       loop);
	}
	if (!piece)
		oci_build_post(b, OCI_POST_FLAG, 1, 0);
	oci_stage_end(b);
	oci_build_copy(b, oci_block_rel(OCI_BUF_SEND, 0), mine);
}

static void cost_inline(struct oci_costing *c)
{
	size_t n = c->shape->bytes;

	oci_cost_touch(c, OCI_TOUCH_OWN, OCI_BY_ONE, c->shape->size - 1.0, n);
	oci_cost_flags(c, 1);
	oci_cost_touch(c, OCI_TOUCH_PEERS, OCI_BY_ONE, 1, n);
	oci_cost_ops(c, c->shape->size + 2.0);
}

static void cost_cico(struct oci_costing *c)
{
	size_t n = c->shape->bytes;
	double pieces = oci_cost_pieces(n, OCI_PIPELINE_ROOT_BYTES), others = c->shape->size - 1.0;
	double before = oci_cost_total(&c->cost);

	oci_cost_flags(c, pieces);
	oci_cost_touch(c, OCI_TOUCH_PEERS, OCI_BY_ONE, 1, n);
	/* A rank's pieces come as fast as the root fills those of all, or as it takes them. */
	oci_cost_fill_ahead(c, (size_t)others * n, (size_t)others * OCI_PIPELINE_ROOT_BYTES,
			    before);
	oci_cost_ops(c, 2 + 2 * pieces * others);
}

const struct oci_algorithm oci_scatter_inline = {
	.name = "inline",
	.idea = "the blocks ride in the flag's cache lines",
	.build = build,
	.cost = cost_inline,
	.fits = oci_fits_inline_others,
};

const struct oci_algorithm oci_scatter_cico = {
	.name = "cico",
	.idea = "through the root's slot in shared memory, pipelined",
	.build = build,
	.cost = cost_cico,
	.piece = OCI_PIPELINE_ROOT_BYTES,
	.fits = oci_fits_slot_others,
};
