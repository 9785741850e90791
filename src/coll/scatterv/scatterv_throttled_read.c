/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The root offers the others' blocks; large ones are read at most k at a time: rank v starts when
 * v - k is through (paper 002, IV-A3). Others go at once, each by its own size (plan.h, offers).
 *
 * Wins always so far. Cost: that of Scatter inline, cico or throttled-read for each block.
 * Restriction: a cell for each peer must fit (oci_offer_fits).
 */
#include "coll/build.h"
#include "coll/scatterv/scatterv.h"

static void build(struct oci_builder *b)
{
	const struct oci_plan_key *key = oci_builder_key(b);
	uint32_t others = key->size - 1, k = key->parameter, most = oci_offer_most(others);
	struct oci_range mine = oci_block(OCI_BUF_RECV, 0);

	if (key->v == 0) {
		if (others)
			oci_build_offer(b, oci_tabled(OCI_TABLE_SEND, oci_block(OCI_BUF_SEND, 0)),
					others);
		oci_build_post(b, OCI_POST_FLAG, 1, 0);
		oci_build_copy(b, oci_tabled(OCI_TABLE_SEND, oci_block_rel(OCI_BUF_SEND, 0)), mine);
		oci_build_wait_when(b, OCI_OP_WAIT_ACK, 1, others, 1, OCI_WHEN_LARGE,
				    oci_tabled(OCI_TABLE_SEND, oci_block(OCI_BUF_SEND, 0)), true,
				    most);
		return;
	}
	oci_build_wait_when(b, OCI_OP_WAIT_POST, 0, 1, 1, OCI_WHEN_FILLED, mine, false, 0);
	if (key->v > k)
		oci_build_wait_when(b, OCI_OP_WAIT_ACK, key->v - k, 1, 1, OCI_WHEN_LARGE, mine,
				    false, most);
	oci_build_take(b, mine, 0, others, OCI_WHEN_ALWAYS);
	/* Whatever my size: rank v + k, which does not know it, may wait for me. */
	oci_build_signal(b, 1, 0);
}

const struct oci_algorithm oci_scatterv_throttled_read = {
	.name = "throttled-read",
	.idea = "ranks take their block from the root, in the way its size says, at most k large",
	.build = build,
	.fits = oci_fits_offer_others,
	.parameter_default = 4,
	.parameter_min = 1,
	.single_copy = true,
};
