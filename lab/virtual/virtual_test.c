/* SPDX-License-Identifier: BSD-3-Clause */
/* The `model` executor against times computed by hand, with plans of a few operations. */
#include "lab/virtual/virtual.h"
#include "model/terms_test.h"
#include "support/test.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define RANKS 8

static struct oci_plan *plans[RANKS];
static struct oci_builder *builder;
static uint32_t ranks;

/* alpha 10, 1 a byte, pages of 100 B at 5 each, gamma(c) = c from 2 on. */
static int simple_model(void **state)
{
	(void)state;
	oci_model_init(&model);
	give("cma.alpha", 10);
	give("cma.beta", 1);
	give("cma.lock", 5);
	give("cma.page", 100);
	give("cma.gamma1", 1);
	return 0;
}

static void begin(enum oc_collective collective, uint32_t v, uint32_t size)
{
	struct oci_plan_key key = { .collective = (uint8_t)collective, .v = v, .size = size };

	ranks = size;
	builder = oci_builder_create(&key);
	assert_non_null(builder);
}

static void end(uint32_t v)
{
	int error = 0;

	free(plans[v]);
	plans[v] = oci_builder_finish(builder, &error);
	if (!plans[v])
		fail_msg("rank %u has no plan: %d", v, error);
}

static struct oci_virtual_result run_at(size_t bytes, const double *start, const uint32_t *cores)
{
	struct oci_virtual_call call = { .plans = (const struct oci_plan *const *)plans,
					 .size = ranks,
					 .bytes = bytes,
					 .unit = 1,
					 .model = &model,
					 .mechanism = OCI_MODEL_CMA,
					 .start_s = start,
					 .cores = cores };
	struct oci_virtual_result result;
	char why[256] = "";

	if (oci_virtual_run(&call, &result, why, sizeof(why)))
		fail_msg("%s", why);
	return result;
}

static void is(double got, double want)
{
	if (fabs(got - want) > 1e-9 * (1 + fabs(want)))
		fail_msg("got %.12g, want %.12g", got, want);
}

/* The root posts its address; everyone else reads its block and tells. */
static void readers(uint32_t size, bool root_waits)
{
	for (uint32_t v = 0; v < size; v++) {
		begin(OC_BCAST, v, size);
		if (v == 0) {
			oci_build_post(builder, OCI_POST_ADDRESS, 1, 0);
			if (root_waits)
				oci_build_wait_ack(builder, 1, size - 1, 1, 0);
		} else {
			oci_build_wait_post(builder, 0, 1, 1, 0);
			oci_build_pull(builder, oci_block(OCI_BUF_RECV, 0), 0,
				       oci_block(OCI_BUF_SEND, 0));
			oci_build_signal(builder, 1, 0);
		}
		end(v);
	}
}

TEST_WITH(one_reader_takes_alpha_bytes_and_pages, simple_model, NULL)
{
	struct oci_virtual_result r;

	readers(2, true);
	r = run_at(250, NULL, NULL);
	is(r.end_s, 10 + 250 + 3 * 5);
	assert_int_equal(r.copies, 1);
	assert_int_equal(r.bytes, 250);
	assert_int_equal(r.most_copiers, 1);
	is(r.delayed_s, 0);
	is(run_at(0, NULL, NULL).end_s, 0); /* no byte, no copy */
}

TEST_WITH(calls_operations_and_flags_take_their_terms, simple_model, NULL)
{
	give("call", 1000);
	give("op", 100);
	give("flag.cache", 7);
	readers(2, true);
	/* Reader: call, the root's POST (op) and its flag, then 3 operations; the WAIT_POST of the
	 * reader began while the root posted. The root sees the ACK a flag later. */
	is(run_at(250, NULL, NULL).end_s, 1000 + 100 + 7 + 100 + 275 + 100 + 7);
	assert_true(run_at(250, NULL, NULL).first_s < 1000 + 100 + 7 + 100 + 275 + 100 + 7);
}

TEST_WITH(a_row_of_flags_is_looked_at_one_after_the_other, simple_model, NULL)
{
	give("flag.cache", 7);
	readers(4, true);
	/* All three read at once: gamma(3) = 3; then the root looks at three flags. */
	is(run_at(100, NULL, NULL).end_s, 7 + 10 + 100 + 5 * 3 + 3 * 7);
	/* Loads overlap where nothing has to be waited for. */
	give("flag.more", 2);
	is(run_at(100, NULL, NULL).end_s, 7 + 10 + 100 + 5 * 3 + 7 + 2 * 2);
}

