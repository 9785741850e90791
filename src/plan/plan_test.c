/* SPDX-License-Identifier: BSD-3-Clause */
#include "plan/plan.h"
#include "support/test.h"

#include <errno.h>
#include <stdlib.h>

#define RANKS 5
#define ME 1

static struct oci_builder *builder(void)
{
	static const struct oci_plan_key key = { .collective = OC_BCAST, .v = ME, .size = RANKS };
	struct oci_builder *b = oci_builder_create(&key);

	assert_non_null(b);
	return b;
}

static struct oci_range recv_block(void)
{
	return oci_block(OCI_BUF_RECV, 0);
}

/* ---- what a plan becomes ------------------------------------------------------------------- */

TEST(plan_is_packed_with_end_jumps_and_uses)
{
	struct oci_builder *b = builder();
	struct oci_plan *plan;
	int error = 1;

	assert_int_equal(oci_builder_key(b)->v, ME);
	oci_build_parts(b, 3);
	oci_build_segment(b, 4096);
	oci_build_post(b, OCI_POST_SLOT, 1, 0);
	oci_build_loop(b, oci_segmented(recv_block()));
	oci_build_wait_post(b, 4, 2, 1, 1);
	oci_build_pull(b, oci_segmented(oci_part(OCI_BUF_TEMP, 1, 1)), 0,
		       oci_segmented(oci_part(OCI_BUF_SEND, 1, 1)));
	oci_build_next(b);
	oci_build_wait_ack(b, 0, 0, 1, 0);
	plan = oci_builder_finish(b, &error);
	assert_non_null(plan);
	assert_int_equal(error, 1);
	assert_int_equal(plan->count, 6);
	assert_int_equal(plan->nparts, 3);
	assert_int_equal(plan->segment_bytes, 4096);
	assert_true(plan->uses_slot && plan->uses_temp && plan->posts);
	assert_false(plan->uses_acc || plan->uses_share);
	assert_int_equal(plan->ops[1].code, OCI_OP_LOOP);
	assert_int_equal(plan->ops[1].jump, 4);
	assert_false(plan->ops[1].local.segmented);
	assert_int_equal(plan->ops[4].code, OCI_OP_NEXT);
	assert_int_equal(plan->ops[4].jump, 1);
	assert_int_equal(plan->ops[5].code, OCI_OP_END);
	free(plan);
}

/* The slot_blocks of a plan that copies into so much of its slot. */
static uint32_t blocks_of(enum oc_collective collective, struct oci_range slot)
{
	const struct oci_plan_key key = { .collective = collective, .v = ME, .size = RANKS };
	struct oci_builder *b = oci_builder_create(&key);
	struct oci_range from = recv_block();
	struct oci_plan *plan;
	uint32_t blocks;
	int error = 0;

	from.blocks = slot.blocks;
	from.table = slot.table;
	oci_build_parts(b, slot.parts ? 3 : 0);
	oci_build_segment(b, 4096);
	if (slot.segmented)
		oci_build_loop(b, from);
	from.segmented = slot.segmented;
	oci_build_copy(b, from, slot);
	if (slot.segmented)
		oci_build_next(b);
	plan = oci_builder_finish(b, &error);
	assert_non_null(plan);
	assert_true(plan->uses_slot);
	blocks = plan->slot_blocks;
	free(plan);
	return blocks;
}

TEST(a_plan_knows_how_much_of_a_slot_it_uses)
{
	struct oci_range relative = oci_block(OCI_BUF_SLOT, 2);
	struct oci_range table = oci_tabled(OCI_TABLE_RECV, oci_block(OCI_BUF_SLOT, 3));

	relative.relative = 1;
	assert_int_equal(blocks_of(OC_SCATTER, oci_block(OCI_BUF_SLOT, 0)), 1);
	assert_int_equal(blocks_of(OC_SCATTER, oci_blocks(OCI_BUF_SLOT, 1, 3)), 4);
	assert_int_equal(blocks_of(OC_ALLREDUCE, oci_part(OCI_BUF_SLOT, 2, 1)), 1);
	assert_int_equal(blocks_of(OC_BCAST, oci_segmented(oci_block(OCI_BUF_SLOT, 0))), 1);
	assert_int_equal(blocks_of(OC_REDUCE_SCATTER, table), 1);
	/* All of it. */
	assert_int_equal(blocks_of(OC_SCATTER, relative), 0);
	assert_int_equal(blocks_of(OC_ALLTOALLV, table), 0);
	assert_int_equal(blocks_of(OC_BCAST, oci_slot_half()), 0);
}

