/* SPDX-License-Identifier: BSD-3-Clause */
/* The thread that runs outstanding operations while the program computes: ONECOPY_ASYNC. */
#ifndef OC_API_HELPER_H
#define OC_API_HELPER_H

#include <onecopy/onecopy.h>
#include <stdbool.h>

/* Atomic: there is such a thread. */
extern bool oci_helper_runs;

/* Is a call that is about to begin the thread's, too? Starts the thread. Not with the engine's
 * lock. */
bool oci_helper_takes(struct oc_team *team, const struct oc_call *call);
/* One more operation of the thread's is outstanding, or one less; with the engine's lock. Then
 * without it: the thread is to look. */
void oci_helper_work(int change);
void oci_helper_ring(void);
/* Another thread drives, or wants to: nothing is left for this one. */
void oci_helper_keep_away(void);
/* Another thread waits for what this one is running: it may need the CPU. */
void oci_helper_let_through(void);
void oci_helper_stop(void);
void oci_helper_fork_child(void);

/* request.c: the thread's turn. True: something has moved. */
bool oci_requests_help(void);

#endif
