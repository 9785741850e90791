/* SPDX-License-Identifier: BSD-3-Clause */
#include "plan/load.h"
#include "support/test.h"

#include <stdlib.h>

#define RANKS 4
#define BYTES ((size_t)100000)

/* Ranks 0 and 1 sit together, 2 and 3 do, as seen by rank `*me`. */
static bool share_a_cache(const void *me, uint32_t rank)
{
	return rank / 2 == *(const uint32_t *)me / 2;
}

static struct oci_load load_of(struct oci_builder *b, const struct oc_block *blocks, uint32_t root)
{
	uint32_t me = (oci_builder_key(b)->v + root) % RANKS;
	struct oci_params params = { .bytes = BYTES,
				     .root = root,
				     .size = RANKS,
				     .recv_blocks = blocks };
	struct oci_plan *plan = oci_builder_finish(b, &(int){ 0 });
	struct oci_load load;

	assert_non_null(plan);
	oci_params_derive(&params, plan, 1);
	load = oci_plan_load(plan, &params, share_a_cache, &me);
	free(plan);
	return load;
}

static struct oci_builder *builder(uint32_t v)
{
	struct oci_plan_key key = { .collective = OC_ALLTOALLV, .v = v, .size = RANKS };
	struct oci_builder *b = oci_builder_create(&key);

	assert_non_null(b);
	return b;
}

TEST(copies_of_ranks_that_share_a_cache_are_counted_apart)
{
	struct oci_builder *b = builder(0);
	struct oci_load load;

	oci_build_post(b, OCI_POST_ADDRESS, 1, 0);
	oci_build_wait_post(b, 1, RANKS - 1, 1, 0);
	for (uint32_t v = 1; v < RANKS; v++)
		oci_build_pull(b, oci_block(OCI_BUF_RECV, v), v, oci_block(OCI_BUF_SEND, 0));
	/* Neither is a copy of one process's memory by another. */
	oci_build_copy(b, oci_block(OCI_BUF_SEND, 0), oci_block(OCI_BUF_RECV, 0));
	oci_build_pull(b, oci_block(OCI_BUF_RECV, 0), 1, oci_block(OCI_BUF_SLOT, 0));
	load = load_of(b, NULL, 0);
	assert_int_equal(load.all, 3 * BYTES);
	assert_int_equal(load.near, BYTES);
}

TEST(the_root_tells_who_sits_near)
{
	struct oci_builder *b = builder(1);
	struct oci_load load;

	/* Rank 2 pulls from rank 1, and pushes to rank 3. */
	oci_build_post(b, OCI_POST_ADDRESS, 1, 0);
	oci_build_pull(b, oci_block(OCI_BUF_RECV, 0), 0, oci_block(OCI_BUF_SEND, 0));
	oci_build_push(b, oci_part(OCI_BUF_SEND, 0, 1), 2, oci_part(OCI_BUF_RECV, 0, 1));
	oci_build_parts(b, 2);
	load = load_of(b, NULL, 1);
	assert_in_range(load.near, BYTES / 2, BYTES / 2 + 64);
	assert_int_equal(load.all, BYTES + load.near);
}

TEST(a_loop_copies_its_segments_once_and_what_is_not_cut_in_each_turn)
{
	struct oci_builder *b = builder(0);
	struct oci_range block = oci_segmented(oci_block(OCI_BUF_RECV, 0));
	struct oci_load load;

	oci_build_segment(b, 4096);
	oci_build_post(b, OCI_POST_ADDRESS, 1, 0);
	oci_build_loop(b, block);
	oci_build_pull(b, block, 2, oci_segmented(oci_block(OCI_BUF_SEND, 0)));
	oci_build_next(b);
	oci_build_pull(b, oci_block(OCI_BUF_RECV, 1), 1, oci_block(OCI_BUF_SEND, 1));
	load = load_of(b, NULL, 0);
	assert_int_equal(load.all, 2 * BYTES);
	assert_int_equal(load.near, BYTES);
}

TEST(of_blocks_of_different_sizes_the_large_ones_are_copied)
{
	uint32_t limit = oci_offer_most(RANKS - 1);
	struct oc_block blocks[RANKS] = { { 0, 9 },
					  { 9, limit },
					  { 90000, 300000 },
					  { 400000, 0 } };
	struct oci_builder *b = builder(0);
	struct oci_load load;

	for (uint32_t v = 1; v < RANKS; v++) {
		struct oci_range block = oci_block(OCI_BUF_RECV, v);

		block.table = OCI_TABLE_RECV;
		oci_build_take(b, block, v, RANKS - 1, OCI_WHEN_FILLED);
	}
	load = load_of(b, blocks, 0);
	assert_int_equal(load.all, 300000);
	assert_int_equal(load.near, 0);
}

TEST(of_a_trade_each_end_copies_its_part_of_both_blocks)
{
	struct oci_load load[2];

	for (uint32_t v = 0; v < 2; v++) {
		struct oci_builder *b = builder(v);

		oci_build_segment(b, 4096);
		oci_build_post(b, OCI_POST_ADDRESS, 1, 0);
		oci_build_trade(b, oci_block(OCI_BUF_RECV, !v), !v, oci_block(OCI_BUF_RECV, v));
		load[v] = load_of(b, NULL, 0);
		assert_int_equal(load[v].all, load[v].near);
	}
	assert_int_equal(load[0].all + load[1].all, 2 * BYTES);
}
