/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ring-source-read: each rank offers its block and takes the others' from their owners, in the
 * order of a ring (paper 002, IV-D1). Wins always so far: each block goes by its own size (plan.h,
 * offers). Cost: that of Allgather inline, cico or ring-source-read for each block.
 *
 * ring-source-write: each rank offers the places of all blocks; in step i each writes its own to
 * rank + i (paper 002, V-A2). Wins where writing is the faster direction and blocks are large: all
 * go by a single copy, however small. Whoever has nothing to give waits for no one, and nobody
 * waits for it. Cost: that of Allgather ring-source-write for each block that is not empty.
 * Restriction: a cell for each peer must fit (oci_offer_fits).
 */
#include "coll/build.h"

static struct oci_range part(uint32_t rank)
{
	return oci_tabled(OCI_TABLE_RECV, oci_block(OCI_BUF_RECV, rank));
}

static void build_read(struct oci_builder *b)
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

static void build_write(struct oci_builder *b)
{
	const struct oci_plan_key *key = oci_builder_key(b);
	uint32_t others = key->size - 1;
	struct oci_range mine = oci_block(OCI_BUF_SEND, 0);
	struct oci_range any = part(0);

	if (others)
		oci_build_offer_addresses(b, any, others, 0);
	oci_build_post(b, OCI_POST_FLAG, 1, 0);
	oci_build_copy(b, mine, part(key->v));
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

const struct oci_algorithm oci_allgatherv_ring_source_read = {
	.name = "ring-source-read",
	.idea = "in step i each rank takes the block of rank - i, in the way its size says",
	.build = build_read,
	.single_copy = true,
};

const struct oci_algorithm oci_allgatherv_ring_source_write = {
	.name = "ring-source-write",
	.idea = "in step i each rank writes its block to rank + i",
	.build = build_write,
	.fits = oci_fits_offer_others,
	.single_copy = true,
};
