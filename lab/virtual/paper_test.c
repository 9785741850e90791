/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What paper 002 concludes, as far as its own Table IV implies it: by the plans in virtual time and
 * by the closed forms, on the machines as they ship with the project. Terms that we added to a
 * profile are taken out first, so that nothing but the paper's is left.
 *
 * The last tests are about what Table IV does not imply: which value of which further term gives
 * the paper's finding, and that without it the model says something else (docs/results.md).
 */
#include <math.h>
#include <string.h>

#include "coll/cost.h"
#include "lab/virtual/predict.h"
#include "model/terms_test.h"
#include "support/test.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* A shipped profile with what its source says is the paper's. */
static void load(const char *profile)
{
	const struct oci_term_info *info;

	oci_model_destroy(&model);
	assert_int_equal(oci_model_profile(profile, &model), 0);
	for (unsigned int i = 0; (info = oci_term_info(i)) != NULL; i++) {
		struct oci_term *term = oci_term_of(&model, info);

		if (!term->given || strncmp(term->source, "ours", 4))
			continue;
		term->given = false;
		term->value = info->absent;
	}
	/* Signals and local copies are not in Table IV. */
	model.memcpy_cache.value = 0;
}

static double seconds(enum oc_collective collective, const char *words, uint32_t p, size_t bytes)
{
	struct oci_shape shape = { .collective = collective,
				   .bytes = bytes,
				   .unit = 1,
				   .size = p,
				   .single_copy = true };
	struct oci_virtual_result result;
	struct oci_forced forced;
	struct oci_cost cost;
	const char *expected = "";
	char why[256] = "";
	double closed;

	if (oci_forced_parse(collective, words, &forced, &expected) ||
	    oci_predict(&model, &shape, forced.choice, &result, why, sizeof(why)))
		fail_msg("%s: %s%s", words, expected, why);
	cost = oci_cost_of(oci_algorithm(collective, forced.choice.algorithm), &model, &shape,
			   forced.choice.parameter);
	closed = oci_cost_total(&cost);
	if (fabs(closed / result.end_s - 1) > 0.25)
		fail_msg("%s, %u ranks, %zu bytes: closed form %g, plans %g", words, p, bytes,
			 closed, result.end_s);
	return result.end_s;
}

/* Fails unless `best` takes the least time of all, alone. */
static void best_is(enum oc_collective collective, const char *best, const char *const *others,
		    size_t count, uint32_t p, size_t bytes)
{
	double least = seconds(collective, best, p, bytes);

	for (size_t i = 0; i < count; i++) {
		double s = strcmp(others[i], best) ? seconds(collective, others[i], p, bytes) :
						     INFINITY;

		if (s <= least)
			fail_msg("%s of %zu bytes on %u ranks of %s: %s takes %.4g us, %s %.4g",
				 oci_collective_name(collective), bytes, p, model.name, best,
				 least * 1e6, others[i], s * 1e6);
	}
}

static const char *const scatters[] = { "parallel-read",     "sequential-write",
					"throttled-read:2",  "throttled-read:4",
					"throttled-read:8",  "throttled-read:10",
					"throttled-read:16", "throttled-read:20",
					"throttled-read:32" };
static const char *const gathers[] = { "parallel-write",     "sequential-read",
				       "throttled-write:2",  "throttled-write:4",
				       "throttled-write:8",  "throttled-write:10",
				       "throttled-write:16", "throttled-write:20",
				       "throttled-write:32" };

/* IV-A4 and IV-B4. */
TEST(eight_at_a_time_are_best_on_knl)
{
	load("knl");
	for (size_t bytes = 16384; bytes <= 8 << 20; bytes *= 2) {
		best_is(OC_SCATTER, "throttled-read:8", scatters, COUNT(scatters), 64, bytes);
		best_is(OC_GATHER, "throttled-write:8", gathers, COUNT(gathers), 64, bytes);
	}
}

TEST(four_at_a_time_are_best_on_broadwell)
{
	load("broadwell");
	for (size_t bytes = 16384; bytes <= 8 << 20; bytes *= 2) {
		best_is(OC_SCATTER, "throttled-read:4", scatters, COUNT(scatters), 28, bytes);
		best_is(OC_GATHER, "throttled-write:4", gathers, COUNT(gathers), 28, bytes);
	}
}

