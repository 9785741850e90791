// SPDX-License-Identifier: BSD-3-Clause
#include "lab/harness/stats.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double confidence = 0.95;

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

void stats_sort(double *values, size_t n)
{
	qsort(values, n, sizeof(*values), compare_doubles);
}

static double median_of_sorted(const double *sorted, size_t n)
{
	return n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

double stats_median(double *values, size_t n)
{
	if (n == 0)
		return NAN;
	stats_sort(values, n);
	return median_of_sorted(values, n);
}

double stats_quantile(const double *sorted, size_t n, double q)
{
	double at = q * (double)(n - 1);
	size_t below = (size_t)at;

	if (below + 1 >= n)
		return sorted[n - 1];
	return sorted[below] + (at - (double)below) * (sorted[below + 1] - sorted[below]);
}

double stats_geomean(const double *values, size_t n)
{
	double sum = 0;
	size_t i;

	if (n == 0)
		return NAN;
	for (i = 0; i < n; i++)
		sum += log(values[i]);
	return exp(sum / (double)n);
}

size_t stats_interval_rank(size_t n, double *coverage)
{
	/* P(Binomial(n, 1/2) = 0), then term by term; by logarithms so that a large n is fine. */
	double tail = 0, inside = 1;
	size_t rank = 1, below;

	for (below = 0; below < n / 2; below++) {
		double log_term = lgamma((double)n + 1) - lgamma((double)below + 1) -
				  lgamma((double)(n - below) + 1) - (double)n * log(2);

		tail += exp(log_term);
		if (below > 0 && 1 - 2 * tail < confidence)
			break;
		rank = below + 1;
		inside = 1 - 2 * tail;
	}
	/* One value: its "interval" is a point, which covers nothing. */
	*coverage = n < 2 ? 0 : inside;
	return rank;
}

int stats_estimate(const double *values, size_t n, struct stats_estimate *out)
{
	double *sorted;
	size_t rank;

	if (n == 0)
		return -EINVAL;
	sorted = malloc(n * sizeof(*sorted));
	if (!sorted)
		return -ENOMEM;
	memcpy(sorted, values, n * sizeof(*sorted));
	stats_sort(sorted, n);
	rank = stats_interval_rank(n, &out->coverage);
	out->median = median_of_sorted(sorted, n);
	out->low = sorted[rank - 1];
	out->high = sorted[n - rank];
	free(sorted);
	return 0;
}
