/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The statistics behind the tables. Small samples of times with a long right tail, so everything
 * here is by rank: medians, and intervals that assume no distribution.
 */
#ifndef HARNESS_STATS_H
#define HARNESS_STATS_H

#include <stddef.h>

/* A median, its interval, and how surely the interval holds the true median. */
struct stats_estimate {
	double median;
	double low;
	double high;
	double coverage;
};

/* Below this many values no two of them enclose the median with 95 % confidence. */
enum { STATS_MIN_RUNS = 6 };

/* Ascending. */
void stats_sort(double *values, size_t n);

/* The median; the mean of the middle two when @n is even. Sorts @values. NaN when @n is 0. */
double stats_median(double *values, size_t n);

/* Linear interpolation between order statistics, @q from 0 to 1. @sorted is ascending, @n > 0. */
double stats_quantile(const double *sorted, size_t n, double q);

/* The geometric mean of @n positive values. NaN when @n is 0. */
double stats_geomean(const double *values, size_t n);

/*
 * How far in from both ends the 95 % interval of the median lies: [x(k), x(n+1-k)], counted
 * from 1, with the largest k whose coverage is still 95 %. 1, with the coverage it has, for
 * samples so small that even the whole range covers less.
 */
size_t stats_interval_rank(size_t n, double *coverage);

/*
 * The median with its 95 % interval by order statistics; does not change @values.
 *
 * The number of values below the true median is Binomial(n, 1/2) whatever the distribution, so
 * [x(k), x(n+1-k)] covers the median with probability 1 - 2 P(Binomial(n, 1/2) < k), exactly. At
 * our usual 9 runs that is [x(2), x(8)] with 96.1 %. A percentile bootstrap of the median of 9
 * values draws from the same few order statistics, covers less than it claims and needs a seed;
 * the exact interval needs neither.
 *
 * Returns 0, -EINVAL for no values, -ENOMEM.
 */
int stats_estimate(const double *values, size_t n, struct stats_estimate *out);

#endif