TEST_WITH(flags_take_longer_from_farther_away, simple_model, NULL)
{
	const uint32_t near[] = { 0, 1 }, package[] = { 0, 2 }, far[] = { 0, 4 };

	give("flag.cache", 1);
	give("flag.package", 20);
	give("flag.machine", 300);
	give("machine.packages", 2);
	give("machine.package_cores", 4);
	give("machine.cache_cores", 2);
	give("cma.beta_across", 2);
	readers(2, false);
	is(run_at(100, NULL, near).end_s, 1 + 115);
	is(run_at(100, NULL, package).end_s, 20 + 115);
	is(run_at(100, NULL, far).end_s, 300 + 215); /* and every byte twice as long */
}

TEST_WITH(readers_of_one_process_delay_each_other, simple_model, NULL)
{
	struct oci_virtual_result r;

	readers(6, false);
	r = run_at(200, NULL, NULL);
	is(r.end_s, 10 + 200 + 2 * 5 * 5);
	assert_int_equal(r.most_copiers, 5);
	is(r.delayed_s, 5 * 2 * 5 * 4);
}

TEST_WITH(the_rate_changes_when_a_reader_joins_or_leaves, simple_model, NULL)
{
	/* Without alpha and bytes, to count locks: 8 pages alone are 40, with company 80. The first
	 * is alone until 20 (half of it), both share until 60 (half of the second's), then the
	 * second is alone for the other half: 20. */
	const double start[] = { 0, 0, 20 };
	struct oci_virtual_result r;

	give("cma.alpha", 0);
	give("cma.beta", 0);
	readers(3, false);
	r = run_at(800, start, NULL);
	is(r.end_s, 80);
	is(r.delayed_s, 40);
}

TEST_WITH(readers_of_different_processes_do_not_meet, simple_model, NULL)
{
	struct oci_virtual_result r;

	for (uint32_t v = 0; v < 4; v++) {
		begin(OC_ALLTOALL, v, 4);
		oci_build_post(builder, OCI_POST_ADDRESS, 1, 0);
		oci_build_wait_post(builder, (v + 1) % 4, 1, 1, 0);
		oci_build_pull(builder, oci_block(OCI_BUF_RECV, (v + 1) % 4), (v + 1) % 4,
			       oci_block(OCI_BUF_SEND, v));
		end(v);
	}
	r = run_at(200, NULL, NULL);
	is(r.end_s, 10 + 200 + 2 * 5);
	assert_int_equal(r.most_copiers, 1);
}

TEST_WITH(a_memory_domain_is_shared, simple_model, NULL)
{
	const uint32_t apart[] = { 0, 2, 1, 3 };

	give("cma.lock", 0);
	give("domain", 0.75);
	readers(4, false);
	is(run_at(100, NULL, NULL).end_s, 10 + 100 * 3 * 0.75);
	readers(2, false);
	is(run_at(100, NULL, NULL).end_s, 10 + 100); /* one core has not enough to fill it */
	give("machine.packages", 2);
	give("machine.package_cores", 2);
	give("machine.domain_cores", 2);
	/* All three take from the root's domain, one of them lies in it as a whole. */
	readers(4, false);
	is(run_at(100, NULL, apart).end_s, 10 + 100 * 3 * 0.75);
	/* The caches hold a copy of 100 bytes, and not one of 101. */
	give("cache.bytes", 200);
	is(run_at(100, NULL, NULL).end_s, 10 + 100);
	is(run_at(101, NULL, NULL).end_s, 10 + 101 * 3 * 0.75);
	/* What the caches hold has a limit of its own. */
	give("domain.cache", 0.5);
	is(run_at(100, NULL, NULL).end_s, 10 + 100 * 3 * 0.5);
	is(run_at(101, NULL, NULL).end_s, 10 + 101 * 3 * 0.75);
}

