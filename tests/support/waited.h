/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What this thread had to wait for a CPU so far, in seconds. A test of how soon something happens
 * takes it off: then a machine that others use is as good as a quiet one. 0 where the kernel does
 * not count it.
 */
#ifndef OC_TESTS_WAITED_H
#define OC_TESTS_WAITED_H

#include <stdio.h>

static inline double oct_waited_s(void)
{
	FILE *file = fopen("/proc/thread-self/schedstat", "re");
	unsigned long long ran, waited = 0;

	if (file && fscanf(file, "%llu %llu", &ran, &waited) != 2)
		waited = 0;
	if (file)
		fclose(file);
	return 1e-9 * (double)waited;
}

#endif
