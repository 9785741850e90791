/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The root puts the message beside its flag; the readers find both in one or two cache lines.
 *
 * Wins up to OCI_INLINE_BYTES. The root leaves at once: the lane keeps the payload until all ranks
 * have finished.
 * Cost: one line transfer a reader, all at once.
 */
#include "coll/bcast/bcast.h"
#include "coll/build.h"
#include "coll/cost.h"

static void build(struct oci_builder *b)
{
	if (oci_builder_key(b)->v == 0) {
		oci_build_copy(b, oci_block(OCI_BUF_SEND, 0), oci_block(OCI_BUF_INLINE, 0));
		oci_build_post(b, OCI_POST_FLAG, 1, 0);
		return;
	}
	oci_build_wait_post(b, 0, 1, 1, 0);
	oci_build_pull(b, oci_block(OCI_BUF_RECV, 0), 0, oci_block(OCI_BUF_INLINE, 0));
}

static void cost(struct oci_costing *c)
{
	oci_cost_memcpy(c, 1, c->shape->bytes, c->shape->bytes);
	oci_cost_fetch(c, 1, c->shape->bytes, c->shape->bytes);
	oci_cost_flags(c, 1);
	oci_cost_ops(c, 4);
}

const struct oci_algorithm oci_bcast_inline = {
	.name = "inline",
	.idea = "the message rides in the flag's cache lines",
	.build = build,
	.cost = cost,
	.fits = oci_fits_inline_one,
};
