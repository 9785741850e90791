/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A Gather to rank 0 and a Bcast from it: all write their block to rank 0, then all read the
 * others' from there (paper 000, V-C). Rank 0 offers the places of all blocks, its own included;
 * the others offer nothing.
 *
 * Wins as Allgather gather-bcast does. All blocks go by a single copy, however small, and each by
 * one of its own, as no two need lie side by side.
 * Cost: that of Allgather gather-bcast with p - 1 start-ups in its second half.
 * Restriction: a cell for each rank must fit (oci_offer_fits).
 */
#include "coll/build.h"

static struct oci_range part(uint32_t rank)
{
	return oci_tabled(OCI_TABLE_RECV, oci_block(OCI_BUF_RECV, rank));
}

static void build_first(struct oci_builder *b)
{
	const struct oci_plan_key *key = oci_builder_key(b);

	oci_build_offer_addresses(b, part(0), key->size, 0);
	oci_build_post(b, OCI_POST_FLAG, 1, 0);
	oci_build_copy(b, oci_block(OCI_BUF_SEND, 0), part(0));
	oci_build_wait_others_ack(b, 1);
	oci_build_post(b, OCI_POST_FLAG, 2, 0);
	oci_build_wait_others_ack(b, 2);
}

static void build(struct oci_builder *b)
{
	const struct oci_plan_key *key = oci_builder_key(b);
	struct oci_range mine = oci_block(OCI_BUF_SEND, 0);

	if (!key->v) {
		build_first(b);
		return;
	}
	oci_build_wait_post(b, 0, 1, 1, 0);
	oci_build_give(b, mine, 0, key->size, 0);
	oci_build_signal(b, 1, 0);
	oci_build_copy(b, mine, part(key->v));
	oci_build_wait_post(b, 0, 1, 2, 0);
	for (uint32_t i = 1; i < key->size; i++) {
		uint32_t source = oci_next(key, i);

		oci_build_take_block(b, part(source), 0, source, key->size, 0);
	}
	oci_build_signal(b, 2, 0);
}

static bool fits(const struct oci_shape *shape, uint32_t parameter)
{
	(void)parameter;
	return oci_offer_fits(shape->size);
}

const struct oci_algorithm oci_allgatherv_gather_bcast = {
	.name = "gather-bcast",
	.idea = "all write their block to rank 0, then all read the others' from it",
	.build = build,
	.fits = fits,
	.single_copy = true,
};
