/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Each rank copies its operand piece by piece into its slot; everyone combines all of them.
 *
 * Wins for small messages: one synchronisation. All ranks associate alike.
 * Cost: n memcpy and (p - 1) n reduced out of the slots, on every rank.
 */
#include "coll/allreduce/allreduce.h"
#include "coll/build.h"
#include "coll/cost.h"

static void build(struct oci_builder *b)
{
	struct oci_range mine = oci_segmented(oci_block(OCI_BUF_SEND, 0));
	struct oci_reduction r = {
		.mine = mine,
		.remote = oci_segmented(oci_block(OCI_BUF_SLOT, 0)),
		.acc = oci_segmented(oci_block(OCI_BUF_ACC, 0)),
		.step = 1,
		.step_loop = 1,
	};

	oci_build_segment(b, OCI_PIPELINE_BYTES);
	oci_build_loop(b, oci_block(OCI_BUF_SEND, 0));
	oci_build_copy(b, mine, oci_segmented(oci_block(OCI_BUF_SLOT, 0)));
	oci_build_post(b, OCI_POST_SLOT, 1, 1);
	oci_build_reduction(b, &r);
	oci_build_copy(b, r.acc, oci_segmented(oci_block(OCI_BUF_RECV, 0)));
	oci_build_next(b);
}

static void cost(struct oci_costing *c)
{
	size_t n = c->shape->bytes;
	double pieces = oci_cost_pieces(n, OCI_PIPELINE_BYTES), others = c->shape->size - 1.0;

	oci_cost_fill(c, 1, n, n);
	oci_cost_memcpy(c, 1, n, n);
	oci_cost_flags(c, pieces * others);
	oci_cost_reduce_from(c, others, n, n);
	oci_cost_ops(c, pieces * (3 + 2 * others));
}

const struct oci_algorithm oci_allreduce_cico = {
	.name = "cico",
	.idea = "everyone combines what lies in the ranks' slots",
	.build = build,
	.cost = cost,
	.fits = oci_fits_slot_one,
};
