/* SPDX-License-Identifier: BSD-3-Clause */
/* Fits of points whose terms are known. */
#include "lab/harness/stats.h"
#include "lab/tune/fit.h"
#include "lab/tune/world.h"
#include "support/test.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

static void near_to(double got, double want, double within)
{
	if (!(fabs(got - want) <= within * fabs(want) + 1e-15))
		fail_msg("got %.9g, want %.9g", got, want);
}

TEST(gamma_of_the_papers_machines_is_found_again)
{
	static const double term[][2] = { { 0.11, 1.6 }, { 0.18, 0.83 }, { 0.04, 1.95 } };

	for (size_t m = 0; m < 3; m++) {
		double copiers[63], gamma[63];
		struct oci_fit_gamma fit;

		for (int i = 0; i < 63; i++) {
			copiers[i] = i + 2;
			gamma[i] = (term[m][0] * copiers[i] + term[m][1]) * copiers[i];
		}
		fit = oci_fit_gamma(copiers, gamma, 63);
		near_to(fit.gamma2, term[m][0], 1e-6);
		near_to(fit.gamma1, term[m][1], 1e-6);
		assert_true(fit.residual < 1e-6);
		/* 10 % off, up and down in turns: found nearly, and the residual says so */
		for (int i = 0; i < 63; i++)
			gamma[i] *= i % 2 ? 1.1 : 0.9;
		fit = oci_fit_gamma(copiers, gamma, 63);
		near_to(fit.gamma2 * 64 + fit.gamma1, term[m][0] * 64 + term[m][1], 0.05);
		near_to(fit.residual, 0.1, 0.1);
	}
}

TEST(gamma_is_never_negative_and_one_point_is_enough)
{
	const double copiers[] = { 2, 4, 8, 16 }, falling[] = { 4, 4.5, 5, 5.5 };
	struct oci_fit_gamma fit;

	fit = oci_fit_gamma(copiers, falling, 4);
	assert_true(fit.gamma1 >= 0 && fit.gamma2 >= 0);
	assert_true(fit.residual > 0.1); /* the form does not hold, and it is said */
	fit = oci_fit_gamma(copiers, falling, 1);
	near_to(fit.gamma1, 2, 1e-6);
	near_to(fit.gamma2, 0, 1e-9);
}

/* A step behind the ten cores of a package, as paper 002 shows one in its Figure 5. */
TEST(what_lies_beyond_a_package_is_a_factor_on_its_curve)
{
	double copiers[19], gamma[19], across;
	struct oci_fit_gamma fit;

	for (int i = 0; i < 19; i++) {
		copiers[i] = i + 2;
		gamma[i] = (0.04 * copiers[i] + 1.95) * copiers[i] * (copiers[i] > 10 ? 1.6 : 1);
	}
	fit = oci_fit_gamma_across(copiers, gamma, 19, 10, &across);
	near_to(fit.gamma2, 0.04, 1e-6);
	near_to(fit.gamma1, 1.95, 1e-6);
	near_to(across, 1.6, 1e-6);
	/* Nothing beyond, or nothing within: a curve of all, and no factor. */
	fit = oci_fit_gamma_across(copiers, gamma, 9, 10, &across);
	near_to(fit.gamma1, 1.95, 1e-6);
	assert_true(across == 0);
	fit = oci_fit_gamma_across(copiers + 9, gamma + 9, 10, 10, &across);
	near_to(fit.gamma1, 1.6 * 1.95, 1e-6);
	assert_true(across == 0);
	/* Less beyond than within is no gain. */
	for (int i = 9; i < 19; i++)
		gamma[i] = 1;
	fit = oci_fit_gamma_across(copiers, gamma, 19, 10, &across);
	assert_true(across == 1);
}

TEST(lines_are_found_and_stay_above_zero)
{
	const double x[] = { 1e3, 1e4, 1e5, 1e6 };
	double y[4];
	struct oci_fit_line line;

	for (int i = 0; i < 4; i++)
		y[i] = 5e-7 + 1e-10 * x[i];
	line = oci_fit_line(x, y, 4);
	near_to(line.intercept, 5e-7, 1e-9);
	near_to(line.slope, 1e-10, 1e-9);
	for (int i = 0; i < 4; i++)
		y[i] = 1e-10 * x[i] * (1 + 0.05 * i); /* its intercept would be negative */
	line = oci_fit_line(x, y, 4);
	near_to(line.intercept, 0, 0);
	near_to(line.slope, 1.075e-10, 0.05);
	for (int i = 0; i < 4; i++)
		y[i] = 1e-6 / (1 + i); /* and this one's slope */
	line = oci_fit_line(x, y, 4);
	assert_true(line.intercept > 0 && line.slope >= 0);
	line = oci_fit_line(x, y, 1);
	near_to(line.slope, 1e-9, 1e-9);
}

