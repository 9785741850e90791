/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks offer their block, and the root takes one after the other, each in the way its size says
 * (paper 002, IV-B2, for the LARGE ones).
 *
 * Wins where concurrent writers to one process are slower than one copier.
 * Cost: that of Gather inline, cico or sequential-read for each block.
 */
#include "coll/build.h"
#include "coll/gatherv/gatherv.h"

static void build(struct oci_builder *b)
{
	const struct oci_plan_key *key = oci_builder_key(b);
	struct oci_range mine = oci_block(OCI_BUF_SEND, 0);

	if (key->v) {
		oci_build_offer(b, mine, 1);
		oci_build_post(b, OCI_POST_FLAG, 1, 0);
		oci_build_wait_when(b, OCI_OP_WAIT_ACK, 0, 1, (uint16_t)key->v, OCI_WHEN_LARGE,
				    mine, false, oci_offer_most(1));
		return;
	}
	for (uint32_t v = 1; v < key->size; v++) {
		struct oci_range block = oci_tabled(OCI_TABLE_RECV, oci_block_rel(OCI_BUF_RECV, v));

		oci_build_wait_when(b, OCI_OP_WAIT_POST, v, 1, 1, OCI_WHEN_FILLED, block, false, 0);
		oci_build_take(b, block, v, 1, OCI_WHEN_ALWAYS);
		oci_build_signal(b, (uint16_t)v, 0);
	}
	oci_build_copy(b, mine, oci_tabled(OCI_TABLE_RECV, oci_block_rel(OCI_BUF_RECV, 0)));
}

const struct oci_algorithm oci_gatherv_sequential_read = {
	.name = "sequential-read",
	.idea = "the root takes one block after the other, in the way its size says",
	.build = build,
	.fits = oci_fits_step_each,
	.single_copy = true,
};
