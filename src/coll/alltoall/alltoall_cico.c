/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * inline: each rank puts the others' blocks beside its flag; everyone takes its own from each. Wins
 * while p - 1 blocks fit OCI_INLINE_BYTES. Cost: (p - 1) line transfers a rank.
 *
 * cico: the same through slots, with a flag for each block. Wins while p - 1 blocks fit a slot and
 * a system call costs more than a second copy. Between two ranks it is pipelined piece by piece,
 * among more block by block. Cost: (p - 1) n memcpy in, n memcpy of the own block, (p - 1) n memcpy
 * out.
 */
#include "coll/build.h"

static void build_pair(struct oci_builder *b)
{
	const struct oci_plan_key *key = oci_builder_key(b);
	struct oci_range slot = oci_segmented(oci_block(OCI_BUF_SLOT, 0));
	uint32_t other = oci_next(key, 1);

	oci_build_segment(b, oci_building(b)->piece);
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
	bool slot = oci_building(b)->piece;
	enum oci_buf buf = slot ? OCI_BUF_SLOT : OCI_BUF_INLINE;
	uint32_t p = key->size;

	if (slot && p == 2) {
		build_pair(b);
		return;
	}
	/* Block i - 1 is for rank v + i, which finds it in a slot when my flag is at step i. */
	for (uint32_t i = 1; i < p; i++) {
		uint32_t target = oci_next(key, i);

		oci_build_copy(b, oci_block(OCI_BUF_SEND, target), oci_block(buf, i - 1));
		if (slot)
			oci_build_post(b, i == 1 ? OCI_POST_SLOT : OCI_POST_FLAG, (uint16_t)i, 0);
	}
	if (!slot)
		oci_build_post(b, OCI_POST_FLAG, 1, 0);
	oci_build_copy(b, oci_block(OCI_BUF_SEND, key->v), oci_block(OCI_BUF_RECV, key->v));
	for (uint32_t i = 1; i < p; i++) {
		uint32_t source = oci_previous(key, i);

		oci_build_wait_post(b, source, 1, slot ? (uint16_t)i : 1, 0);
		oci_build_pull(b, oci_block(OCI_BUF_RECV, source), source, oci_block(buf, i - 1));
	}
}

static void cost_inline(struct oci_costing *c)
{
	size_t n = c->shape->bytes;
	double others = c->shape->size - 1.0;

	oci_cost_touch(c, OCI_TOUCH_OWN, OCI_BY_ONE, 1 + others, n);
	oci_cost_touch(c, OCI_TOUCH_PEERS, OCI_BY_ALL, others, n);
	oci_cost_flags(c, others);
	oci_cost_ops(c, 2 + 3 * others);
}

static void cost_cico(struct oci_costing *c)
{
	size_t n = c->shape->bytes;
	double others = c->shape->size - 1.0;

	oci_cost_touch(c, OCI_TOUCH_SLOT, OCI_BY_ONE, others, n);
	oci_cost_touch(c, OCI_TOUCH_OWN, OCI_BY_ONE, 1, n);
	oci_cost_touch(c, OCI_TOUCH_PEERS, OCI_BY_ALL, others, n);
	oci_cost_flags(c, others);
	oci_cost_ops(c, 1 + 4 * others);
}

const struct oci_algorithm oci_alltoall_inline = {
	.name = "inline",
	.idea = "the blocks ride in their rank's flag lines",
	.build = build,
	.cost = cost_inline,
	.fits = oci_fits_inline_others,
};

const struct oci_algorithm oci_alltoall_cico = {
	.name = "cico",
	.idea = "through each rank's slot in shared memory",
	.build = build,
	.cost = cost_cico,
	.piece = OCI_PIPELINE_BYTES,
	.fits = oci_fits_slot_others,
};
