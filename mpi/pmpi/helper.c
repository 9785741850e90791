/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A thread that drives the engine while the program's thread is inside a call of the MPI that has
 * no nonblocking twin, and that may wait for processes which cannot be met before: those of other
 * jobs, of which nobody knows whether they have this library, and the receivers of buffered
 * messages. There is one for the whole process, made at the first such call; between them it
 * sleeps.
 *
 * Below MPI_THREAD_MULTIPLE the MPI is the other thread's alone. So this one moves operations of
 * the engine, which peers wait for, and leaves to the program's thread what needs messages of the
 * MPI: telling a request that its operation is over. The thread may call operations of the
 * program, and MPI_Reduce_local(), MPI_Pack() and MPI_Unpack(), which in MPICH look at handles and
 * change none.
 *
 * The program's thread may come back to us from inside the call: by an error handler, or by the
 * attribute functions of what is duplicated or freed. So from the first such call on the engine
 * locks.
 */
#include "pmpi.h"

#include <signal.h>
#include <sys/prctl.h>
#include <time.h>

/* A call may last for hours, and its thread may share our CPU and never rest. */
enum { BUSY_TURNS = 64, PAUSE_NS = 20000 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake = PTHREAD_COND_INITIALIZER;
static pthread_t thread;
static bool runs, ends;
static uint32_t calls; /* that it drives for; one may be inside another */

OCI_TLS bool oci_pmpi_is_helper;

static void drive_once(uint32_t turn)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };

	if (oci_pmpi_job.threads)
		oci_pmpi_drive();
	else
		oc_progress();
	if (turn >= BUSY_TURNS)
		nanosleep(&pause, NULL);
}

/* False: it is to end. Returns with a call to drive for. */
static bool await_call(uint32_t *turn)
{
	bool more;

	pthread_mutex_lock(&lock);
	if (!calls)
		*turn = 0;
	while (!calls && !ends)
		pthread_cond_wait(&wake, &lock);
	more = !ends;
	pthread_mutex_unlock(&lock);
	return more;
}

static void *help(void *context)
{
	uint32_t turn = 0;

	oci_pmpi_is_helper = true;
	prctl(PR_SET_TIMERSLACK, 1ul);
	while (await_call(&turn))
		drive_once(turn++);
	return context;
}

/* With the lock. Signals are for the program's threads, but for those of what this one does itself.
 */
static bool begin(void)
{
	static const int own[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS };
	sigset_t others, before;

	if (runs)
		return true;
	oc_set_threads(1);
	sigfillset(&others);
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		sigdelset(&others, own[i]);
	pthread_sigmask(SIG_BLOCK, &others, &before);
	runs = !pthread_create(&thread, NULL, help, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return runs;
}

/* It may still be in its last turn when the call has ended, and is never waited for with anything
 * held that an operation of the program may want. */
bool oci_pmpi_help(void)
{
	bool helped;

	if (!oci_pmpi_job.active || !oci_pmpi_job.together || !oci_pmpi_attention() ||
	    oci_pmpi_is_helper)
		return false;
	pthread_mutex_lock(&lock);
	helped = begin();
	if (helped && !calls++)
		pthread_cond_signal(&wake);
	pthread_mutex_unlock(&lock);
	if (helped)
		return true;
	oci_mpi_info("no thread could be started: nonblocking collectives of this process rest "
		     "while it waits for another job or for its buffered messages");
	return false;
}

bool oci_pmpi_help_on(MPI_Comm comm)
{
	struct oci_pmpi_comm *state = oci_pmpi_attention() ? oci_pmpi_comm_get(comm) : NULL;

	return state && !state->known && oci_pmpi_help();
}

int oci_pmpi_helped(bool helped, int error)
{
	if (!helped)
		return error;
	pthread_mutex_lock(&lock);
	calls--;
	pthread_mutex_unlock(&lock);
	return error;
}

void oci_pmpi_helper_stop(void)
{
	if (!runs)
		return;
	pthread_mutex_lock(&lock);
	ends = true;
	pthread_cond_signal(&wake);
	pthread_mutex_unlock(&lock);
	pthread_join(thread, NULL);
	runs = ends = false;
}
