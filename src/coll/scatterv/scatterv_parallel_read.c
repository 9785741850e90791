/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The root offers the others' blocks, and all take theirs at once, each by its own size (plan.h,
 * offers): paper 002, IV-A1, for the LARGE ones.
 *
 * Wins where few blocks are LARGE, or their readers do not slow each other down.
 * Cost: that of Scatter inline, cico or parallel-read for each block.
 * Restriction: a cell for each peer must fit (oci_offer_fits).
 */
#include "coll/build.h"
#include "coll/scatterv/scatterv.h"

static void build(struct oci_builder *b)
{
	const struct oci_plan_key *key = oci_builder_key(b);
	uint32_t others = key->size - 1;
	struct oci_range mine = oci_block(OCI_BUF_RECV, 0);
	struct oci_range any = oci_tabled(OCI_TABLE_SEND, oci_block(OCI_BUF_SEND, 0));

	if (key->v == 0) {
		if (others)
			oci_build_offer(b, any, others);
		oci_build_post(b, OCI_POST_FLAG, 1, 0);
		oci_build_copy(b, oci_tabled(OCI_TABLE_SEND, oci_block_rel(OCI_BUF_SEND, 0)), mine);
		oci_build_wait_when(b, OCI_OP_WAIT_ACK, 1, others, 1, OCI_WHEN_LARGE, any, true,
				    oci_offer_most(others));
		return;
	}
	oci_build_wait_when(b, OCI_OP_WAIT_POST, 0, 1, 1, OCI_WHEN_FILLED, mine, false, 0);
	oci_build_take(b, mine, 0, others, OCI_WHEN_ALWAYS);
	oci_build_signal(b, 1, 0);
}

const struct oci_algorithm oci_scatterv_parallel_read = {
	.name = "parallel-read",
	.idea = "ranks take their block from the root, in the way its size says, all at once",
	.build = build,
	.fits = oci_fits_offer_others,
	.single_copy = true,
};
