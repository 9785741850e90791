/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A thread that drives the engine while the program's thread is inside a call of the MPI that has
 * no nonblocking twin and cannot tell whether it would wait.
 *
 * Below MPI_THREAD_MULTIPLE the MPI is the other thread's alone. So this one moves operations of
 * the engine, which peers wait for, and leaves to the program's thread what needs messages of the
 * MPI: telling a request that its operation is over, and teams under creation. It may call
 * operations of the program and MPI_Reduce_local(), which look at handles and change none.
 *
 * No two threads meet in the engine: the program's comes back to it when this one has been joined.
 */
#include "pmpi.h"

#include <signal.h>
#include <time.h>

/* Turns without a pause, and then the pause: the call may last for hours. */
enum { BUSY_TURNS = 4096, PAUSE_NS = 50000 };

OCI_TLS bool oci_pmpi_is_helper;

static void *help(void *context)
{
	struct oci_pmpi_helper *helper = context;
	const struct timespec pause = { .tv_nsec = PAUSE_NS };
	uint32_t turns = 0;

	oci_pmpi_is_helper = true;
	/* Relaxed: the thread is told to stop, nothing else; pthread_join() orders the rest. */
	while (!__atomic_load_n(&helper->stop, __ATOMIC_RELAXED)) {
		if (oci_pmpi_job.threads)
			oci_pmpi_drive();
		else
			oc_progress();
		if (turns < BUSY_TURNS)
			oci_pmpi_pause(&turns);
		else
			nanosleep(&pause, NULL);
	}
	return NULL;
}

void oci_pmpi_helper_start(struct oci_pmpi_helper *helper)
{
	sigset_t all, before;

	helper->stop = helper->runs = false;
	if (!oci_pmpi_job.active || !oci_pmpi_attention())
		return;
	/* Signals are for the program's threads. */
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	helper->runs = !pthread_create(&helper->thread, NULL, help, helper);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void oci_pmpi_helper_stop(struct oci_pmpi_helper *helper)
{
	if (!helper->runs)
		return;
	__atomic_store_n(&helper->stop, true, __ATOMIC_RELAXED);
	pthread_join(helper->thread, NULL);
}
