/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Each rank copies its block piece by piece into its slot, the root copies them out.
 *
 * Wins where a system call costs more than a second copy. Nobody waits for the root.
 * Cost: n memcpy in on each rank, overlapped with (p - 1) n memcpy out on the root.
 */
#include "coll/build.h"
#include "coll/cost.h"
#include "coll/gather/gather.h"

static void build(struct oci_builder *b)
{
	const struct oci_plan_key *key = oci_builder_key(b);
	struct oci_range slot = oci_segmented(oci_block(OCI_BUF_SLOT, 0));

	oci_build_segment(b, OCI_PIPELINE_ROOT_BYTES);
	if (key->v) {
		oci_build_loop(b, oci_block(OCI_BUF_SEND, 0));
		oci_build_copy(b, oci_segmented(oci_block(OCI_BUF_SEND, 0)), slot);
		oci_build_post(b, OCI_POST_SLOT, 1, 1);
		oci_build_next(b);
		return;
	}
	oci_build_copy(b, oci_block(OCI_BUF_SEND, 0), oci_block_rel(OCI_BUF_RECV, 0));
	for (uint32_t v = 1; v < key->size; v++) {
		oci_build_loop(b, oci_block_rel(OCI_BUF_RECV, v));
		oci_build_wait_post(b, v, 1, 1, 1);
		oci_build_pull(b, oci_segmented(oci_block_rel(OCI_BUF_RECV, v)), v, slot);
		oci_build_next(b);
	}
}

static void cost(struct oci_costing *c)
{
	size_t n = c->shape->bytes;
	double pieces = oci_cost_pieces(n, OCI_PIPELINE_ROOT_BYTES), others = c->shape->size - 1.0;
	double before = oci_cost_total(&c->cost);

	oci_cost_flags(c, pieces);
	oci_cost_fetch(c, 1, n, n);
	oci_cost_fill_ahead(c, n, OCI_PIPELINE_ROOT_BYTES, before);
	/* The others' slots are full by then. */
	oci_cost_flags(c, others - 1);
	oci_cost_fetch(c, others - 1, n, n);
	oci_cost_ops(c, 3 + 2 * pieces * others);
}

const struct oci_algorithm oci_gather_cico = {
	.name = "cico",
	.idea = "through each rank's slot in shared memory, pipelined",
	.build = build,
	.cost = cost,
	.fits = oci_fits_slot_one,
};