TEST(plan_empty_is_end_alone)
{
	int error = 0;
	struct oci_plan *plan = oci_builder_finish(builder(), &error);

	assert_non_null(plan);
	assert_int_equal(plan->count, 1);
	assert_int_equal(plan->ops[0].code, OCI_OP_END);
	assert_false(plan->posts || plan->uses_slot || plan->uses_temp || plan->uses_acc);
	free(plan);
}

/* ---- what is refused ----------------------------------------------------------------------- */

static void nested_loops(struct oci_builder *b)
{
	oci_build_loop(b, recv_block());
	oci_build_loop(b, recv_block());
	oci_build_next(b);
	oci_build_next(b);
}

static void next_without_loop(struct oci_builder *b)
{
	oci_build_next(b);
}

static void loop_without_next(struct oci_builder *b)
{
	oci_build_loop(b, recv_block());
}

static void post_of_step_zero(struct oci_builder *b)
{
	oci_build_post(b, OCI_POST_FLAG, 0, 0);
}

static void wait_for_step_zero(struct oci_builder *b)
{
	oci_build_wait_ack(b, 0, 1, 0, 0);
}

static void step_by_segment_outside_of_a_loop(struct oci_builder *b)
{
	oci_build_signal(b, 1, 1);
}

static void wait_for_no_rank(struct oci_builder *b)
{
	oci_build_wait_post(b, RANKS, 1, 1, 0);
}

static void pull_from_self(struct oci_builder *b)
{
	oci_build_pull(b, recv_block(), ME, oci_block(OCI_BUF_SEND, 0));
}

static void push_to_no_rank(struct oci_builder *b)
{
	oci_build_push(b, oci_block(OCI_BUF_SEND, 0), RANKS, recv_block());
}

static void share_with_self(struct oci_builder *b)
{
	oci_build_share(b, OCI_SHARE_PULL, recv_block(), ME, oci_block(OCI_BUF_SEND, 0));
}

static void help_for_self(struct oci_builder *b)
{
	/* v3, v4, v0, v1 */
	oci_build_help(b, OCI_SHARE_PULL, oci_block(OCI_BUF_SEND, 0), false, 3, 4, recv_block());
}

static void help_for_all(struct oci_builder *b)
{
	oci_build_help(b, OCI_SHARE_PULL, oci_block(OCI_BUF_SEND, 0), false, 2, RANKS,
		       recv_block());
}

static void reduce_from_self(struct oci_builder *b)
{
	oci_build_reduce_from(b, ME, oci_block(OCI_BUF_SLOT, 0), oci_block(OCI_BUF_ACC, 0));
}

static void reduce_from_a_send_buffer(struct oci_builder *b)
{
	oci_build_reduce_from(b, 0, oci_block(OCI_BUF_SEND, 0), oci_block(OCI_BUF_ACC, 0));
}

static void pull_from_private_memory(struct oci_builder *b)
{
	oci_build_pull(b, recv_block(), 0, oci_block(OCI_BUF_TEMP, 0));
}

static void push_into_a_slot(struct oci_builder *b)
{
	oci_build_push(b, oci_block(OCI_BUF_SEND, 0), 0, oci_block(OCI_BUF_SLOT, 0));
}

static void address_with_a_payload(struct oci_builder *b)
{
	oci_build_copy(b, oci_block(OCI_BUF_SEND, 0), oci_block(OCI_BUF_INLINE, 0));
	oci_build_post(b, OCI_POST_ADDRESS, 1, 0);
}

static void slot_with_a_payload(struct oci_builder *b)
{
	oci_build_post(b, OCI_POST_SLOT, 1, 0);
	oci_build_copy(b, oci_block(OCI_BUF_SEND, 0), oci_block(OCI_BUF_INLINE, 0));
}

static void two_publications(struct oci_builder *b)
{
	oci_build_post(b, OCI_POST_ADDRESS, 1, 0);
	oci_build_post(b, OCI_POST_SLOT, 2, 0);
}