/* V-B4: among the paper's. */
TEST(bcast_on_knl_is_a_tree_and_then_scatter_allgather)
{
	static const char *const bcasts[] = { "direct-read", "direct-write", "knomial:2",
					      "knomial:4",   "knomial:8",    "scatter-allgather" };
	bool tree = false, parts = false;

	load("knl");
	for (size_t bytes = 1024; bytes <= 8 << 20; bytes *= 2) {
		double least = INFINITY;
		const char *best = "";

		for (size_t i = 0; i < COUNT(bcasts); i++) {
			double s = seconds(OC_BCAST, bcasts[i], 64, bytes);

			if (s < least) {
				least = s;
				best = bcasts[i];
			}
		}
		print_message("bcast on knl, %zu bytes: %s\n", bytes, best);
		if (!strcmp(best, "scatter-allgather"))
			parts = true;
		else if (!parts && !strncmp(best, "knomial", 7))
			tree = true;
		else
			fail_msg("%zu bytes: %s", bytes, best);
	}
	assert_true(tree && parts);
}

/* IV-C1. */
TEST(pairwise_is_free_of_contention)
{
	static const char *const machines[] = { "knl", "broadwell", "power8" };
	static const uint32_t ranks[] = { 64, 28, 160 };

	for (size_t i = 0; i < COUNT(machines); i++) {
		struct oci_shape shape = { .collective = OC_ALLTOALL,
					   .bytes = 65536,
					   .unit = 1,
					   .size = ranks[i],
					   .single_copy = true };
		struct oci_virtual_result result;
		struct oci_forced forced;
		const char *expected;
		char why[256] = "";

		load(machines[i]);
		assert_int_equal(oci_forced_parse(OC_ALLTOALL, "pairwise", &forced, &expected), 0);
		assert_int_equal(
			oci_predict(&model, &shape, forced.choice, &result, why, sizeof(why)), 0);
		assert_int_equal(result.most_copiers, 1);
		assert_true(result.delayed_s < 1e-12);
	}
}

/* V-A5, on KNL: logarithmic for small blocks, then the ring and doubling alike. */
TEST(few_steps_win_for_small_allgathers)
{
	double ring, doubling, bruck;

	load("knl");
	ring = seconds(OC_ALLGATHER, "ring-source-read", 64, 1024);
	doubling = seconds(OC_ALLGATHER, "recursive-doubling", 64, 1024);
	bruck = seconds(OC_ALLGATHER, "bruck", 64, 1024);
	assert_true(doubling < ring / 2 && bruck < ring / 2);
	ring = seconds(OC_ALLGATHER, "ring-source-read", 64, 1 << 20);
	doubling = seconds(OC_ALLGATHER, "recursive-doubling", 64, 1 << 20);
	assert_true(fabs(ring / doubling - 1) < 0.01);
}

/* The best throttle factor of a Scatter among all. */
static uint32_t best_factor(uint32_t p, size_t bytes)
{
	double least = INFINITY;
	uint32_t best = 0;

	for (uint32_t k = 1; k <= 64; k++) {
		char words[32];
		double s;

		snprintf(words, sizeof(words), "throttled-read:%u", k);
		s = seconds(OC_SCATTER, words, p, bytes);
		if (s < least * (1 - 1e-9)) {
			least = s;
			best = k;
		}
	}
	return best;
}

/* IV-A4: 10 on POWER8, the cores of a socket, which its polynomial does not know of. */
TEST(ten_on_power8_needs_the_step_at_the_socket)
{
	uint32_t without;
	double step = 1;

	load("power8");
	give("cma.gamma_across", 1);
	without = best_factor(160, 1 << 20);
	assert_in_range(without, 20, 32);
	while (best_factor(160, 1 << 20) != 10 && step < 3) {
		step += 0.05;
		give("cma.gamma_across", step);
	}
	print_message("power8: %u without a step, 10 from a step of %.2f on\n", without, step);
	/* docs/results.md has the value. */
	assert_true(step > 1.5 && step < 1.7);
}

/* IV-A4: all at once for the smallest messages, where each turn of a chain waits for a signal. */
TEST(parallel_read_of_small_blocks_needs_the_cost_of_a_signal)
{
	static const char *const few[] = { "parallel-read", "throttled-read:2", "throttled-read:4",
					   "throttled-read:8", "throttled-read:16" };

	load("knl");
	assert_true(seconds(OC_SCATTER, "parallel-read", 64, 1024) >
		    seconds(OC_SCATTER, "throttled-read:8", 64, 1024));
	for (double us = 1; us < 100; us++) {
		give("flag.cache", us * 1e-6);
		give("flag.more", 0.03e-6);
		if (seconds(OC_SCATTER, "parallel-read", 64, 1024) <
		    fmin(seconds(OC_SCATTER, "throttled-read:8", 64, 1024),
			 seconds(OC_SCATTER, "throttled-read:16", 64, 1024))) {
			print_message("knl: parallel-read of 1 KiB from %.0f us a signal on\n", us);
			assert_in_range(us, 20, 30); /* docs/results.md has the value */
			break;
		}
	}
	best_is(OC_SCATTER, "parallel-read", few, COUNT(few), 64, 1024);
}

int main(void)
{
	int failed = oct_test_run(NULL, NULL);

	oci_model_destroy(&model);
	return failed;
}