TEST(the_end_of_the_cache_is_found)
{
	const double x[] = { 1e4, 1e5, 1e6, 1e7, 1e8 };
	double y[5];

	for (int i = 0; i < 5; i++)
		y[i] = x[i] * (i < 3 ? 1e-10 : 3e-10);
	assert_int_equal(oci_fit_split(x, y, 5), 3);
	for (int i = 0; i < 5; i++)
		y[i] = x[i] * 1e-10;
	assert_int_equal(oci_fit_split(x, y, 5), 5);
	for (int i = 0; i < 5; i++) /* a fourth more is what noise may be */
		y[i] = x[i] * (i < 3 ? 1e-10 : 1.25e-10);
	assert_int_equal(oci_fit_split(x, y, 5), 5);
	for (int i = 0; i < 5; i++) /* large copies that do better are no end of a cache */
		y[i] = x[i] * (i < 3 ? 3e-10 : 1e-10);
	assert_int_equal(oci_fit_split(x, y, 5), 5);
}

TEST(medians_are_in_the_middle)
{
	double odd[] = { 3, 1, 2 }, even[] = { 4, 1, 3, 2 };

	near_to(stats_median(odd, 3), 2, 0);
	near_to(stats_median(even, 4), 2.5, 0);
}

TEST(the_mean_of_the_middle_half_forgets_the_extremes)
{
	double eight[] = { 2, 1000, 1, 3, 0, 4, 900, 6 }, one[] = { 5 }, two[] = { 1, 2 };

	near_to(oci_fit_midmean(eight, 8), (2.0 + 3 + 4 + 6) / 4, 1e-12);
	near_to(oci_fit_midmean(one, 1), 5, 0);
	near_to(oci_fit_midmean(two, 2), 1.5, 1e-12);
}

TEST(a_point_is_the_first_quartile)
{
	double samples[] = { 9, 1, 8, 2, 7, 3, 6, 4 };
	struct oci_tune_point point = oci_tune_point_of(samples, 8);

	near_to(point.value, 3, 0);
	near_to(point.residual, (8.0 - 3.0) / 2 / 6, 1e-12);
	assert_int_equal(point.samples, 8);
	assert_true(oci_tune_point_of(samples, 0).value == 0);
}

static int count_together(struct oci_tune_rank *me)
{
	for (uint64_t i = 1; i <= 100; i++) {
		/* Racy but for the barriers: each rank adds in its turn. */
		for (uint32_t r = 0; r < me->ranks; r++) {
			if (r == me->rank)
				me->memory[0] = (uint8_t)(me->memory[0] + 1);
			oci_tune_barrier(me);
		}
	}
	me->sample[0] = 10.0 * me->memory[0] + me->clock_s;
	oci_tune_leave(me, 3, 1, 10);
	return 0;
}

static int fail_in_one(struct oci_tune_rank *me)
{
	if (me->rank == 1)
		return oci_tune_fail(me, -EPERM, "rank %u may not", me->rank);
	oci_tune_barrier(me); /* for ever, were it not ended */
	return 0;
}

static int die_in_one(struct oci_tune_rank *me)
{
	if (me->rank == 2)
		abort();
	oci_tune_barrier(me);
	return 0;
}

TEST(ranks_run_together_and_a_failure_ends_them_all)
{
	const unsigned int cpus[] = { 0 };
	struct oci_tune_world world;
	char why[256] = "";

	assert_int_equal(oci_tune_world_create(&world, cpus, 1, 0.01, 3), 0);
	assert_int_equal(oci_tune_run(&world, 3, 4096, count_together, NULL, why, sizeof(why)), 0);
	for (int r = 0; r < 3; r++)
		near_to(world.shared->rank[r].point[3].value, 300 % 256, 1e-6);
	assert_int_equal(oci_tune_run(&world, 3, 0, fail_in_one, NULL, why, sizeof(why)), -EPERM);
	assert_string_equal(why, "rank 1 may not");
	assert_int_equal(oci_tune_run(&world, 3, 0, die_in_one, NULL, why, sizeof(why)), -EIO);
	assert_string_equal(why, "measuring rank 2 was ended by signal 6");
	assert_int_equal(oci_tune_run(&world, 4, 0, die_in_one, NULL, why, sizeof(why)), -EINVAL);
	oci_tune_world_destroy(&world);
}
