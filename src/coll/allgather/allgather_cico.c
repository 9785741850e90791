/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Each rank copies its block into its slot, everyone copies all of them out.
 *
 * Wins where a system call costs more than a second copy.
 * Cost: n memcpy in, n memcpy of the own block, (p - 1) n memcpy out.
 */
#include "coll/allgather/allgather.h"
#include "coll/build.h"
#include "coll/cost.h"

static void build(struct oci_builder *b)
{
	const struct oci_plan_key *key = oci_builder_key(b);
	struct oci_range slot = oci_segmented(oci_block(OCI_BUF_SLOT, 0));

	oci_build_segment(b, OCI_PIPELINE_BYTES);
	oci_build_loop(b, oci_block(OCI_BUF_SEND, 0));
	oci_build_copy(b, oci_segmented(oci_block(OCI_BUF_SEND, 0)), slot);
	oci_build_post(b, OCI_POST_SLOT, 1, 1);
	oci_build_copy(b, oci_segmented(oci_block(OCI_BUF_SEND, 0)),
		       oci_segmented(oci_block(OCI_BUF_RECV, key->v)));
	oci_build_next(b);
	for (uint32_t i = 1; i < key->size; i++) {
		uint32_t source = oci_next(key, i);

		oci_build_loop(b, oci_block(OCI_BUF_RECV, source));
		oci_build_wait_post(b, source, 1, 1, 1);
		oci_build_pull(b, oci_segmented(oci_block(OCI_BUF_RECV, source)), source, slot);
		oci_build_next(b);
	}
}

static void cost(struct oci_costing *c)
{
	size_t n = c->shape->bytes;
	double pieces = oci_cost_pieces(n, OCI_PIPELINE_BYTES), others = c->shape->size - 1.0;

	oci_cost_fill(c, 1, n, n);
	oci_cost_memcpy(c, 1, n, n);
	oci_cost_fetch(c, others, n, n);
	/* A peer's pieces were all there when its first was awaited. */
	oci_cost_flags(c, others);
	oci_cost_ops(c, pieces * (3 + 2 * others));
}

const struct oci_algorithm oci_allgather_cico = {
	.name = "cico",
	.idea = "through each rank's slot in shared memory",
	.build = build,
	.cost = cost,
	.fits = oci_fits_slot_one,
};
