/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A thread that drives the engine while the program's thread is inside a call of the MPI that may
 * wait for others and has no nonblocking form. There is one for the whole process, made when it is
 * first needed.
 *
 * Below MPI_THREAD_MULTIPLE the MPI is the other thread's alone. So this one moves operations of
 * the engine, which peers wait for, and leaves to the program's thread what needs messages of the
 * MPI: telling a request that its operation is over. The thread may call operations of the
 * program, and MPI_Reduce_local(), MPI_Pack() and MPI_Unpack(), which in MPICH look at handles and
 * change none.
 *
 * Most such calls are short, and some are made again and again (MPI_Win_fence). So the thread looks
 * by itself, every 20 to 160 us, whether there is such a call: to begin and end one takes no system
 * call. When there has been none for a while it parks, and the next call wakes it.
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
enum { LITTLE_NS = 2000, SHORT_NS = 20000, LONG_NS = 160000, IDLE_NS = 1000000, MOST_TURNS = 64 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake = PTHREAD_COND_INITIALIZER;
static pthread_t thread;
static bool runs;
static bool ends;	   /* atomic */
static bool parked = true; /* or not there yet; atomic */
/* How many are under way (one may be inside another), and above that how many have begun; atomic.
 */
static uint64_t calls;
#define ONE_BEGINS (UINT64_C(1) << 32 | 1)

OCI_TLS bool oci_pmpi_is_helper;
enum { NEW, EARLY, LATE };
OCI_TLS uint8_t oci_pmpi_is_known; /* which of these */

static bool is_needed(void)
{
	return (uint32_t)__atomic_load_n(&calls, __ATOMIC_SEQ_CST) && oci_mpi_outstanding();
}

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* True: that was much work, so there may be more. */
static bool drive_once(void)
{
	int64_t begin = now_ns();

	if (oci_pmpi_may_call())
		oci_pmpi_drive();
	else
		oc_progress();
	return now_ns() - begin > LITTLE_NS;
}

static void park(void)
{
	pthread_mutex_lock(&lock);
	/* The fence pairs with that of oci_pmpi_helper_wake(). We are needed for a call and an
	 * operation; whoever brings one of them writes it, and then looks whether we are parked; we
	 * write that, and then look for both. So we find both, or one of those finds us parked. */
	__atomic_store_n(&parked, true, __ATOMIC_SEQ_CST);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	while (!is_needed() && !ends)
		pthread_cond_wait(&wake, &lock);
	__atomic_store_n(&parked, false, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&lock);
}

static bool attends, all_late; /* see below; atomic */

/* There is no call that we know of: perhaps a thread has been inside one since before the first
 * operation, perhaps it has ended. */
static bool is_needed_perhaps(void)
{
	return __atomic_load_n(&attends, __ATOMIC_RELAXED) &&
	       !__atomic_load_n(&all_late, __ATOMIC_RELAXED) &&
	       (uint32_t)__atomic_load_n(&calls, __ATOMIC_RELAXED) == 1;
}

/*
 * Between two looks. A call that was there at the last one, too, waits for a peer, who may wait for
 * us. Calls that come and go need us seldom, and each look may take the CPU from them.
 */
static void rest(long *pause, bool more_calls, bool needed)
{
	if (more_calls && *pause < LONG_NS)
		*pause *= 2;
	else if (!more_calls && needed)
		*pause = is_needed_perhaps() ? LONG_NS : SHORT_NS;
	nanosleep(&(struct timespec){ .tv_nsec = *pause }, NULL);
}

static void *help(void *context)
{
	long pause = SHORT_NS, idle = 0;
	uint64_t before = 0, begun;
	bool needed;

	oci_pmpi_is_helper = true;
	oci_pmpi_is_known = LATE;
	__atomic_store_n(&parked, false, __ATOMIC_RELAXED);
	prctl(PR_SET_TIMERSLACK, 1ul);
	while (!__atomic_load_n(&ends, __ATOMIC_RELAXED)) {
		begun = __atomic_load_n(&calls, __ATOMIC_RELAXED) >> 32;
		needed = is_needed();
		idle = begun == before && !needed ? idle + pause : 0;
		if (idle > IDLE_NS) {
			park();
			pause = SHORT_NS;
			idle = 0;
		} else if (!needed || !drive_once()) {
			rest(&pause, begun != before, needed);
		}
		before = begun;
	}
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
	oci_mpi_set_threads(true);
	sigfillset(&others);
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		sigdelset(&others, own[i]);
	pthread_sigmask(SIG_BLOCK, &others, &before);
	runs = !pthread_create(&thread, NULL, help, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return runs;
}

bool oci_pmpi_helper_wake(void)
{
	bool there = true;

	/* Pairs with park(), and with itself: two threads may bring the call and the operation, and
	 * the one whose fence is the later one sees both. The lock: we are not between a look and
	 * a wait of park(). */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (!__atomic_load_n(&parked, __ATOMIC_SEQ_CST) || !is_needed())
		return true;
	pthread_mutex_lock(&lock);
	there = begin();
	pthread_cond_signal(&wake);
	pthread_mutex_unlock(&lock);
	return there;
}

/* ---- MPI_THREAD_MULTIPLE ----------------------------------------------------------------------
 *
 * Calls of a program that starts no operation are the MPI's as they are. When the first operation
 * starts, another thread may be inside such a call, and its end may be what the starting one waits
 * for before it calls us again. So from then on there is a call to help with until each thread that
 * has been here before has come again, and so has left it; from then on each call attends.
 */

static uint32_t known, late; /* threads: all, and of these the late ones; atomic */
static bool begins;	     /* atomic */

/*
 * A thread counts itself and then looks for operations; whoever starts the first one says so and
 * then looks whether all are late: so it finds this one early, or this one attends (all of that is
 * sequentially consistent). A late one is in both numbers, so they are equal only when there is no
 * early one; and it is late only when what makes calls attend is there to stay.
 */
bool oci_pmpi_look(void)
{
	if (oci_pmpi_is_known == NEW) {
		oci_pmpi_is_known = EARLY;
		__atomic_fetch_add(&known, 1, __ATOMIC_SEQ_CST);
	}
	if (!__atomic_load_n(&oci_pmpi_attention_count, __ATOMIC_SEQ_CST))
		return false;
	if (oci_pmpi_is_known == LATE || !__atomic_load_n(&attends, __ATOMIC_SEQ_CST))
		return true;
	oci_pmpi_is_known = LATE;
	if (__atomic_add_fetch(&late, 1, __ATOMIC_SEQ_CST) ==
		    __atomic_load_n(&known, __ATOMIC_SEQ_CST) &&
	    !__atomic_exchange_n(&all_late, true, __ATOMIC_RELAXED))
		__atomic_fetch_sub(&calls, 1, __ATOMIC_RELAXED);
	return true;
}

void oci_pmpi_helper_begun(void)
{
	if (!oci_pmpi_job.threads) {
		if (OCI_UNLIKELY((uint32_t)calls)) /* ours: we are inside it */
			oci_pmpi_helper_wake();
		return;
	}
	if (OCI_UNLIKELY(!__atomic_load_n(&begins, __ATOMIC_RELAXED)) &&
	    !__atomic_exchange_n(&begins, true, __ATOMIC_SEQ_CST)) {
		__atomic_fetch_add(&calls, ONE_BEGINS, __ATOMIC_SEQ_CST);
		__atomic_fetch_add(&oci_pmpi_attention_count, 1, __ATOMIC_SEQ_CST);
		__atomic_store_n(&attends, true, __ATOMIC_SEQ_CST);
		oci_pmpi_look();
	}
	oci_pmpi_helper_wake();
}

/*
 * There is no thread to be had, perhaps for the moment. Peers may need what is outstanding before
 * they come to this call, so it ends here. It does not if a peer makes its part only behind the
 * call: then we try again and again until there is a thread. False: all is over.
 */
static bool insist(void)
{
	uint32_t turns = 0;

	oci_info("no thread could be started: before it waits for others, this process waits "
		 "for its nonblocking collectives, or for a thread");
	while (oci_mpi_outstanding()) {
		oci_pmpi_drive_from_engine();
		oci_pmpi_drive();
		oci_pmpi_pause(&turns);
		if (turns % 4096 == 0 && oci_pmpi_helper_wake())
			return true;
	}
	return false;
}

/*
 * What is outstanding may be over soon: then nobody else is needed. So the call's own thread drives
 * first, also as a program may make such calls again and again until a peer has done something; and
 * the longer, the more often that was enough. False: it is not over.
 */
static bool ends_soon(void)
{
	static uint32_t patience = MOST_TURNS; /* atomic */
	uint32_t most = __atomic_load_n(&patience, __ATOMIC_RELAXED), turn = 0;
	bool over, moved, worth = false;

	do {
		moved = drive_once();
		worth |= moved;
		turn += !moved;
		over = !oci_mpi_outstanding();
	} while (!over && turn <= most);
	most = over || worth ? 2 * most + 1 : most / 2;
	__atomic_store_n(&patience, most < MOST_TURNS ? most : MOST_TURNS, __ATOMIC_RELAXED);
	return over;
}

static bool may_help(void)
{
	return oci_pmpi_job.active && oci_pmpi_job.starts && !oci_pmpi_is_helper;
}

bool oci_pmpi_help(void)
{
	if (!may_help() || (ends_soon() && !oci_pmpi_job.threads))
		return false;
	__atomic_fetch_add(&calls, ONE_BEGINS, __ATOMIC_SEQ_CST);
	if (oci_pmpi_helper_wake() || insist())
		return true;
	__atomic_fetch_sub(&calls, 1, __ATOMIC_RELAXED);
	return false;
}

bool oci_pmpi_help_callbacks(void)
{
	if (oci_pmpi_attention() && oci_pmpi_help())
		return true;
	if (!may_help())
		return false;
	/* Nothing is outstanding, but perhaps of another thread by now: see park(). Where there is
	 * no thread to be had the next that begins tries again. */
	__atomic_fetch_add(&calls, ONE_BEGINS, __ATOMIC_SEQ_CST);
	oci_pmpi_helper_wake();
	return true;
}

/* It may still be in its last turn. It is never waited for: we may hold what an operation of the
 * program wants. */
int oci_pmpi_helped(bool helped, int error)
{
	if (helped)
		__atomic_fetch_sub(&calls, 1, __ATOMIC_RELAXED);
	return error;
}

void oci_pmpi_helper_stop(void)
{
	if (!runs)
		return;
	pthread_mutex_lock(&lock);
	__atomic_store_n(&ends, true, __ATOMIC_RELAXED);
	pthread_cond_signal(&wake);
	pthread_mutex_unlock(&lock);
	pthread_join(thread, NULL);
	runs = ends = false;
	parked = true;
}
