/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pairwise: each rank offers the others' blocks; in step i it takes its block from one peer: rank
 * XOR i when p is a power of two, else rank - i (paper 002, IV-C1). Wins always so far: each block
 * goes by its own size (plan.h, offers), tiny ones beside the flag, small ones through the slot,
 * large ones in one copy, whatever the others' sizes are. In place, large blocks change places
 * (TRADE) and the others were offered before they are overwritten. Cost: that of Alltoall inline,
 * cico or pairwise for each block; nobody waits for whom it gives and takes nothing.
 *
 * Restriction: a cell for each peer must fit (oci_offer_fits).
 */
#include "coll/build.h"

static struct oci_range block(enum oci_buf buf, uint32_t rank)
{
	return oci_tabled(buf == OCI_BUF_SEND ? OCI_TABLE_SEND : OCI_TABLE_RECV,
			  oci_block(buf, rank));
}

/* LARGE blocks, from `limit` on, change places with those of all others. */
static void build_trade(struct oci_builder *b, uint32_t limit)
{
	const struct oci_plan_key *key = oci_builder_key(b);

	oci_build_segment(b, OCI_TRADE_BYTES);
	for (uint32_t i = 0; i < key->size; i++) {
		uint32_t partner = oci_pairwise_partner(key, i);

		if (partner == key->v)
			continue;
		oci_build_wait_when(b, OCI_OP_WAIT_POST, partner, 1, 1, OCI_WHEN_LARGE,
				    block(OCI_BUF_RECV, partner), false, limit);
		oci_build_trade_offered(b, block(OCI_BUF_RECV, partner), partner, key->size - 1,
					limit);
	}
}

static void build(struct oci_builder *b)
{
	const struct oci_plan_key *key = oci_builder_key(b);
	uint32_t others = key->size - 1;
	enum oci_when taken = key->in_place ? OCI_WHEN_SMALL : OCI_WHEN_FILLED;

	if (others)
		oci_build_offer(b, block(OCI_BUF_SEND, 0), others);
	oci_build_post(b, OCI_POST_FLAG, 1, 0);
	oci_build_copy(b, block(OCI_BUF_SEND, key->v), block(OCI_BUF_RECV, key->v));
	for (uint32_t i = 1; i < key->size; i++) {
		uint32_t source = oci_pairwise_source(key, i);

		oci_build_wait_when(b, OCI_OP_WAIT_POST, source, 1, 1, taken,
				    block(OCI_BUF_RECV, source), false, oci_offer_most(others));
		oci_build_take(b, block(OCI_BUF_RECV, source), source, others, taken);
	}
	if (key->in_place)
		build_trade(b, oci_offer_most(others));
	oci_build_signal(b, 1, 0);
	/* The offer's data are safe in the lane; only who reads a LARGE block is waited for. */
	oci_build_wait_when(b, OCI_OP_WAIT_ACK, oci_next(key, 1), others, 1, OCI_WHEN_LARGE,
			    block(OCI_BUF_SEND, 0), true, oci_offer_most(others));
}

const struct oci_algorithm oci_alltoallv_pairwise = {
	.name = "pairwise",
	.idea = "in step i each rank takes its block from one peer, in the way its size says",
	.build = build,
	.fits = oci_fits_offer_others,
	.single_copy = true,
};
