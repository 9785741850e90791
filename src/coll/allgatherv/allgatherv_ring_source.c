/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ring-source-read: each rank offers its block and takes the others' from their owners, in the
 * order of a ring (paper 002, IV-D1). Wins always so far: each block goes by its own size (plan.h,
 * offers). Cost: that of Allgather inline, cico or ring-source-read for each block.
 */
#include "coll/build.h"

static struct oci_range part(uint32_t rank)
{
	return oci_tabled(OCI_TABLE_RECV, oci_block(OCI_BUF_RECV, rank));
}

static void build(struct oci_builder *b)
{
	const struct oci_plan_key *key = oci_builder_key(b);
	struct oci_range mine = oci_block(OCI_BUF_SEND, 0);

	oci_build_offer(b, mine, 1);
	oci_build_post(b, OCI_POST_FLAG, 1, 0);
	oci_build_copy(b, mine, part(key->v));
	for (uint32_t i = 1; i < key->size; i++) {
		uint32_t source = oci_previous(key, i);

		oci_build_wait_when(b, OCI_OP_WAIT_POST, source, 1, 1, OCI_WHEN_FILLED,
				    part(source), false, 0);
		oci_build_take(b, part(source), source, 1, OCI_WHEN_ALWAYS);
	}
	oci_build_signal(b, 1, 0);
	oci_build_wait_when(b, OCI_OP_WAIT_ACK, oci_next(key, 1), key->size - 1, 1, OCI_WHEN_LARGE,
			    mine, false, oci_offer_most(1));
}

const struct oci_algorithm oci_allgatherv_ring_source_read = {
	.name = "ring-source-read",
	.idea = "in step i each rank takes the block of rank - i, in the way its size says",
	.build = build,
	.single_copy = true,
};
