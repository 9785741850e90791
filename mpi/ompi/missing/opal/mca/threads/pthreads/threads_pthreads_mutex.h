/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Open MPI 5.0's opal/mca/threads/mutex.h includes this header, by a name that its configure chose,
 * but Debian's libopenmpi-dev does not install it. What mutex.h needs of it: its mutexes are those
 * of POSIX threads.
 */
#ifndef OC_OMPI_THREADS_PTHREADS_MUTEX_H
#define OC_OMPI_THREADS_PTHREADS_MUTEX_H

#include <pthread.h>
#include <stdbool.h>

typedef pthread_mutex_t opal_thread_internal_mutex_t;
typedef pthread_cond_t opal_thread_internal_cond_t;
#define OPAL_THREAD_INTERNAL_MUTEX_INITIALIZER PTHREAD_MUTEX_INITIALIZER

static inline int opal_thread_internal_mutex_trylock(opal_thread_internal_mutex_t *mutex)
{
	return pthread_mutex_trylock(mutex) != 0;
}

static inline void opal_thread_internal_mutex_lock(opal_thread_internal_mutex_t *mutex)
{
	pthread_mutex_lock(mutex);
}

static inline void opal_thread_internal_mutex_unlock(opal_thread_internal_mutex_t *mutex)
{
	pthread_mutex_unlock(mutex);
}

/* Of mutexes and conditions that our code never makes: request.h and wait_sync.h name them. */
static inline int opal_thread_internal_mutex_init(opal_thread_internal_mutex_t *mutex,
						  bool recursive)
{
	(void)recursive;
	return pthread_mutex_init(mutex, NULL);
}

static inline void opal_thread_internal_mutex_destroy(opal_thread_internal_mutex_t *mutex)
{
	pthread_mutex_destroy(mutex);
}

static inline int opal_thread_internal_cond_init(opal_thread_internal_cond_t *condition)
{
	return pthread_cond_init(condition, NULL);
}

static inline void opal_thread_internal_cond_destroy(opal_thread_internal_cond_t *condition)
{
	pthread_cond_destroy(condition);
}

static inline void opal_thread_internal_cond_signal(opal_thread_internal_cond_t *condition)
{
	pthread_cond_signal(condition);
}

#endif
