/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Each rank copies the others' blocks into its slot, everyone copies its own out of each.
 *
 * Wins while p - 1 blocks fit a slot and a system call costs more than a second copy.
 * Between two ranks it is pipelined piece by piece, among more block by block.
 * Cost: (p - 1) n memcpy in, n memcpy of the own block, (p - 1) n memcpy out.
 */
#include "coll/build.h"

static void build_pair(struct oci_builder *b)
{
	const struct oci_plan_key *key = oci_builder_key(b);
	struct oci_range slot = oci_segmented(oci_block(OCI_BUF_SLOT, 0));
	uint32_t other = oci_next(key, 1);

	oci_build_segment(b, OCI_PIPELINE_BYTES);
	oci_build_loop(b, oci_block(OCI_BUF_SEND, other));
	oci_build_copy(b, oci_segmented(oci_block(OCI_BUF_SEND, other)), slot);
	oci_build_post(b, OCI_POST_SLOT, 1, 1);
	oci_build_copy(b, oci_segmented(oci_block(OCI_BUF_SEND, key->v)),
		       oci_segmented(oci_block(OCI_BUF_RECV, key->v)));
	oci_build_next(b);
	oci_build_loop(b, oci_block(OCI_BUF_RECV, other));
	oci_build_wait_post(b, other, 1, 1, 1);
	oci_build_pull(b, oci_segmented(oci_block(OCI_BUF_RECV, other)), other, slot);
	oci_build_next(b);
}

static void build(struct oci_builder *b)
{
	const struct oci_plan_key *key = oci_builder_key(b);
	uint32_t p = key->size;

	if (p == 2) {
		build_pair(b);
		return;
	}
	/* Rank v + i finds its block when my flag is at step i. */
	for (uint32_t i = 1; i < p; i++) {
		uint32_t target = oci_next(key, i);

		oci_build_copy(b, oci_block(OCI_BUF_SEND, target), oci_block(OCI_BUF_SLOT, i - 1));
		oci_build_post(b, i == 1 ? OCI_POST_SLOT : OCI_POST_FLAG, (uint16_t)i, 0);
	}
	oci_build_copy(b, oci_block(OCI_BUF_SEND, key->v), oci_block(OCI_BUF_RECV, key->v));
	for (uint32_t i = 1; i < p; i++) {
		uint32_t source = oci_previous(key, i);

		oci_build_wait_post(b, source, 1, (uint16_t)i, 0);
		oci_build_pull(b, oci_block(OCI_BUF_RECV, source), source,
			       oci_block(OCI_BUF_SLOT, i - 1));
	}
}

static void cost(struct oci_costing *c)
{
	size_t n = c->shape->bytes;
	double others = c->shape->size - 1.0;

	oci_cost_fill(c, others, n, n);
	oci_cost_memcpy(c, 1, n, n);
	oci_cost_fetch(c, others, n, n);
	oci_cost_flags(c, others);
	oci_cost_ops(c, 1 + 4 * others);
}

const struct oci_algorithm oci_alltoall_cico = {
	.name = "cico",
	.idea = "through each rank's slot in shared memory",
	.build = build,
	.cost = cost,
	.fits = oci_fits_slot_others,
};
