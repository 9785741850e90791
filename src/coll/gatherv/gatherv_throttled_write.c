/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks offer their block and the root takes those that are not LARGE. For the LARGE ones the root
 * offers addresses, to which their owners write, at most k at a time: rank v starts when v - k is
 * through (paper 002, IV-B3).
 *
 * Wins always so far. Cost: that of Gather inline, cico or throttled-write for each block.
 * Restriction: a cell for each peer must fit (oci_offer_fits).
 */
#include "coll/build.h"
#include "coll/gatherv/gatherv.h"

static struct oci_range part(uint32_t v)
{
	return oci_tabled(OCI_TABLE_RECV, oci_block_rel(OCI_BUF_RECV, v));
}

void oci_gatherv_build_root(struct oci_builder *b)
{
	const struct oci_plan_key *key = oci_builder_key(b);
	uint32_t others = key->size - 1, most = oci_offer_most(1);
	struct oci_range any = oci_tabled(OCI_TABLE_RECV, oci_block(OCI_BUF_RECV, 0));

	if (others)
		oci_build_offer_addresses(b, any, others, most);
	oci_build_post(b, OCI_POST_FLAG, 1, 0);
	oci_build_copy(b, oci_block(OCI_BUF_SEND, 0), part(0));
	for (uint32_t v = 1; v < key->size; v++) {
		oci_build_wait_when(b, OCI_OP_WAIT_POST, v, 1, 1, OCI_WHEN_SMALL, part(v), false,
				    most);
		oci_build_take(b, part(v), v, 1, OCI_WHEN_SMALL);
	}
	oci_build_wait_when(b, OCI_OP_WAIT_ACK, 1, others, 1, OCI_WHEN_LARGE, any, true, most);
}

static void build(struct oci_builder *b)
{
	const struct oci_plan_key *key = oci_builder_key(b);
	uint32_t others = key->size - 1, k = key->parameter, most = oci_offer_most(1);
	struct oci_range mine = oci_block(OCI_BUF_SEND, 0);

	if (key->v == 0) {
		oci_gatherv_build_root(b);
		return;
	}
	oci_build_offer(b, mine, 1);
	oci_build_post(b, OCI_POST_FLAG, 1, 0);
	oci_build_wait_when(b, OCI_OP_WAIT_POST, 0, 1, 1, OCI_WHEN_LARGE, mine, false, most);
	if (key->v > k)
		oci_build_wait_when(b, OCI_OP_WAIT_ACK, key->v - k, 1, 1, OCI_WHEN_LARGE, mine,
				    false, most);
	oci_build_give(b, mine, 0, others, most);
	/* Whatever my size: rank v + k, which does not know it, may wait for me. */
	oci_build_signal(b, 1, 0);
}

const struct oci_algorithm oci_gatherv_throttled_write = {
	.name = "throttled-write",
	.idea = "the root takes what is not large; large blocks are written, at most k at a time",
	.build = build,
	.fits = oci_fits_offer_others,
	.parameter_default = 4,
	.parameter_min = 1,
	.single_copy = true,
};
