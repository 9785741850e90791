// SPDX-License-Identifier: BSD-3-Clause
#include "lab/harness/stats.h"
#include "support/test.h"

#include <errno.h>
#include <math.h>

TEST(median_of_odd_and_even_counts)
{
	double odd[] = { 9, 1, 5 }, even[] = { 4, 1, 3, 2 };

	assert_float_equal(stats_median(odd, 3), 5, 0);
	assert_float_equal(stats_median(even, 4), 2.5, 0);
	assert_true(isnan(stats_median(odd, 0)));
}

TEST(quantile_interpolates_between_neighbours)
{
	const double v[] = { 0, 10, 20, 30 };

	assert_float_equal(stats_quantile(v, 4, 0), 0, 0);
	assert_float_equal(stats_quantile(v, 4, 0.5), 15, 1e-12);
	assert_float_equal(stats_quantile(v, 4, 1), 30, 0);
	assert_float_equal(stats_quantile(v, 1, 0.9), 0, 0);
}

TEST(geomean_of_reciprocals_is_one)
{
	const double v[] = { 4, 0.25, 10, 0.1 };

	assert_float_equal(stats_geomean(v, 4), 1, 1e-12);
	assert_true(isnan(stats_geomean(v, 0)));
}

/* The ranks of the classic table of confidence intervals for the median. */
TEST(interval_rank_matches_the_published_table)
{
	static const struct {
		size_t n, rank;
		double coverage;
	} table[] = {
		{ 6, 1, 0.96875 }, { 8, 1, 0.9921875 }, { 9, 2, 0.9609375 }, { 12, 3, 0.9614 },
		{ 15, 4, 0.9648 }, { 20, 6, 0.9586 },	{ 100, 40, 0.9648 },
	};
	double coverage;
	size_t i;

	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		assert_int_equal(stats_interval_rank(table[i].n, &coverage), table[i].rank);
		assert_float_equal(coverage, table[i].coverage, 1e-4);
	}
}

TEST(few_values_give_their_range_and_its_true_coverage)
{
	double coverage;

	assert_int_equal(stats_interval_rank(3, &coverage), 1);
	assert_float_equal(coverage, 0.75, 1e-12);
	assert_int_equal(stats_interval_rank(1, &coverage), 1);
	assert_float_equal(coverage, 0, 0);
	assert_int_equal(stats_interval_rank(5, &coverage), 1);
	assert_true(coverage < 0.95);
	assert_int_equal(STATS_MIN_RUNS, 6);
}

TEST(estimate_of_nine_drops_one_outlier_at_each_end)
{
	const double v[] = { 1.4, 100, 1.1, 1.2, 0.001, 1.3, 1.5, 1.6, 1.7 };
	struct stats_estimate e;

	assert_int_equal(stats_estimate(v, 9, &e), 0);
	assert_float_equal(e.median, 1.4, 0);
	assert_float_equal(e.low, 1.1, 0);
	assert_float_equal(e.high, 1.7, 0);
	/* The input keeps its order: it is paired with other values. */
	assert_float_equal(v[1], 100, 0);
	assert_int_equal(stats_estimate(v, 0, &e), -EINVAL);
}

/* The promise itself: of many samples of a skewed distribution, 95 % or more cover its median. */
TEST(interval_covers_the_true_median_as_often_as_it_says)
{
	enum { SAMPLES = 20000, RUNS = 9 };
	uint64_t random = 1;
	int covered = 0, i, j;

	for (i = 0; i < SAMPLES; i++) {
		struct stats_estimate e;
		double v[RUNS];

		for (j = 0; j < RUNS; j++) {
			random = random * 6364136223846793005ULL + 1442695040888963407ULL;
			/* Exponential with median 1. */
			v[j] = -log2(((double)(random >> 11) + 0.5) / 9007199254740992.0);
		}
		assert_int_equal(stats_estimate(v, RUNS, &e), 0);
		covered += e.low <= 1 && 1 <= e.high;
	}
	assert_float_equal((double)covered / SAMPLES, 0.9609375, 0.006);
}
