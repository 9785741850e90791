/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * inline: the root puts the message beside its flag; the readers find both in one or two cache
 * lines. Wins up to OCI_INLINE_BYTES. Cost: one line transfer a reader, all at once.
 *
 * cico, copy in, copy out: the root copies piece by piece into its slot, the readers follow. Wins
 * where a system call costs more than a second copy out of a shared cache. Cost: n memcpy into the
 * slot, overlapped with n memcpy out by all readers at once.
 *
 * The root leaves without waiting: the lane keeps payload and slot until all ranks have finished.
 */
#include "coll/build.h"

static void build(struct oci_builder *b)
{
	struct oci_range send = oci_block(OCI_BUF_SEND, 0), recv = oci_block(OCI_BUF_RECV, 0);

	if (oci_builder_key(b)->v == 0) {
		oci_stage_begin(b, send);
		oci_build_copy(b, oci_by_piece(b, send), oci_stage(b));
		oci_stage_post(b);
	} else {
		oci_stage_begin(b, recv);
		oci_stage_wait(b, 0);
		oci_build_pull(b, oci_by_piece(b, recv), 0, oci_stage(b));
	}
	oci_stage_end(b);
}

static void cost(struct oci_costing *c)
{
	double pieces = oci_cost_stage_pieces(c), before = oci_cost_total(&c->cost);

	oci_cost_flags(c, pieces);
	oci_cost_touch(c, OCI_TOUCH_PEERS, OCI_BY_OTHERS, 1, c->shape->bytes);
	oci_cost_stage_ahead(c, before);
	oci_cost_ops(c, 2 + 2 * pieces);
}

const struct oci_algorithm oci_bcast_inline = {
	.name = "inline",
	.idea = "the message rides in the flag's cache lines",
	.build = build,
	.cost = cost,
	.fits = oci_fits_inline_one,
};

const struct oci_algorithm oci_bcast_cico = {
	.name = "cico",
	.idea = "through the root's slot in shared memory, pipelined",
	.build = build,
	.cost = cost,
	.piece = OCI_PIPELINE_ROOT_BYTES,
	.fits = oci_fits_slot_one,
};