static void segment_outside_of_a_loop(struct oci_builder *b)
{
	oci_build_copy(b, oci_segmented(recv_block()), oci_block(OCI_BUF_SLOT, 0));
}

static void several_relative_blocks(struct oci_builder *b)
{
	struct oci_range range = oci_block_rel(OCI_BUF_SEND, 0);

	range.blocks = 2;
	oci_build_copy(b, range, recv_block());
}

static void relative_block_beyond_the_last(struct oci_builder *b)
{
	oci_build_copy(b, oci_block_rel(OCI_BUF_SEND, RANKS), recv_block());
}

static void parts_of_several_blocks(struct oci_builder *b)
{
	struct oci_range range = oci_part(OCI_BUF_SEND, 0, 1);

	oci_build_parts(b, 2);
	range.blocks = 2;
	oci_build_copy(b, range, recv_block());
}

static void parts_without_their_number(struct oci_builder *b)
{
	oci_build_copy(b, oci_part(OCI_BUF_SEND, 0, 1), oci_part(OCI_BUF_RECV, 0, 1));
}

static void work_beyond_its_blocks(struct oci_builder *b)
{
	oci_build_work(b, 2);
	oci_build_copy(b, recv_block(), oci_blocks(OCI_BUF_WORK, 1, 2));
}

static void halves_of_a_buffer(struct oci_builder *b)
{
	struct oci_range half = oci_slot_half();

	half.buf = OCI_BUF_SEND;
	oci_build_segment(b, 64);
	oci_build_loop(b, recv_block());
	oci_build_copy(b, half, oci_segmented(recv_block()));
	oci_build_next(b);
}

static void halves_larger_than_a_slot(struct oci_builder *b)
{
	oci_build_segment(b, OCI_SLOT_BYTES / 2 + 1);
	oci_build_loop(b, recv_block());
	oci_build_copy(b, oci_segmented(recv_block()), oci_slot_half());
	oci_build_next(b);
}

static void no_such_buffer(struct oci_builder *b)
{
	oci_build_copy(b, (struct oci_range){ .buf = OCI_BUF_COUNT, .blocks = 1 }, recv_block());
}

TEST(plan_malformed_is_refused)
{
	static void (*const malformed[])(struct oci_builder *) = {
		nested_loops,
		next_without_loop,
		loop_without_next,
		post_of_step_zero,
		wait_for_step_zero,
		step_by_segment_outside_of_a_loop,
		wait_for_no_rank,
		pull_from_self,
		push_to_no_rank,
		share_with_self,
		help_for_self,
		help_for_all,
		reduce_from_self,
		reduce_from_a_send_buffer,
		pull_from_private_memory,
		push_into_a_slot,
		address_with_a_payload,
		slot_with_a_payload,
		two_publications,
		segment_outside_of_a_loop,
		several_relative_blocks,
		relative_block_beyond_the_last,
		parts_of_several_blocks,
		parts_without_their_number,
		work_beyond_its_blocks,
		halves_of_a_buffer,
		halves_larger_than_a_slot,
		no_such_buffer,
	};

	for (size_t i = 0; i < sizeof(malformed) / sizeof(*malformed); i++) {
		struct oci_builder *b = builder();
		int error = 0;

		malformed[i](b);
		/* The first error is kept, whatever follows. */
		oci_build_post(b, OCI_POST_FLAG, 100, 0);
		if (oci_builder_finish(b, &error) || error != -EINVAL)
			fail_msg("case %zu: error %d", i, error);
	}
}

TEST(plan_for_a_rank_outside_of_the_team_is_refused)
{
	struct oci_plan_key key = { .v = 2, .size = 2 };
	int error = 0;

	assert_null(oci_builder_finish(oci_builder_create(&key), &error));
	assert_int_equal(error, -EINVAL);
}

/* ---- parameters ---------------------------------------------------------------------------- */

static struct oci_params derive(size_t bytes, uint32_t nparts, uint32_t segment_bytes, size_t unit)
{
	struct oci_plan plan = { .nparts = nparts, .segment_bytes = segment_bytes };
	struct oci_params params = { .bytes = bytes, .size = RANKS };

	oci_params_derive(&params, &plan, unit);
	return params;
}

