/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Each rank copies its operand piece by piece into its slot; rank v combines those of ranks 0 to v
 * (Exscan: v - 1).
 *
 * Wins where a system call costs more than a copy and the last rank's work, which grows with p, is
 * less than the way along a chain.
 * Cost: n memcpy, overlapped with v n reduced out of the slots on rank v.
 */
#include "coll/build.h"
#include "coll/cost.h"
#include "coll/scan/scan.h"

static void build(struct oci_builder *b)
{
	const struct oci_plan_key *key = oci_builder_key(b);
	bool scan = key->collective == OC_SCAN;
	struct oci_range recv = oci_segmented(oci_block(OCI_BUF_RECV, 0));
	struct oci_reduction r = {
		.mine = oci_segmented(oci_block(OCI_BUF_SEND, 0)),
		.remote = oci_segmented(oci_block(OCI_BUF_SLOT, 0)),
		.acc = scan ? oci_segmented(oci_block(OCI_BUF_ACC, 0)) : recv,
		.step = 1,
		.step_loop = 1,
	};

	oci_build_segment(b, OCI_PIPELINE_BYTES);
	oci_build_loop(b, oci_block(OCI_BUF_SEND, 0));
	if (key->v + 1 < key->size) {
		oci_build_copy(b, r.mine, r.remote);
		oci_build_post(b, OCI_POST_SLOT, 1, 1);
	}
	if (key->v) {
		oci_build_prefix(b, &r, key->v + scan);
		/* An Exscan is never given its operand in RECV. */
		if (scan)
			oci_build_copy(b, r.acc, recv);
	} else if (scan) {
		oci_build_copy(b, r.mine, recv);
	}
	oci_build_next(b);
}

static void cost(struct oci_costing *c)
{
	/* The last rank combines all the others' operands. */
	size_t n = c->shape->bytes;
	double pieces = oci_cost_pieces(n, OCI_PIPELINE_BYTES), others = c->shape->size - 1.0;

	oci_cost_fill(c, 1, n, n);
	oci_cost_memcpy(c, 1, n, n);
	oci_cost_flags(c, pieces * others);
	/* An Exscan leaves out its own. */
	oci_cost_reduce_from(c, c->shape->collective == OC_SCAN ? others : others - 1, n, n);
	oci_cost_ops(c, pieces * (3 + 2 * others));
}

const struct oci_algorithm oci_scan_cico = {
	.name = "cico",
	.idea = "each rank combines what lies in the slots of those before it",
	.build = build,
	.cost = cost,
	.fits = oci_fits_slot_one,
};
