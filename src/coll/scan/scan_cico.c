/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * inline: operands ride in the flags' cache lines; rank v combines those of ranks 0 to v (Exscan:
 * v - 1). Wins up to OCI_INLINE_BYTES: nobody waits for a result of another. Cost: v line transfers
 * and v n reduced on rank v.
 *
 * cico: the same out of slots, piece by piece. Wins where a system call costs more than a copy and
 * the last rank's work, which grows with p, is less than the way along a chain. Cost: n memcpy,
 * overlapped with v n reduced out of the slots on rank v.
 *
 * Both serve Scan and Exscan. Operands are always combined in the order of the ranks.
 */
#include "coll/build.h"

static void build(struct oci_builder *b)
{
	const struct oci_plan_key *key = oci_builder_key(b);
	bool scan = key->collective == OC_SCAN;
	struct oci_range recv = oci_by_piece(b, oci_block(OCI_BUF_RECV, 0));
	struct oci_reduction r = oci_staged_reduction(b);

	/* An Exscan is never given its operand in RECV. */
	if (!scan)
		r.acc = recv;
	oci_stage_begin(b, oci_block(OCI_BUF_SEND, 0));
	if (key->v + 1 < key->size) {
		oci_build_copy(b, r.mine, r.remote);
		oci_stage_post(b);
	}
	if (key->v) {
		oci_build_prefix(b, &r, key->v + scan);
		if (scan)
			oci_build_copy(b, r.acc, recv);
	} else if (scan) {
		oci_build_copy(b, r.mine, recv);
	}
	oci_stage_end(b);
}

static void cost(struct oci_costing *c)
{
	/* The last rank combines all the others' operands. */
	size_t n = c->shape->bytes;
	double pieces = oci_cost_stage_pieces(c), others = c->shape->size - 1.0;

	oci_cost_stage(c, 1, n);
	oci_cost_touch(c, OCI_TOUCH_OWN, OCI_BY_ONE, 1, n);
	oci_cost_flags(c, pieces * others);
	/* An Exscan leaves out its own. */
	oci_cost_reduce(c, OCI_TOUCH_PEERS, c->shape->collective == OC_SCAN ? others : others - 1,
			n);
	oci_cost_ops(c, !c->piece + pieces * (3 + 2 * others));
}

const struct oci_algorithm oci_scan_inline = {
	.name = "inline",
	.idea = "operands ride in the flags' cache lines",
	.build = build,
	.cost = cost,
	.fits = oci_fits_inline_one,
};

const struct oci_algorithm oci_scan_cico = {
	.name = "cico",
	.idea = "each rank combines what lies in the slots of those before it",
	.build = build,
	.cost = cost,
	.piece = OCI_PIPELINE_BYTES,
	.fits = oci_fits_slot_one,
};