TEST_WITH(local_copies_go_by_what_the_cache_holds, simple_model, NULL)
{
	give("memcpy.cache", 2);
	give("memcpy.memory", 3);
	give("cache.bytes", 200);
	give("reduce", 2.5);
	begin(OC_ALLGATHER, 0, 1);
	oci_build_copy(builder, oci_block(OCI_BUF_SEND, 0), oci_block(OCI_BUF_RECV, 0));
	end(0);
	is(run_at(100, NULL, NULL).end_s, 200);
	is(run_at(101, NULL, NULL).end_s, 303);
	begin(OC_ALLREDUCE, 0, 1);
	oci_build_reduce(builder, oci_block(OCI_BUF_SEND, 0), oci_block(OCI_BUF_RECV, 0));
	end(0);
	is(run_at(100, NULL, NULL).end_s, 250);
	is(run_at(101, NULL, NULL).end_s, 303);
	/* Memory that nobody shares is as fast as its core. */
	give("domain", 1);
	is(run_at(101, NULL, NULL).end_s, 303);
}

TEST_WITH(a_pipeline_fills_and_drains, simple_model, NULL)
{
	struct oci_range slot = oci_segmented(oci_block(OCI_BUF_SLOT, 0));

	give("memcpy.cache", 1);
	give("flag.cache", 4);
	for (uint32_t v = 0; v < 2; v++) {
		begin(OC_BCAST, v, 2);
		oci_build_segment(builder, 100);
		oci_build_loop(builder, oci_block(OCI_BUF_SEND, 0));
		if (v == 0) {
			oci_build_copy(builder, oci_segmented(oci_block(OCI_BUF_SEND, 0)), slot);
			oci_build_post(builder, OCI_POST_SLOT, 1, 1);
		} else {
			oci_build_wait_post(builder, 0, 1, 1, 1);
			oci_build_pull(builder, oci_segmented(oci_block(OCI_BUF_RECV, 0)), 0, slot);
		}
		oci_build_next(builder);
		end(v);
	}
	/* In by 250; the last piece of 50 is seen at 254 and out at 304. The second piece was there
	 * at 200, so the reader, through with the first at 204, looks once more and is at 308 when
	 * it looks for the third. */
	is(run_at(250, NULL, NULL).end_s, 100 + 4 + 100 + 4 + 100 + 4 + 50);
	is(run_at(100, NULL, NULL).end_s, 204);
}

TEST_WITH(both_ends_meet_in_the_middle, simple_model, NULL)
{
	struct oci_virtual_result r;
	size_t chunk = 32 << 10;

	give("cma.alpha", 0);
	give("cma.lock", 0);
	give("flag.cache", 100);
	for (uint32_t v = 0; v < 2; v++) {
		begin(OC_BCAST, v, 2);
		oci_build_post(builder, OCI_POST_ADDRESS, 1, 0);
		if (v == 0) {
			oci_build_help(builder, OCI_SHARE_PULL, oci_block(OCI_BUF_SEND, 0), false,
				       1, 1, oci_block(OCI_BUF_RECV, 0));
			oci_build_wait_ack(builder, 1, 1, 1, 0);
		} else {
			oci_build_wait_post(builder, 0, 1, 1, 0);
			oci_build_share(builder, OCI_SHARE_PULL, oci_block(OCI_BUF_RECV, 0), 0,
					oci_block(OCI_BUF_SEND, 0));
			oci_build_signal(builder, 1, 0);
		}
		end(v);
	}
	/* Four chunks, two each, side by side; the end is told by a flag, and the ACK by another.
	 */
	r = run_at(4 * chunk, NULL, NULL);
	is(r.end_s, 100 + 2.0 * (double)chunk + 100 + 100);
	assert_int_equal(r.copies, 4);
	/* Five: the third of one end. Both ask at the same moment; who gets it does not matter but
	 * for the flag that tells of a helper's. */
	r = run_at(5 * chunk, NULL, NULL);
	assert_true(r.end_s >= 100 + 3.0 * (double)chunk + 100);
	assert_true(r.end_s <= 100 + 3.0 * (double)chunk + 200);
	/* A root that comes late knows the reader's address already: it is a flag ahead, and so the
	 * reader does not wait for it. */
	r = run_at(4 * chunk, (const double[]){ 1e9, 0 }, NULL);
	is(r.end_s, 1e9 + 100 + 2.0 * (double)chunk + 100);
}

