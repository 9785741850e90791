/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * To preload, on either side: a rank of MPICH that finds nothing to do gives its CPU away. Ranks
 * that are more than the CPUs otherwise spin away the turns of those that they wait for. Not each
 * time: a call that looks once has not waited, and next to threads that spin it would have its CPU
 * back after milliseconds.
 */
#include <dlfcn.h>
#include <sched.h>

#define IDLE_LOOKS 16

unsigned int ucp_worker_progress(void *worker)
{
	static union {
		void *data;
		unsigned int (*function)(void *);
	} real;
	static _Thread_local unsigned int idle;
	unsigned int moved;

	if (!real.data)
		real.data = dlsym(RTLD_NEXT, "ucp_worker_progress");
	moved = real.function(worker);
	idle = moved ? 0 : idle + 1;
	if (idle == IDLE_LOOKS) {
		idle = 0;
		sched_yield();
	}
	return moved;
}