TEST(params_parts_are_whole_units_and_lines)
{
	assert_int_equal(derive(100, 0, 0, 1).part_bytes, 0);
	assert_int_equal(derive(0, 4, 0, 1).part_bytes, 0);
	assert_int_equal(derive(1, 4, 0, 1).part_bytes, 1);
	assert_int_equal(derive(100, 4, 0, 1).part_bytes, 25);
	assert_int_equal(derive(100, 4, 0, 4).part_bytes, 28);
	assert_int_equal(derive(252, 4, 0, 1).part_bytes, 63);
	assert_int_equal(derive(256, 4, 0, 1).part_bytes, 64);
	assert_int_equal(derive(260, 4, 0, 1).part_bytes, 128);
	assert_int_equal(derive(400, 4, 0, 8).part_bytes, 128);
	/* 12-byte elements: 72 bytes is the least multiple that holds a line. */
	assert_int_equal(derive(60, 1, 0, 12).part_bytes, 60);
	assert_int_equal(derive(72, 1, 0, 12).part_bytes, 72);
	assert_int_equal(derive(84, 1, 0, 12).part_bytes, 144);
	assert_int_equal(derive(600, 2, 0, 200).part_bytes, 400);
}

TEST(params_parts_cover_the_largest_sizes)
{
	size_t part = derive(SIZE_MAX, 2, 0, 1).part_bytes;

	assert_true(part >= SIZE_MAX / 2 && part % 64 == 0);
	assert_true(derive(SIZE_MAX, 1, 0, 1).part_bytes >= SIZE_MAX - 64);
}

TEST(params_segments_are_whole_units)
{
	assert_int_equal(derive(100, 0, 4096, 1).segment_bytes, 4096);
	assert_int_equal(derive(100, 0, 4096, 12).segment_bytes, 4092);
	assert_int_equal(derive(100, 0, 8, 16).segment_bytes, 16);
	assert_int_equal(derive(100, 0, 0, 4).segment_bytes, 100);
	assert_int_equal(derive(0, 0, 0, 4).segment_bytes, 4);
}

/* A chain of the largest messages: the last step of its loop is one of an operation. */
TEST(params_segments_grow_before_steps_overflow)
{
	static const size_t units[] = { 1, 8, 12, 4096 };
	static const uint16_t loops[] = { 1, 2, 40000 };

	for (unsigned int i = 0; i < 4 * 3; i++) {
		struct oci_builder *b = builder();
		uint16_t loop = loops[i % 3];
		size_t unit = units[i / 3];
		struct oci_plan *plan;
		int error = 0;

		oci_build_segment(b, 65536);
		oci_build_loop(b, oci_block(OCI_BUF_SEND, 0));
		oci_build_signal(b, 2, loop);
		oci_build_next(b);
		plan = oci_builder_finish(b, &error);
		assert_non_null(plan);
		for (size_t bytes = 1; bytes < SIZE_MAX / 8; bytes = bytes * 3 + 1) {
			struct oci_params params = { .bytes = bytes - bytes % unit, .size = RANKS };
			size_t usual = 65536 - 65536 % unit;
			uint64_t segments;

			oci_params_derive(&params, plan, unit);
			segments = oci_range_segments(&plan->ops[0].local, &params);
			assert_int_equal(params.segment_bytes % unit, 0);
			assert_true(!segments || 2 + (segments - 1) * loop < OCI_STEPS);
			assert_true(segments * params.segment_bytes >= params.bytes);
			/* Only then. */
			if (bytes / usual < (OCI_STEPS - 3) / loop)
				assert_int_equal(params.segment_bytes, usual);
		}
		free(plan);
	}
}

TEST(range_segments_count_the_trips_of_a_loop)
{
	struct oci_params params = derive(100, 3, 16, 1);
	struct oci_range part = oci_part(OCI_BUF_SEND, 2, 1);

	/* Parts of 34: the last has 32 bytes. */
	assert_int_equal(oci_range_segments(&part, &params), 2);
	part.part = 0;
	assert_int_equal(oci_range_segments(&part, &params), 3);
	part = oci_segmented(part);
	assert_int_equal(oci_range_segments(&part, &params), 3);
	part = oci_blocks(OCI_BUF_SEND, 0, 2);
	assert_int_equal(oci_range_segments(&part, &params), 13);
	params.bytes = 0;
	assert_int_equal(oci_range_segments(&part, &params), 0);
}
