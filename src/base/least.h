/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The smaller and the larger of two numbers, neither of which is a NaN. fmin() and fmax() were all
 * that was wanted of libm, and every process that a front end is loaded into, launchers and shells
 * among them, loaded it for them: 65 us each (EPYC guest, 2026-11-25, one-off).
 */
#ifndef OC_BASE_LEAST_H
#define OC_BASE_LEAST_H

static inline double oci_smaller(double a, double b)
{
	return a < b ? a : b;
}

static inline double oci_larger(double a, double b)
{
	return a > b ? a : b;
}

#endif
