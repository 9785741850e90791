/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * inline: each rank puts its block beside its flag; the root collects them. Wins up to
 * OCI_INLINE_BYTES a block. Cost: (p - 1) line transfers into the root, in flight together.
 *
 * cico: each rank copies its block piece by piece into its slot, the root copies them out. Wins
 * where a system call costs more than a second copy. Cost: n memcpy in on each rank, overlapped
 * with (p - 1) n memcpy out on the root.
 *
 * Nobody waits for the root.
 */
#include "coll/build.h"

static void build(struct oci_builder *b)
{
	const struct oci_plan_key *key = oci_builder_key(b);
	struct oci_range mine = oci_block(OCI_BUF_SEND, 0);

	if (key->v) {
		oci_stage_begin(b, mine);
		oci_build_copy(b, oci_by_piece(b, mine), oci_stage(b));
		oci_stage_post(b);
		oci_stage_end(b);
		return;
	}
	oci_build_copy(b, mine, oci_block_rel(OCI_BUF_RECV, 0));
	for (uint32_t v = 1; v < key->size; v++) {
		struct oci_range there = oci_block_rel(OCI_BUF_RECV, v);

		oci_stage_begin(b, there);
		oci_stage_wait(b, v);
		oci_build_pull(b, oci_by_piece(b, there), v, oci_stage(b));
		oci_stage_end(b);
	}
}

static void cost(struct oci_costing *c)
{
	size_t n = c->shape->bytes;
	double pieces = oci_cost_stage_pieces(c), others = c->shape->size - 1.0;
	double before = oci_cost_total(&c->cost);

	oci_cost_flags(c, pieces);
	oci_cost_touch(c, OCI_TOUCH_PEERS, OCI_BY_ONE, 1, n);
	oci_cost_stage_ahead(c, before);
	/* The others' stages are full by then. */
	oci_cost_flags(c, others - 1);
	oci_cost_touch(c, OCI_TOUCH_PEERS, OCI_BY_ONE, others - 1, n);
	oci_cost_ops(c, (c->piece ? 3 : 2) + 2 * pieces * others);
}

const struct oci_algorithm oci_gather_inline = {
	.name = "inline",
	.idea = "each block rides in its rank's flag lines",
	.build = build,
	.cost = cost,
	.fits = oci_fits_inline_one,
};

const struct oci_algorithm oci_gather_cico = {
	.name = "cico",
	.idea = "through each rank's slot in shared memory, pipelined",
	.build = build,
	.cost = cost,
	.piece = OCI_PIPELINE_ROOT_BYTES,
	.fits = oci_fits_slot_one,
};
