/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * To preload, on either side: a rank of MPICH that finds nothing to do gives its CPU away. Ranks
 * that are more than the CPUs otherwise spin away the turns of those that they wait for.
 */
#include <dlfcn.h>
#include <sched.h>
#include <stddef.h>

unsigned int ucp_worker_progress(void *worker)
{
	static union {
		void *data;
		unsigned int (*function)(void *);
	} real;
	unsigned int moved;

	if (!real.data)
		real.data = dlsym(RTLD_NEXT, "ucp_worker_progress");
	moved = real.function(worker);
	if (!moved)
		sched_yield();
	return moved;
}
