/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rank v combines blocks v out of what the others have put in a stage, each block at its place in
 * the input.
 *
 * inline: in the flags' cache lines. Wins while all blocks fit a payload. Cost: (p - 1) line
 * transfers and (p - 1) n reduced on every rank.
 *
 * cico: in the slots. Wins while all blocks fit a slot and a system call costs more than a copy.
 * Between two ranks it is pipelined piece by piece, among more block by block. Cost: (p - 1) n
 * memcpy in, (p - 1) n reduced out of the slots.
 */
#include "coll/reduce_scatter/reduce_scatter.h"

static void copy_blocks(struct oci_builder *b, uint32_t first, uint32_t count)
{
	const struct oci_plan_key *key = oci_builder_key(b);

	if (count)
		oci_build_copy(b, oci_reduce_scatter_input(key, OCI_BUF_SEND, first, count),
			       oci_reduce_scatter_input(key, OCI_BUF_INLINE, first, count));
}

static void build_inline(struct oci_builder *b)
{
	const struct oci_plan_key *key = oci_builder_key(b);
	struct oci_reduction r = {
		.mine = oci_reduce_scatter_input(key, OCI_BUF_SEND, key->v, 1),
		.remote = oci_reduce_scatter_input(key, OCI_BUF_INLINE, key->v, 1),
		.acc = oci_reduce_scatter_result(key, OCI_BUF_RECV),
		.step = 1,
		.rotated = true,
	};

	/* Nobody reads my own block. */
	copy_blocks(b, 0, key->v);
	copy_blocks(b, key->v + 1, key->size - key->v - 1);
	oci_build_post(b, OCI_POST_FLAG, 1, 0);
	oci_build_reduction(b, &r);
}

static void build_pair(struct oci_builder *b)
{
	const struct oci_plan_key *key = oci_builder_key(b);
	uint32_t other = oci_next(key, 1);
	struct oci_reduction r = {
		.mine = oci_segmented(oci_reduce_scatter_input(key, OCI_BUF_SEND, key->v, 1)),
		.remote = oci_segmented(oci_reduce_scatter_input(key, OCI_BUF_SLOT, key->v, 1)),
		.acc = oci_segmented(oci_reduce_scatter_result(key, OCI_BUF_RECV)),
		.step = 1,
		.step_loop = 1,
		.rotated = true,
	};

	oci_build_segment(b, oci_building(b)->piece);
	oci_build_loop(b, oci_reduce_scatter_input(key, OCI_BUF_SEND, other, 1));
	oci_build_copy(b, oci_segmented(oci_reduce_scatter_input(key, OCI_BUF_SEND, other, 1)),
		       oci_segmented(oci_reduce_scatter_input(key, OCI_BUF_SLOT, other, 1)));
	oci_build_post(b, OCI_POST_SLOT, 1, 1);
	oci_build_next(b);
	oci_build_loop(b, oci_reduce_scatter_input(key, OCI_BUF_SEND, key->v, 1));
	oci_build_reduction(b, &r);
	oci_build_next(b);
}

static void build_cico(struct oci_builder *b)
{
	const struct oci_plan_key *key = oci_builder_key(b);
	struct oci_reduction r = {
		.mine = oci_reduce_scatter_input(key, OCI_BUF_SEND, key->v, 1),
		.remote = oci_reduce_scatter_input(key, OCI_BUF_SLOT, key->v, 1),
		.acc = oci_reduce_scatter_result(key, OCI_BUF_RECV),
		.step_by_distance = true,
		.rotated = true,
	};

	if (key->size == 2) {
		build_pair(b);
		return;
	}
	/* Rank v + i finds its block when my flag is at step i. */
	for (uint32_t i = 1; i < key->size; i++) {
		uint32_t target = oci_next(key, i);

		oci_build_copy(b, oci_reduce_scatter_input(key, OCI_BUF_SEND, target, 1),
			       oci_reduce_scatter_input(key, OCI_BUF_SLOT, target, 1));
		oci_build_post(b, i == 1 ? OCI_POST_SLOT : OCI_POST_FLAG, (uint16_t)i, 0);
	}
	oci_build_reduction(b, &r);
}

static bool fits_inline(const struct oci_shape *shape, uint32_t parameter)
{
	(void)parameter;
	return oci_reduce_scatter_bytes(shape) <= OCI_INLINE_BYTES;
}

static bool fits_slot(const struct oci_shape *shape, uint32_t parameter)
{
	(void)parameter;
	return oci_reduce_scatter_bytes(shape) <= OCI_SLOT_BYTES && shape->size <= OCI_STEPS;
}

static void cost(struct oci_costing *c)
{
	size_t n = oci_reduce_scatter_block(c->shape);
	double others = c->shape->size - 1.0;

	oci_cost_stage(c, others, n);
	oci_cost_touch(c, OCI_TOUCH_OWN, OCI_BY_ONE, 1, n);
	oci_cost_flags(c, others);
	oci_cost_reduce(c, OCI_TOUCH_PEERS, others, n);
	oci_cost_ops(c, 3 + 2 * others);
}

const struct oci_algorithm oci_reduce_scatter_inline = {
	.name = "inline",
	.idea = "blocks ride in the flags' cache lines",
	.build = build_inline,
	.cost = cost,
	.fits = fits_inline,
};

const struct oci_algorithm oci_reduce_scatter_cico = {
	.name = "cico",
	.idea = "each rank combines its block out of the ranks' slots",
	.build = build_cico,
	.cost = cost,
	.piece = OCI_PIPELINE_BYTES,
	.fits = fits_slot,
};
