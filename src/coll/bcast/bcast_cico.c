/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copy in, copy out: the root copies piece by piece into its slot, the readers follow.
 *
 * Wins where a system call costs more than a second copy out of a shared cache. The root leaves
 * without waiting.
 * Cost: n memcpy in, overlapped with n memcpy out by all readers at once.
 */
#include "coll/bcast/bcast.h"
#include "coll/build.h"

static void build(struct oci_builder *b)
{
	struct oci_range slot = oci_segmented(oci_block(OCI_BUF_SLOT, 0));

	oci_build_segment(b, OCI_PIPELINE_BYTES);
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

const struct oci_algorithm oci_bcast_cico = {
	.name = "cico",
	.idea = "through the root's slot in shared memory, pipelined",
	.build = build,
	.fits = oci_fits_slot_one,
};
