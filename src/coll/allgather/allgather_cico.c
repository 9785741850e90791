/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * inline: each rank puts its block beside its flag; everyone collects them. Wins up to
 * OCI_INLINE_BYTES a block. Cost: (p - 1) line transfers a rank.
 *
 * cico: each rank copies its block into its slot, everyone copies all of them out. Wins where a
 * system call costs more than a second copy. Cost: n memcpy in, n memcpy of the own block, (p - 1)
 * n memcpy out.
 */
#include "coll/build.h"

static void build(struct oci_builder *b)
{
	const struct oci_plan_key *key = oci_builder_key(b);
	struct oci_range mine = oci_by_piece(b, oci_block(OCI_BUF_SEND, 0));

	oci_stage_begin(b, oci_block(OCI_BUF_SEND, 0));
	oci_build_copy(b, mine, oci_stage(b));
	oci_stage_post(b);
	oci_build_copy(b, mine, oci_by_piece(b, oci_block(OCI_BUF_RECV, key->v)));
	oci_stage_end(b);
	for (uint32_t i = 1; i < key->size; i++) {
		uint32_t source = oci_next(key, i);
		struct oci_range block = oci_block(OCI_BUF_RECV, source);

		oci_stage_begin(b, block);
		oci_stage_wait(b, source);
		oci_build_pull(b, oci_by_piece(b, block), source, oci_stage(b));
		oci_stage_end(b);
	}
}

static void cost(struct oci_costing *c)
{
	size_t n = c->shape->bytes;
	double others = c->shape->size - 1.0;

	oci_cost_stage(c, 1, n);
	oci_cost_touch(c, OCI_TOUCH_OWN, OCI_BY_ONE, 1, n);
	oci_cost_touch(c, OCI_TOUCH_PEERS, OCI_BY_ALL, others, n);
	/* A peer's pieces were all there when its first was awaited. */
	oci_cost_flags(c, others);
	oci_cost_ops(c, oci_cost_stage_pieces(c) * (3 + 2 * others));
}

const struct oci_algorithm oci_allgather_inline = {
	.name = "inline",
	.idea = "each block rides in its rank's flag lines",
	.build = build,
	.cost = cost,
	.fits = oci_fits_inline_one,
};

const struct oci_algorithm oci_allgather_cico = {
	.name = "cico",
	.idea = "through each rank's slot in shared memory",
	.build = build,
	.cost = cost,
	.piece = OCI_PIPELINE_BYTES,
	.fits = oci_fits_slot_one,
};
