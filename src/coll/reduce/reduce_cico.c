/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Each rank copies its operand piece by piece into its slot; the root combines them from there,
 * without a copy of its own.
 *
 * Wins where a system call costs more than a copy. Nobody waits for the root.
 * Cost: n memcpy on each rank, overlapped with (p - 1) n reduced out of the slots.
 */
#include "coll/build.h"
#include "coll/cost.h"
#include "coll/reduce/reduce.h"

static void build(struct oci_builder *b)
{
	struct oci_range mine = oci_segmented(oci_block(OCI_BUF_SEND, 0));
	struct oci_reduction r = {
		.mine = mine,
		.remote = oci_segmented(oci_block(OCI_BUF_SLOT, 0)),
		.acc = oci_segmented(oci_block(OCI_BUF_ACC, 0)),
		.step = 1,
		.rotated = true,
		.step_loop = 1,
	};

	oci_build_segment(b, OCI_PIPELINE_ROOT_BYTES);
	oci_build_loop(b, oci_block(OCI_BUF_SEND, 0));
	if (oci_builder_key(b)->v) {
		oci_build_copy(b, mine, oci_segmented(oci_block(OCI_BUF_SLOT, 0)));
		oci_build_post(b, OCI_POST_SLOT, 1, 1);
	} else {
		oci_build_reduction(b, &r);
		oci_build_copy(b, r.acc, oci_segmented(oci_block(OCI_BUF_RECV, 0)));
	}
	oci_build_next(b);
}

static void cost(struct oci_costing *c)
{
	size_t n = c->shape->bytes;
	double pieces = oci_cost_pieces(n, OCI_PIPELINE_ROOT_BYTES), others = c->shape->size - 1.0;
	double before = oci_cost_total(&c->cost);

	oci_cost_flags(c, pieces * others);
	oci_cost_reduce_from(c, others, n, n);
	oci_cost_fill_ahead(c, n, OCI_PIPELINE_ROOT_BYTES, before);
	oci_cost_ops(c, 2 + 2 * pieces * others);
}

const struct oci_algorithm oci_reduce_cico = {
	.name = "cico",
	.idea = "the root combines what lies in the ranks' slots, pipelined",
	.build = build,
	.cost = cost,
	.fits = oci_fits_slot_one,
};
