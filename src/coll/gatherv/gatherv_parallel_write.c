/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks offer their block and the root takes those that are not LARGE. For the LARGE ones the root
 * offers addresses, to which their owners write, all at once (paper 002, IV-B1).
 *
 * Wins where few blocks are LARGE, or their writers do not slow each other down.
 * Cost: that of Gather inline, cico or parallel-write for each block.
 * Restriction: a cell for each peer must fit (oci_offer_fits).
 */
#include "coll/build.h"
#include "coll/gatherv/gatherv.h"

static void build(struct oci_builder *b)
{
	const struct oci_plan_key *key = oci_builder_key(b);
	uint32_t others = key->size - 1, most = oci_offer_most(1);
	struct oci_range mine = oci_block(OCI_BUF_SEND, 0);

	if (key->v == 0) {
		oci_gatherv_build_root(b);
		return;
	}
	oci_build_offer(b, mine, 1);
	oci_build_post(b, OCI_POST_FLAG, 1, 0);
	oci_build_wait_when(b, OCI_OP_WAIT_POST, 0, 1, 1, OCI_WHEN_LARGE, mine, false, most);
	oci_build_give(b, mine, 0, others, most);
	oci_build_signal(b, 1, 0);
}

const struct oci_algorithm oci_gatherv_parallel_write = {
	.name = "parallel-write",
	.idea = "the root takes what is not large; large blocks are written all at once",
	.build = build,
	.fits = oci_fits_offer_others,
	.single_copy = true,
};
