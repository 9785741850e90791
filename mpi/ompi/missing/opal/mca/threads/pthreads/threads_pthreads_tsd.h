/* SPDX-License-Identifier: BSD-3-Clause */
/* As threads_pthreads_mutex.h beside it: of tsd.h, whose keys are those of POSIX threads. */
#ifndef OC_OMPI_THREADS_PTHREADS_TSD_H
#define OC_OMPI_THREADS_PTHREADS_TSD_H

#include <pthread.h>

typedef pthread_key_t opal_tsd_key_t;

#endif
