/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The pairwise exchange as messages between two ranks would do it, one of the baselines of paper
 * 002, Figure 9: see alltoall_point_to_point.c. Each rank offers the places of the blocks that it
 * expects, and says with each step that the one of this step may be written.
 *
 * In place there is nothing to write to before it was read: blocks change places, as in pairwise.
 *
 * Wins never; to be compared with. All blocks go by a single copy, however small; empty ones
 * without a handshake. Cost: that of Alltoall point-to-point for each block that is not empty.
 * Restriction: a cell for each peer must fit (oci_offer_fits).
 */
#include "coll/alltoallv/alltoallv.h"
#include "coll/build.h"

static struct oci_range block(enum oci_buf buf, uint32_t rank)
{
	return oci_tabled(buf == OCI_BUF_SEND ? OCI_TABLE_SEND : OCI_TABLE_RECV,
			  oci_block(buf, rank));
}

static void build_step(struct oci_builder *b, uint32_t i)
{
	const struct oci_plan_key *key = oci_builder_key(b);
	uint32_t target = oci_pairwise_target(key, i), source = oci_pairwise_source(key, i);
	struct oci_range out = block(OCI_BUF_SEND, target), in = block(OCI_BUF_RECV, source);
	uint16_t ready = (uint16_t)(2 * i - 1), there = (uint16_t)(2 * i);

	oci_build_signal(b, ready, 0);
	oci_build_wait_when(b, OCI_OP_WAIT_ACK, source, 1, ready, OCI_WHEN_FILLED, in, false, 0);
	oci_build_post(b, OCI_POST_FLAG, (uint16_t)i, 0);
	oci_build_wait_when(b, OCI_OP_WAIT_POST, target, 1, (uint16_t)i, OCI_WHEN_FILLED, out,
			    false, 0);
	oci_build_give(b, out, target, key->size - 1, 0);
	oci_build_signal(b, there, 0);
	oci_build_wait_when(b, OCI_OP_WAIT_ACK, source, 1, there, OCI_WHEN_FILLED, in, false, 0);
}

static void build(struct oci_builder *b)
{
	const struct oci_plan_key *key = oci_builder_key(b);

	if (key->size > 1)
		oci_build_offer_addresses(b, block(OCI_BUF_RECV, 0), key->size - 1, 0);
	oci_build_copy(b, block(OCI_BUF_SEND, key->v), block(OCI_BUF_RECV, key->v));
	for (uint32_t i = 1; i < key->size && !key->in_place; i++)
		build_step(b, i);
	if (!key->in_place)
		return;
	oci_build_post(b, OCI_POST_FLAG, 1, 0);
	oci_build_alltoallv_trade(b, 0);
	oci_build_signal(b, 1, 0);
	oci_build_wait_when(b, OCI_OP_WAIT_ACK, oci_next(key, 1), key->size - 1, 1, OCI_WHEN_LARGE,
			    block(OCI_BUF_RECV, 0), true, 0);
}

const struct oci_algorithm oci_alltoallv_point_to_point = {
	.name = "point-to-point",
	.idea = "pairwise with a handshake for each message; to compare with",
	.build = build,
	.fits = oci_fits_offer_others,
	.single_copy = true,
};
