/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A thread that drives the engine while the program's thread is inside a call of the MPI that has
 * no nonblocking twin and cannot tell whether it would wait.
 *
 * Below MPI_THREAD_MULTIPLE the MPI is the other thread's alone. So this one moves operations of
 * the engine, which peers wait for, and leaves to the program's thread what needs messages of the
 * MPI: telling a request that its operation is over. A team that is still under creation needs
 * them, too. There is none: before the call, all are ready or refused, and what comes back to the
 * MPI is driven by it. The thread may call operations of the program, and MPI_Reduce_local(),
 * MPI_Pack() and MPI_Unpack(), which in MPICH look at handles and change none.
 *
 * No two threads meet in the engine: the program's comes back to it when this one has been joined.
 * So the call returns its errors, and its communicator's handler, which is the program's and may
 * call us, is called behind that.
 */
#include "pmpi.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

/* The call may last for hours, and its thread may share our CPU and never rest. */
enum { BUSY_TURNS = 64, PAUSE_NS = 20000 };

struct oci_pmpi_helper {
	pthread_t thread;
	MPI_Comm comm;
	MPI_Errhandler handler; /* the communicator's own; MPI_ERRHANDLER_NULL: it is in place */
	bool stop;		/* atomic */
};

OCI_TLS bool oci_pmpi_is_helper;

static void *help(void *context)
{
	struct oci_pmpi_helper *helper = context;
	const struct timespec pause = { .tv_nsec = PAUSE_NS };

	oci_pmpi_is_helper = true;
	prctl(PR_SET_TIMERSLACK, 1ul);
	/* Relaxed: the thread is told to stop, nothing else; pthread_join() orders the rest. */
	for (uint32_t turn = 0; !__atomic_load_n(&helper->stop, __ATOMIC_RELAXED); turn++) {
		if (oci_pmpi_job.threads)
			oci_pmpi_drive();
		else
			oc_progress();
		if (turn >= BUSY_TURNS)
			nanosleep(&pause, NULL);
	}
	return NULL;
}

/* Signals are for the program's threads, but for those of what this one does itself. */
static bool begin(struct oci_pmpi_helper *helper)
{
	static const int own[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS };
	sigset_t others, before;
	bool runs;

	sigfillset(&others);
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		sigdelset(&others, own[i]);
	pthread_sigmask(SIG_BLOCK, &others, &before);
	runs = !pthread_create(&helper->thread, NULL, help, helper);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return runs;
}

/*
 * The program's handler is not to run while the helper does: it may call us. That of MPICH which
 * ends the job does not, and stands for none, too, so it stays.
 */
static void take_handler(struct oci_pmpi_helper *helper)
{
	helper->handler = MPI_ERRHANDLER_NULL;
	if (oci_pmpi_job.threads ||
	    PMPI(Comm_get_errhandler)(helper->comm, &helper->handler) != MPI_SUCCESS)
		return;
	if (helper->handler != MPI_ERRORS_ARE_FATAL)
		PMPI(Comm_set_errhandler)(helper->comm, MPI_ERRORS_RETURN);
	else
		PMPI(Errhandler_free)(&helper->handler);
}

/* True: there was one. */
static bool give_handler(struct oci_pmpi_helper *helper)
{
	if (helper->handler == MPI_ERRHANDLER_NULL)
		return false;
	PMPI(Comm_set_errhandler)(helper->comm, helper->handler);
	PMPI(Errhandler_free)(&helper->handler);
	return true;
}

struct oci_pmpi_helper *oci_pmpi_helper_start(MPI_Comm comm)
{
	struct oci_pmpi_helper *helper;

	/* What is no communicator the MPI will say. */
	if (!oci_pmpi_job.active || !oci_pmpi_attention() || !oci_pmpi_comm_get(comm))
		return NULL;
	if (!oci_pmpi_job.threads)
		oci_pmpi_decide_all();
	helper = calloc(1, sizeof(*helper));
	if (helper) {
		helper->comm = comm;
		take_handler(helper);
		if (begin(helper))
			return helper;
		give_handler(helper);
	}
	oci_pmpi_decide_all();
	oci_mpi_info("no thread could be started: nonblocking collectives of this process rest "
		     "while it waits for another job or for its buffered messages");
	free(helper);
	return NULL;
}

int oci_pmpi_helper_stop(struct oci_pmpi_helper *helper, int error)
{
	if (!helper)
		return error;
	__atomic_store_n(&helper->stop, true, __ATOMIC_RELAXED);
	pthread_join(helper->thread, NULL);
	if (give_handler(helper) && error)
		oci_pmpi_raise(helper->comm, error);
	free(helper);
	return error;
}
