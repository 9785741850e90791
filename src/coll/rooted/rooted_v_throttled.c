/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Each block goes by its own size (plan.h, offers), and the ranks copy LARGE ones, at most k at a
 * time: rank v starts when v - k is through. Scatterv throttled-read and Gatherv throttled-write
 * (paper 002, IV-A3 and IV-B3).
 *
 * Scatterv: the root offers the others' blocks, each takes its own. Gatherv: ranks offer their
 * block and the root takes those that are not LARGE; for the LARGE ones it offers addresses, to
 * which their owners write.
 *
 * Wins always so far. Cost: that of Scatter or Gather inline, cico or the same name for each block.
 * Restriction: a cell for each peer must fit (oci_offer_fits).
 */
#include "coll/rooted/rooted.h"

static void build_root(struct oci_builder *b, bool scatter, uint32_t most)
{
	const struct oci_plan_key *key = oci_builder_key(b);
	uint32_t others = key->size - 1;
	/* Its number will be that of a peer. */
	struct oci_range any = scatter ? oci_tabled(OCI_TABLE_SEND, oci_block(OCI_BUF_SEND, 0)) :
					 oci_tabled(OCI_TABLE_RECV, oci_block(OCI_BUF_RECV, 0));

	if (others && scatter)
		oci_build_offer(b, any, others);
	else if (others)
		oci_build_offer_addresses(b, any, others, most);
	oci_build_post(b, OCI_POST_FLAG, 1, 0);
	oci_rooted_copy(b);
	for (uint32_t v = 1; v < key->size && !scatter; v++) {
		struct oci_range block = oci_rooted_there(key, v);

		oci_build_wait_when(b, OCI_OP_WAIT_POST, v, 1, 1, OCI_WHEN_SMALL, block, false,
				    most);
		oci_build_take(b, block, v, 1, OCI_WHEN_SMALL);
	}
	oci_build_wait_when(b, OCI_OP_WAIT_ACK, 1, others, 1, OCI_WHEN_LARGE, any, true, most);
}

static void build(struct oci_builder *b)
{
	const struct oci_plan_key *key = oci_builder_key(b);
	uint32_t k = oci_rooted_at_once(b);
	bool scatter = oci_is_scatter(key->collective);
	uint32_t others = key->size - 1, most = oci_offer_most(scatter ? others : 1);
	struct oci_range mine = oci_rooted_mine(key);

	if (key->v == 0) {
		build_root(b, scatter, most);
		return;
	}
	if (scatter) {
		oci_build_wait_when(b, OCI_OP_WAIT_POST, 0, 1, 1, OCI_WHEN_FILLED, mine, false, 0);
	} else {
		oci_build_offer(b, mine, 1);
		oci_build_post(b, OCI_POST_FLAG, 1, 0);
		oci_build_wait_when(b, OCI_OP_WAIT_POST, 0, 1, 1, OCI_WHEN_LARGE, mine, false,
				    most);
	}
	if (key->v > k)
		oci_build_wait_when(b, OCI_OP_WAIT_ACK, key->v - k, 1, 1, OCI_WHEN_LARGE, mine,
				    false, most);
	if (scatter)
		oci_build_take(b, mine, 0, others, OCI_WHEN_ALWAYS);
	else
		oci_build_give(b, mine, 0, others, most);
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

const struct oci_algorithm oci_gatherv_throttled_write = {
	.name = "throttled-write",
	.idea = "the root takes what is not large; large blocks are written, at most k at a time",
	.build = build,
	.fits = oci_fits_offer_others,
	.parameter_default = 4,
	.parameter_min = 1,
	.single_copy = true,
};