TEST_WITH(a_write_goes_by_the_terms_of_writes, simple_model, NULL)
{
	size_t chunk = 32 << 10;

	both_ends_meet_in_the_middle(state);
	give("cma.push_beta", 0.25);
	give("flag.cache", 0);
	/* The helper writes three chunks while the reader reads its first. */
	is(run_at(4 * chunk, NULL, NULL).end_s, (double)chunk);
	give("cma.push_alpha", 8);
	begin(OC_GATHER, 0, 2);
	oci_build_post(builder, OCI_POST_ADDRESS, 1, 0);
	oci_build_wait_ack(builder, 1, 1, 1, 0);
	end(0);
	begin(OC_GATHER, 1, 2);
	oci_build_wait_post(builder, 0, 1, 1, 0);
	oci_build_push(builder, oci_block(OCI_BUF_SEND, 0), 0, oci_block(OCI_BUF_RECV, 1));
	oci_build_signal(builder, 1, 0);
	end(1);
	is(run_at(400, NULL, NULL).end_s, 8 + 100);
}

TEST_WITH(a_late_helper_takes_what_is_left, simple_model, NULL)
{
	size_t chunk = 32 << 10;
	double start[2] = { 0, 0 };
	struct oci_virtual_result r;

	both_ends_meet_in_the_middle(state);
	give("flag.cache", 0);
	/* The helper comes when the reader has two of four chunks and takes the third's twin. */
	begin(OC_BCAST, 0, 2);
	oci_build_post(builder, OCI_POST_ADDRESS, 1, 0);
	/* The root copies something of its own first: half of the message. */
	oci_build_parts(builder, 2);
	oci_build_push(builder, oci_part(OCI_BUF_SEND, 0, 1), 1, oci_part(OCI_BUF_RECV, 0, 1));
	oci_build_help(builder, OCI_SHARE_PULL, oci_block(OCI_BUF_SEND, 0), false, 1, 1,
		       oci_block(OCI_BUF_RECV, 0));
	oci_build_wait_ack(builder, 1, 1, 1, 0);
	end(0);
	r = run_at(4 * chunk, start, NULL);
	is(r.end_s, 3.0 * (double)chunk);
	assert_int_equal(r.copies, 5);
}

TEST_WITH(blocks_of_an_offer_go_by_their_size, simple_model, NULL)
{
	struct oci_range block = oci_tabled(OCI_TABLE_SEND, oci_block(OCI_BUF_SEND, 1));
	uint32_t most = oci_offer_most(1);
	struct oci_virtual_result r;

	give("memcpy.cache", 1);
	for (uint32_t v = 0; v < 2; v++) {
		begin(OC_SCATTERV, v, 2);
		if (v == 0) {
			oci_build_offer(builder, block, 1);
			oci_build_post(builder, OCI_POST_FLAG, 1, 0);
			oci_build_wait_when(builder, OCI_OP_WAIT_ACK, 1, 1, 1, OCI_WHEN_LARGE,
					    block, false, most);
		} else {
			oci_build_wait_post(builder, 0, 1, 1, 0);
			oci_build_take(builder,
				       oci_tabled(OCI_TABLE_RECV, oci_block(OCI_BUF_RECV, 1)), 0, 1,
				       OCI_WHEN_FILLED);
			oci_build_signal(builder, 1, 0);
		}
		end(v);
	}
	r = run_at(200, NULL, NULL); /* copied in and out */
	is(r.end_s, 400);
	assert_int_equal(r.copies, 0);
	r = run_at(1 << 20, NULL, NULL);
	is(r.end_s, 10 + (1 << 20) + 5 * 10486);
	assert_int_equal(r.copies, 1);
}

TEST_WITH(plans_that_wait_for_ever_are_told, simple_model, NULL)
{
	struct oci_virtual_call call = { .plans = (const struct oci_plan *const *)plans,
					 .size = 2,
					 .unit = 1,
					 .model = &model,
					 .mechanism = OCI_MODEL_CMA };
	struct oci_virtual_result result;
	char why[256] = "";

	for (uint32_t v = 0; v < 2; v++) {
		begin(OC_BARRIER, v, 2);
		oci_build_wait_post(builder, !v, 1, 1, 0);
		oci_build_post(builder, OCI_POST_FLAG, 1, 0);
		end(v);
	}
	assert_int_equal(oci_virtual_run(&call, &result, why, sizeof(why)), -EPROTO);
	assert_non_null(strstr(why, "rank 0 waits for ever in operation 0"));
}

int main(void)
{
	int failed = oct_test_run(NULL, NULL);

	for (uint32_t v = 0; v < RANKS; v++)
		free(plans[v]);
	return failed;
}
