/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * inline: the root combines the operands out of the flags' cache lines. Wins up to
 * OCI_INLINE_BYTES. Cost: (p - 1) line transfers into the root and (p - 1) n reduced.
 *
 * cico: each rank copies its operand piece by piece into its slot; the root combines them from
 * there, without a copy of its own. Wins where a system call costs more than a copy. Cost: n memcpy
 * on each rank, overlapped with (p - 1) n reduced out of the slots.
 *
 * cico-sliced: operands are copied into the slots; rank v combines part v from there and leaves the
 * result in its own slot, from where the root takes it. Wins for many ranks, of which the root
 * would read every byte, until slots are too small. Part v of slot v is read by rank v alone, so
 * the result may take its place. Cost: n memcpy, (p - 1) n/p reduced, n/p memcpy, (p - 1) n/p
 * memcpy by the root. Not in the papers, which leave reductions out.
 *
 * Nobody waits for the root.
 */
#include "coll/build.h"

static void build(struct oci_builder *b)
{
	struct oci_reduction r = oci_staged_reduction(b);

	r.rotated = true;
	oci_stage_begin(b, oci_block(OCI_BUF_SEND, 0));
	if (oci_builder_key(b)->v) {
		oci_build_copy(b, r.mine, r.remote);
		oci_stage_post(b);
	} else {
		oci_build_reduction(b, &r);
		oci_build_copy(b, r.acc, oci_by_piece(b, oci_block(OCI_BUF_RECV, 0)));
	}
	oci_stage_end(b);
}

static void build_sliced(struct oci_builder *b)
{
	bool root = !oci_builder_key(b)->v;

	oci_build_slot_parts(b, !root, root);
}

static void cost(struct oci_costing *c)
{
	size_t n = c->shape->bytes;
	double pieces = oci_cost_stage_pieces(c), others = c->shape->size - 1.0;
	double before = oci_cost_total(&c->cost);

	oci_cost_flags(c, pieces * others);
	oci_cost_reduce(c, OCI_TOUCH_PEERS, others, n);
	oci_cost_stage_ahead(c, before);
	oci_cost_ops(c, (c->piece ? 2 : 3) + 2 * pieces * others);
}

const struct oci_algorithm oci_reduce_inline = {
	.name = "inline",
	.idea = "operands ride in the flags' cache lines",
	.build = build,
	.cost = cost,
	.fits = oci_fits_inline_one,
};

const struct oci_algorithm oci_reduce_cico = {
	.name = "cico",
	.idea = "the root combines what lies in the ranks' slots, pipelined",
	.build = build,
	.cost = cost,
	.piece = OCI_PIPELINE_ROOT_BYTES,
	.fits = oci_fits_slot_one,
};

const struct oci_algorithm oci_reduce_cico_sliced = {
	.name = "cico-sliced",
	.idea = "each rank combines its part out of the slots, and the root takes the parts",
	.build = build_sliced,
	.cost = oci_cost_slot_parts, /* the root waits for another's part as for its own */
	.fits = oci_fits_slot_one,
};
