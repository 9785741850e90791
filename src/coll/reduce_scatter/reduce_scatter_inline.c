/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The blocks ride in the flags' cache lines, each at its place in the input; rank v combines blocks
 * v out of all of them.
 *
 * Wins while all blocks fit a payload.
 * Cost: (p - 1) line transfers and (p - 1) n reduced on every rank.
 */
#include "coll/reduce_scatter/reduce_scatter.h"

static void copy_blocks(struct oci_builder *b, uint32_t first, uint32_t count)
{
	const struct oci_plan_key *key = oci_builder_key(b);

	if (count)
		oci_build_copy(b, oci_reduce_scatter_input(key, OCI_BUF_SEND, first, count),
			       oci_reduce_scatter_input(key, OCI_BUF_INLINE, first, count));
}

static void build(struct oci_builder *b)
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

static bool fits_inline(const struct oci_shape *shape, uint32_t parameter)
{
	(void)parameter;
	return oci_reduce_scatter_bytes(shape) <= OCI_INLINE_BYTES;
}

static void cost(struct oci_costing *c)
{
	size_t n = oci_reduce_scatter_block(c->shape);
	double others = c->shape->size - 1.0;

	oci_cost_memcpy(c, c->shape->size, n, n);
	oci_cost_flags(c, others);
	oci_cost_reduce_from(c, others, n, n);
	oci_cost_ops(c, 3 + 2 * others);
}

const struct oci_algorithm oci_reduce_scatter_inline = {
	.name = "inline",
	.idea = "blocks ride in the flags' cache lines",
	.build = build,
	.cost = cost,
	.fits = fits_inline,
};
