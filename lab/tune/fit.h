/* SPDX-License-Identifier: BSD-3-Clause */
/* Measured points into terms: pure functions. Residuals are relative root mean squares. */
#ifndef OC_TUNE_FIT_H
#define OC_TUNE_FIT_H

#include <stddef.h>

/* y = intercept + slope x, both at least 0, least relative squares. */
struct oci_fit_line {
	double intercept, slope, residual;
};
struct oci_fit_line oci_fit_line(const double *x, const double *y, size_t count);

/* y = slope x through the origin. */
struct oci_fit_line oci_fit_slope(const double *x, const double *y, size_t count);

/*
 * Where copies leave the cache: the number of points that belong to the first of two slopes. That
 * is `count` when the second is not steeper by a third at least, or when one slope does as well (to
 * within a tenth of the residual). x ascends.
 */
size_t oci_fit_split(const double *x, const double *y, size_t count);

/* The mean of the middle half. Orders the values, of which there is one at least. */
double oci_fit_midmean(double *value, size_t count);

/*
 * gamma(c) = gamma2 c^2 + gamma1 c over the measured points with c >= 2, of which there is one at
 * least, neither term negative: the form of paper 002, least squares of the relative error. One
 * point gives gamma1 alone.
 */
struct oci_fit_gamma {
	double gamma1, gamma2, residual;
};
struct oci_fit_gamma oci_fit_gamma(const double *copiers, const double *gamma, size_t count);

/*
 * The same over the points of up to `package` copiers, and by what factor those beyond lie above
 * that curve: the geometric mean of their ratios, at least 1. Where all points are on one side the
 * curve is of all, and *across 0: not known. copiers ascend.
 */
struct oci_fit_gamma oci_fit_gamma_across(const double *copiers, const double *gamma, size_t count,
					  double package, double *across);

#endif
