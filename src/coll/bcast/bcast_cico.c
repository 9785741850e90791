/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copy in, copy out: the root copies piece by piece into its slot, the readers follow.
 *
 * Wins where a system call costs more than a second copy out of a shared cache. The root leaves
 * without waiting.
 * Cost: n memcpy into the slot, overlapped with n memcpy out by all readers at once.
 */
#include "coll/bcast/bcast.h"
#include "coll/build.h"
#include "coll/cost.h"

static void build(struct oci_builder *b)
{
	struct oci_range slot = oci_segmented(oci_block(OCI_BUF_SLOT, 0));

	oci_build_segment(b, OCI_PIPELINE_ROOT_BYTES);
	if (oci_builder_key(b)->v == 0) {
		oci_build_loop(b, oci_block(OCI_BUF_SEND, 0));
		oci_build_copy(b, oci_segmented(oci_block(OCI_BUF_SEND, 0)), slot);
		oci_build_post(b, OCI_POST_SLOT, 1, 1);
		oci_build_next(b);
		return;
	}
	oci_build_loop(b, oci_block(OCI_BUF_RECV, 0));
	oci_build_wait_post(b, 0, 1, 1, 1);
	oci_build_pull(b, oci_segmented(oci_block(OCI_BUF_RECV, 0)), 0, slot);
	oci_build_next(b);
}

static void cost(struct oci_costing *c)
{
	size_t n = c->shape->bytes;
	double pieces = oci_cost_pieces(n, OCI_PIPELINE_ROOT_BYTES),
	       before = oci_cost_total(&c->cost);

	oci_cost_flags(c, pieces);
	oci_cost_fetch(c, 1, n, n);
	oci_cost_fill_ahead(c, n, OCI_PIPELINE_ROOT_BYTES, before);
	oci_cost_ops(c, 2 + 2 * pieces);
}

const struct oci_algorithm oci_bcast_cico = {
	.name = "cico",
	.idea = "through the root's slot in shared memory, pipelined",
	.build = build,
	.cost = cost,
	.fits = oci_fits_slot_one,
};
