/* SPDX-License-Identifier: BSD-3-Clause */
#include "lab/tune/fit.h"
#include "lab/harness/stats.h"

#include <math.h>

/* Each point counts by its relative error, so that microseconds weigh as much as milliseconds. */
static double residual_of(const double *x, const double *y, size_t count,
			  const struct oci_fit_line *line)
{
	double sum = 0;

	for (size_t i = 0; i < count; i++) {
		double error = (line->intercept + line->slope * x[i]) / y[i] - 1;

		sum += error * error;
	}
	return count ? sqrt(sum / (double)count) : 0;
}

struct oci_fit_line oci_fit_slope(const double *x, const double *y, size_t count)
{
	struct oci_fit_line line = { 0 };
	double above = 0, below = 0;

	/* The sum of (slope x/y - 1)^2 is least here. */
	for (size_t i = 0; i < count; i++) {
		above += x[i] / y[i];
		below += x[i] / y[i] * (x[i] / y[i]);
	}
	line.slope = below > 0 ? above / below : 0;
	line.residual = residual_of(x, y, count, &line);
	return line;
}

struct oci_fit_line oci_fit_line(const double *x, const double *y, size_t count)
{
	double uu = 0, uv = 0, vv = 0, u1 = 0, v1 = 0, determinant;
	struct oci_fit_line line = { 0 };

	for (size_t i = 0; i < count; i++) {
		double u = 1 / y[i], v = x[i] / y[i]; /* intercept u + slope v = 1 */

		uu += u * u;
		uv += u * v;
		vv += v * v;
		u1 += u;
		v1 += v;
	}
	determinant = uu * vv - uv * uv;
	if (count < 2 || determinant <= 1e-12 * uu * vv)
		return oci_fit_slope(x, y, count);
	line.intercept = (u1 * vv - v1 * uv) / determinant;
	line.slope = (v1 * uu - u1 * uv) / determinant;
	if (line.intercept < 0)
		return oci_fit_slope(x, y, count);
	if (line.slope < 0)
		line = (struct oci_fit_line){ .intercept = u1 / uu };
	line.residual = residual_of(x, y, count, &line);
	return line;
}

size_t oci_fit_split(const double *x, const double *y, size_t count)
{
	double one = oci_fit_slope(x, y, count).residual, least = 0.9 * one;
	size_t split = count;

	for (size_t i = 1; i < count; i++) {
		struct oci_fit_line low = oci_fit_slope(x, y, i);
		struct oci_fit_line high = oci_fit_slope(x + i, y + i, count - i);
		double both = sqrt((low.residual * low.residual * (double)i +
				    high.residual * high.residual * (double)(count - i)) /
				   (double)count);

		if (both < least && high.slope > low.slope * 4 / 3) {
			least = both;
			split = i;
		}
	}
	return split;
}

double oci_fit_midmean(double *value, size_t count)
{
	size_t quarter = count / 4;
	double sum = 0;

	stats_sort(value, count);
	for (size_t i = quarter; i < count - quarter; i++)
		sum += value[i];
	return sum / (double)(count - 2 * quarter);
}

/* Over c it is a line: gamma(c) / c = gamma1 + gamma2 c, with the same relative errors. */
struct oci_fit_gamma oci_fit_gamma(const double *copiers, const double *gamma, size_t count)
{
	double per_copier[count];
	struct oci_fit_line line;

	per_copier[0] = gamma[0] / copiers[0];
	if (count == 1)
		return (struct oci_fit_gamma){ .gamma1 = per_copier[0] };
	for (size_t i = 1; i < count; i++)
		per_copier[i] = gamma[i] / copiers[i];
	line = oci_fit_line(copiers, per_copier, count);
	return (struct oci_fit_gamma){ line.intercept, line.slope, line.residual };
}

struct oci_fit_gamma oci_fit_gamma_across(const double *copiers, const double *gamma, size_t count,
					  double package, double *across)
{
	struct oci_fit_gamma fit;
	size_t within = 0;
	double sum = 0;

	while (within < count && copiers[within] <= package)
		within++;
	*across = 0;
	if (!within || within == count)
		return oci_fit_gamma(copiers, gamma, count);
	fit = oci_fit_gamma(copiers, gamma, within);
	for (size_t i = within; i < count; i++) {
		double c = copiers[i], curve = (fit.gamma2 * c + fit.gamma1) * c;

		/* As in the model: company never makes a lock cheaper. */
		sum += log(fmax(gamma[i], 1) / fmax(curve, 1));
	}
	*across = fmax(exp(sum / (double)(count - within)), 1);
	return fit;
}
