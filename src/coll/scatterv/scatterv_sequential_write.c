/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The root offers the blocks that are not LARGE, and writes the LARGE ones, one after the other, to
 * the addresses that their owners offer (paper 002, IV-A2).
 *
 * Wins where concurrent readers of one process are slower than one copier.
 * Cost: that of Scatter inline, cico or sequential-write for each block.
 * Restriction: a cell for each peer must fit (oci_offer_fits).
 */
#include "coll/build.h"
#include "coll/scatterv/scatterv.h"

static void build_root(struct oci_builder *b, struct oci_range mine, uint32_t others)
{
	const struct oci_plan_key *key = oci_builder_key(b);

	if (others)
		oci_build_offer(b, oci_tabled(OCI_TABLE_SEND, oci_block(OCI_BUF_SEND, 0)), others);
	oci_build_post(b, OCI_POST_FLAG, 1, 0);
	for (uint32_t v = 1; v < key->size; v++) {
		struct oci_range block = oci_tabled(OCI_TABLE_SEND, oci_block_rel(OCI_BUF_SEND, v));

		oci_build_wait_when(b, OCI_OP_WAIT_POST, v, 1, 1, OCI_WHEN_LARGE, block, false,
				    oci_offer_most(others));
		oci_build_give(b, block, v, 1, oci_offer_most(others));
		oci_build_signal(b, (uint16_t)v, 0);
	}
	oci_build_copy(b, oci_tabled(OCI_TABLE_SEND, oci_block_rel(OCI_BUF_SEND, 0)), mine);
}

static void build(struct oci_builder *b)
{
	const struct oci_plan_key *key = oci_builder_key(b);
	uint32_t others = key->size - 1, most = oci_offer_most(others);
	struct oci_range mine = oci_block(OCI_BUF_RECV, 0);

	if (key->v == 0) {
		build_root(b, mine, others);
		return;
	}
	oci_build_offer_addresses(b, mine, 1, most);
	oci_build_post(b, OCI_POST_FLAG, 1, 0);
	oci_build_wait_when(b, OCI_OP_WAIT_POST, 0, 1, 1, OCI_WHEN_SMALL, mine, false, most);
	oci_build_take(b, mine, 0, others, OCI_WHEN_SMALL);
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
