/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Each rank offers the places of all blocks; in step i each writes its own to rank + i (paper 002,
 * V-A2).
 *
 * Wins where writing is the faster direction and blocks are large: all go by a single copy, however
 * small. Whoever has nothing to give waits for no one, and nobody waits for it.
 * Cost: that of Allgather ring-source-write for each block that is not empty.
 * Restriction: a cell for each peer must fit (oci_offer_fits).
 */
#include "coll/build.h"

static void build(struct oci_builder *b)
{
	const struct oci_plan_key *key = oci_builder_key(b);
	uint32_t others = key->size - 1;
	struct oci_range mine = oci_block(OCI_BUF_SEND, 0);
	struct oci_range any = oci_tabled(OCI_TABLE_RECV, oci_block(OCI_BUF_RECV, 0));

	if (others)
		oci_build_offer_addresses(b, any, others, 0);
	oci_build_post(b, OCI_POST_FLAG, 1, 0);
	oci_build_copy(b, mine, oci_tabled(OCI_TABLE_RECV, oci_block(OCI_BUF_RECV, key->v)));
	for (uint32_t i = 1; i < key->size; i++) {
		uint32_t target = oci_next(key, i);

		oci_build_wait_when(b, OCI_OP_WAIT_POST, target, 1, 1, OCI_WHEN_FILLED, mine, false,
				    0);
		oci_build_give(b, mine, target, others, 0);
	}
	oci_build_signal(b, 1, 0);
	oci_build_wait_when(b, OCI_OP_WAIT_ACK, oci_next(key, 1), others, 1, OCI_WHEN_FILLED, any,
			    true, 0);
}

const struct oci_algorithm oci_allgatherv_ring_source_write = {
	.name = "ring-source-write",
	.idea = "in step i each rank writes its block to rank + i",
	.build = build,
	.fits = oci_fits_offer_others,
	.single_copy = true,
};
