/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HARNESS_CLOCK_H
#define HARNESS_CLOCK_H

#include <time.h>

/* Of the clock that only goes on, and is the same in all processes. */
static inline double now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static inline double now_us(void)
{
	return 1e6 * now_s();
}

#endif
