/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Everyone combines the operands out of the flags' cache lines.
 *
 * Wins up to OCI_INLINE_BYTES. All ranks associate alike, so their results are identical.
 * Cost: (p - 1) line transfers and (p - 1) n reduced on every rank.
 */
#include "coll/allreduce/allreduce.h"
#include "coll/build.h"
#include "coll/cost.h"

static void build(struct oci_builder *b)
{
	struct oci_reduction r = {
		.mine = oci_block(OCI_BUF_SEND, 0),
		.remote = oci_block(OCI_BUF_INLINE, 0),
		.acc = oci_block(OCI_BUF_ACC, 0),
		.step = 1,
	};

	oci_build_segment(b, OCI_INLINE_BYTES);
	oci_build_copy(b, oci_block(OCI_BUF_SEND, 0), oci_block(OCI_BUF_INLINE, 0));
	oci_build_post(b, OCI_POST_FLAG, 1, 0);
	oci_build_reduction(b, &r);
	oci_build_copy(b, r.acc, oci_block(OCI_BUF_RECV, 0));
}

static void cost(struct oci_costing *c)
{
	size_t n = c->shape->bytes;
	double others = c->shape->size - 1.0;

	oci_cost_memcpy(c, 2, n, n);
	oci_cost_flags(c, others);
	oci_cost_reduce_from(c, others, n, n);
	oci_cost_ops(c, 3 + 2 * others);
}

const struct oci_algorithm oci_allreduce_inline = {
	.name = "inline",
	.idea = "operands ride in the flags' cache lines",
	.build = build,
	.cost = cost,
	.fits = oci_fits_inline_one,
};
