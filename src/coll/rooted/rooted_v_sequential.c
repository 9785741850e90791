/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Each block goes by its own size (plan.h, offers), and the root copies LARGE ones, one after the
 * other. Scatterv sequential-write and Gatherv sequential-read (paper 002, IV-A2 and IV-B2).
 *
 * Scatterv: the root offers the blocks that are not LARGE, and writes the LARGE ones to the
 * addresses that their owners offer. Gatherv: ranks offer their block and the root takes them.
 *
 * Wins where concurrent copies from or to one process are slower than one copier.
 * Cost: that of Scatter or Gather inline, cico or the same name for each block.
 * Restriction of Scatterv: a cell for each peer must fit (oci_offer_fits).
 */
#include "coll/rooted/rooted.h"

static void build_root(struct oci_builder *b, bool scatter, uint32_t most)
{
	const struct oci_plan_key *key = oci_builder_key(b);
	uint32_t others = key->size - 1;

	if (scatter && others)
		oci_build_offer(b, oci_tabled(OCI_TABLE_SEND, oci_block(OCI_BUF_SEND, 0)), others);
	if (scatter)
		oci_build_post(b, OCI_POST_FLAG, 1, 0);
	for (uint32_t v = 1; v < key->size; v++) {
		struct oci_range block = oci_rooted_there(key, v);

		oci_build_wait_when(b, OCI_OP_WAIT_POST, v, 1, 1,
				    scatter ? OCI_WHEN_LARGE : OCI_WHEN_FILLED, block, false,
				    scatter ? most : 0);
		if (scatter)
			oci_build_give(b, block, v, 1, most);
		else
			oci_build_take(b, block, v, 1, OCI_WHEN_ALWAYS);
		oci_build_signal(b, (uint16_t)v, 0);
	}
	oci_rooted_copy(b);
}

static void build(struct oci_builder *b)
{
	const struct oci_plan_key *key = oci_builder_key(b);
	bool scatter = oci_is_scatter(key->collective);
	uint32_t others = key->size - 1, most = oci_offer_most(scatter ? others : 1);
	struct oci_range mine = oci_rooted_mine(key);

	if (key->v == 0) {
		build_root(b, scatter, most);
		return;
	}
	if (scatter)
		oci_build_offer_addresses(b, mine, 1, most);
	else
		oci_build_offer(b, mine, 1);
	oci_build_post(b, OCI_POST_FLAG, 1, 0);
	if (scatter) {
		oci_build_wait_when(b, OCI_OP_WAIT_POST, 0, 1, 1, OCI_WHEN_SMALL, mine, false,
				    most);
		oci_build_take(b, mine, 0, others, OCI_WHEN_SMALL);
	}
	oci_build_wait_when(b, OCI_OP_WAIT_ACK, 0, 1, (uint16_t)key->v, OCI_WHEN_LARGE, mine, false,
			    most);
}

const struct oci_algorithm oci_scatterv_sequential_write = {
	.name = "sequential-write",
	.idea = "ranks take what is not large; the root writes the large blocks one by one",
	.build = build,
	.fits = oci_fits_offer_others,
	.single_copy = true,
};

const struct oci_algorithm oci_gatherv_sequential_read = {
	.name = "sequential-read",
	.idea = "the root takes one block after the other, in the way its size says",
	.build = build,
	.fits = oci_fits_step_each,
	.single_copy = true,
};
