/* SPDX-License-Identifier: BSD-3-Clause */
/* As threads_pthreads_mutex.h beside it: of threads.h, which wants a way to yield. */
#ifndef OC_OMPI_THREADS_PTHREADS_THREADS_H
#define OC_OMPI_THREADS_PTHREADS_THREADS_H

#include <sched.h>

static inline void opal_thread_yield(void)
{
	sched_yield();
}

#endif
