/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * inline: everyone combines the operands out of the flags' cache lines. Wins up to
 * OCI_INLINE_BYTES. Cost: (p - 1) line transfers and (p - 1) n reduced on every rank.
 *
 * cico: each rank copies its operand piece by piece into its slot; everyone combines all of them.
 * Wins for small messages: one synchronisation. Cost: n memcpy and (p - 1) n reduced out of the
 * slots, on every rank.
 *
 * All ranks associate alike, so their results are identical.
 */
#include "coll/build.h"

static void build(struct oci_builder *b)
{
	struct oci_reduction r = oci_staged_reduction(b);

	oci_stage_begin(b, oci_block(OCI_BUF_SEND, 0));
	oci_build_copy(b, r.mine, r.remote);
	oci_stage_post(b);
	oci_build_reduction(b, &r);
	oci_build_copy(b, r.acc, oci_by_piece(b, oci_block(OCI_BUF_RECV, 0)));
	oci_stage_end(b);
}

static void cost(struct oci_costing *c)
{
	size_t n = c->shape->bytes;
	double pieces = oci_cost_stage_pieces(c), others = c->shape->size - 1.0;

	oci_cost_stage(c, 1, n);
	oci_cost_touch(c, OCI_TOUCH_OWN, OCI_BY_ONE, 1, n);
	oci_cost_flags(c, pieces * others);
	oci_cost_reduce(c, OCI_TOUCH_PEERS, others, n);
	oci_cost_ops(c, pieces * (3 + 2 * others));
}

const struct oci_algorithm oci_allreduce_inline = {
	.name = "inline",
	.idea = "operands ride in the flags' cache lines",
	.build = build,
	.cost = cost,
	.fits = oci_fits_inline_one,
};

const struct oci_algorithm oci_allreduce_cico = {
	.name = "cico",
	.idea = "everyone combines what lies in the ranks' slots",
	.build = build,
	.cost = cost,
	.piece = OCI_PIPELINE_BYTES,
	.fits = oci_fits_slot_one,
};
