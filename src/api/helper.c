/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The executor `thread` of ONECOPY_ASYNC: a thread of this process that runs outstanding operations
 * while the program computes (paper 003, section 2, "Thread Implementation"). It is that of
 * `uring`, too: io_uring has no request that copies memory of another process.
 *
 * It takes what can be run without the MPI: no operation of the program, no message, no end that is
 * to be told. It runs them without the engine's lock, marked `running` as a reduction is, so that
 * the program's calls meet the lock held for an instant alone. Whoever is in a call drives as
 * before, and while somebody does the thread keeps away.
 *
 * It sleeps while nothing is outstanding for it, and between two looks at what waits for peers: the
 * longer, the longer that has lasted. A peer's flag does not wake it, as flags are raised without a
 * system call. Nor does each start: a program that waits at once, or soon, needs no help, and would
 * pay for the call that wakes it.
 */
#include "api/helper.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>

#include "api/engine.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/options.h"
#include "os/os.h"

/* The shortest sleep, and the longest. Between them it is this part of the time that nothing has
 * moved: what has waited for so long comes later by no more. */
#define NAP_NS 20000
#define NAP_MOST_NS 1000000
#define QUIET_PER_NAP 8
/* With nothing outstanding for so long it sleeps until it is woken. */
#define IDLE_NS 100000000
/* So many starts wake it after one that was worth it; of others, each so many-th, to see. */
#define WORTH 16
/* A thread that was in a call of ours so lately is taken to wait there. */
#define DRIVEN_NS 20000

/* Of the word that it sleeps on. */
enum { AWAKE, NAPS, PARKED };

static struct {
	pthread_mutex_t life; /* to begin and to end; no other lock of ours is taken before it */
	pthread_t thread;
	bool refused;	    /* there was no thread to be had; relaxed */
	bool ends;	    /* atomic */
	uint32_t asleep;    /* futex */
	uint32_t work;	    /* operations that it may run; atomic */
	uint32_t worth;	    /* starts that are still to wake it; relaxed, a hint, as what follows */
	uint32_t starts;    /* that did not */
	uint64_t driven_ns; /* when another thread last drove */
	bool crowded;	    /* it has no CPU of its own */
	bool told;	    /* who comes instead of io_uring; with `life` */
} helper = { .life = PTHREAD_MUTEX_INITIALIZER, .worth = WORTH };
bool oci_helper_runs; /* written with `life` */

/* ---- the thread ------------------------------------------------------------------------------ */

static bool ends(void)
{
	return __atomic_load_n(&helper.ends, __ATOMIC_SEQ_CST);
}

/* 0: until it is woken. `known`: the work that was there at the last look. */
static void rest(uint64_t ns, uint32_t known)
{
	/*
	 * Sequentially consistent, this and what follows: who brings work, or the end, writes that
	 * and then looks whether we sleep; we write that we do and then look for both. One of the
	 * two sees the other. Pairs with wake().
	 */
	uint32_t how = ns ? NAPS : PARKED;

	__atomic_store_n(&helper.asleep, how, __ATOMIC_SEQ_CST);
	if (!ends() && __atomic_load_n(&helper.work, __ATOMIC_SEQ_CST) <= known)
		oci_os_futex_wait(&helper.asleep, how, ns ? ns : UINT64_MAX);
	__atomic_store_n(&helper.asleep, AWAKE, __ATOMIC_RELAXED);
}

static void wake(void)
{
	if (__atomic_exchange_n(&helper.asleep, AWAKE, __ATOMIC_SEQ_CST) != AWAKE)
		oci_os_futex_wake(&helper.asleep, 1);
}

static bool is_worth(void)
{
	uint32_t worth = __atomic_load_n(&helper.worth, __ATOMIC_RELAXED);

	if (worth)
		__atomic_store_n(&helper.worth, worth - 1, __ATOMIC_RELAXED);
	return worth || __atomic_add_fetch(&helper.starts, 1, __ATOMIC_RELAXED) % WORTH == 0;
}

void oci_helper_ring(void)
{
	uint32_t asleep;

	/* As in wake(); who naps comes by itself, if this is missed. */
	asleep = __atomic_load_n(&helper.asleep, __ATOMIC_SEQ_CST);
	if (asleep == PARKED || (asleep == NAPS && is_worth()))
		wake();
}

/* Is somebody else at it? */
static bool is_driven(uint64_t now)
{
	/* Signed: it may have been after `now`. */
	return (int64_t)(now - __atomic_load_n(&helper.driven_ns, __ATOMIC_RELAXED)) <= DRIVEN_NS;
}

static uint64_t nap_after(uint64_t quiet_ns)
{
	uint64_t ns = quiet_ns / QUIET_PER_NAP;

	return ns < NAP_NS ? NAP_NS : ns > NAP_MOST_NS ? NAP_MOST_NS : ns;
}

static void *drive(void *context)
{
	uint64_t now = oci_clock_ns(), moved = now;
	uint32_t known;

	oci_os_sleep_exactly();
	for (; !ends(); now = oci_clock_ns()) {
		known = __atomic_load_n(&helper.work, __ATOMIC_SEQ_CST);
		if (!known || is_driven(now)) {
			rest(known || now - moved < IDLE_NS ? NAP_MOST_NS : 0, known);
		} else if (oci_requests_help()) {
			__atomic_store_n(&helper.worth, WORTH, __ATOMIC_RELAXED);
			moved = now;
			continue;
		} else {
			rest(nap_after(now - moved), known);
		}
		/* What has come since is looked at often, at first, but for whoever waits at once.
		 */
		if (__atomic_load_n(&helper.work, __ATOMIC_RELAXED) > known) {
			rest(NAP_NS, UINT32_MAX);
			moved = oci_clock_ns();
		}
	}
	return context;
}

/* ---- where it runs --------------------------------------------------------------------------- */

enum { MASK_WORDS = 128 };

static unsigned int count_of(const uint64_t *mask)
{
	unsigned int count = 0;

	for (int w = 0; w < MASK_WORDS; w++)
		count += (unsigned int)__builtin_popcountll(mask[w]);
	return count;
}

static uint32_t node_ranks(const struct oc_team *team)
{
	const struct oci_team *t = &team->team;

	return t->size > t->bootstrap.node_ranks ? t->size : t->bootstrap.node_ranks;
}

/*
 * A rank that is bound to one CPU computes there: its helper is to run on those that no rank is
 * bound to, which are left in `idle`. Else it runs where its rank may, and `idle` is empty. False:
 * the ranks of the node have no CPU each beside those that they compute on, or it cannot be told.
 */
static bool find_idle(const struct oc_team *team, uint64_t idle[MASK_WORDS])
{
	const struct oci_team *t = &team->team;
	uint64_t all[MASK_WORDS] = { 0 }, mask[MASK_WORDS];
	unsigned int online = oci_os_cpus_online();
	double granted = oci_os_cgroup_cpus();
	uint32_t ranks = node_ranks(team);

	memset(idle, 0, MASK_WORDS * sizeof(*idle));
	/* Of the others it is not known where they are. */
	if (t->size < ranks || (granted > 0 && granted < 2.0 * ranks))
		return false;
	for (uint32_t r = 0; r < t->size; r++) {
		if (!oci_os_affinity(t->member[r].pid, mask, MASK_WORDS))
			return false;
		for (int w = 0; w < MASK_WORDS; w++)
			all[w] |= mask[w];
	}
	if (oci_os_cpus_allowed() > 1)
		return count_of(all) >= 2 * ranks;
	for (unsigned int cpu = 0; cpu < online && cpu < 64 * MASK_WORDS; cpu++)
		idle[cpu / 64] |= ~all[cpu / 64] & (uint64_t)1 << cpu % 64;
	return count_of(idle) >= ranks;
}

/* ---- its life -------------------------------------------------------------------------------- */

static uint64_t bound_to[MASK_WORDS]; /* none: nowhere; written before the thread is there */

static void *begin(void *context)
{
	/* Where the system refuses that it shares its rank's CPU, which it is told here. */
	if (count_of(bound_to) && oci_os_bind_to(bound_to, MASK_WORDS))
		__atomic_store_n(&helper.crowded, true, __ATOMIC_RELAXED);
	return drive(context);
}

/* With `life`. Signals are for the program's threads, but for those of what this one does itself.
 */
static bool start(const struct oc_team *team)
{
	static const int own[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS };
	sigset_t others, before;
	int error;

	helper.crowded = !find_idle(team, bound_to);
	if (helper.crowded)
		memset(bound_to, 0, sizeof(bound_to));
	sigfillset(&others);
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		sigdelset(&others, own[i]);
	pthread_sigmask(SIG_BLOCK, &others, &before);
	error = pthread_create(&helper.thread, NULL, begin, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	__atomic_store_n(&helper.refused, error != 0, __ATOMIC_RELAXED);
	if (error)
		oci_info("no thread for outstanding operations can be started (%s): they move in "
			 "calls alone",
			 strerror(error));
	else
		oci_info("a thread runs outstanding operations%s",
			 helper.crowded ? "; it has no CPU of its own" : "");
	if (oci_options()->async >= OCI_ASYNC_URING && !helper.told) {
		bool uring = oci_options()->async == OCI_ASYNC_URING;

		helper.told = true;
		oci_log(oci_option_warning_level(),
			"ONECOPY_ASYNC=%s, so outstanding collectives are run by %s; graphs (oc_graph) "
			"are not concerned",
			uring ? "uring: io_uring cannot copy memory of another process" :
				"kmod: the kernel module runs graphs alone",
			error ? "whoever is in a call" : "a thread");
	}
	return !error;
}

static bool runs(const struct oc_team *team)
{
	if (__atomic_load_n(&oci_helper_runs, __ATOMIC_ACQUIRE))
		return true;
	if (__atomic_load_n(&helper.refused, __ATOMIC_RELAXED))
		return false;
	/*
	 * From here on the engine locks, which it may not have done. So nothing of its own may be
	 * under way: not an operation that has begun as one that no thread comes beside, nor a call
	 * further up our stack.
	 */
	if (oci_engine.alone) {
		if (oci_engine.inside || oci_engine.pending)
			return false;
		oci_engine.alone = false;
	}
	pthread_mutex_lock(&helper.life);
	if (!oci_helper_runs && start(team))
		__atomic_store_n(&oci_helper_runs, true, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&helper.life);
	return __atomic_load_n(&oci_helper_runs, __ATOMIC_RELAXED);
}

bool oci_helper_takes(struct oc_team *team, const struct oc_call *call)
{
	enum oci_async async = oci_options()->async;

	/* `auto` is the caller: the thread slows what is waited for at once (docs/results.md,
	 * "Overlap"). */
	return async >= OCI_ASYNC_THREAD && !(call->op && !call->op->any_thread) && runs(team);
}

void oci_helper_work(int change)
{
	__atomic_fetch_add(&helper.work, (uint32_t)change, __ATOMIC_SEQ_CST);
}

void oci_helper_keep_away(void)
{
	__atomic_store_n(&helper.driven_ns, oci_clock_ns(), __ATOMIC_RELAXED);
}

void oci_helper_let_through(void)
{
	if (__atomic_load_n(&helper.crowded, __ATOMIC_RELAXED))
		oci_os_yield();
}

/* Also where the library is unloaded, or the process ends, with teams that nobody destroyed. */
__attribute__((destructor)) void oci_helper_stop(void)
{
	if (!__atomic_load_n(&oci_helper_runs, __ATOMIC_RELAXED))
		return;
	pthread_mutex_lock(&helper.life);
	if (oci_helper_runs) {
		__atomic_store_n(&helper.ends, true, __ATOMIC_SEQ_CST);
		wake();
		pthread_join(helper.thread, NULL);
		helper.ends = false;
		__atomic_store_n(&oci_helper_runs, false, __ATOMIC_RELAXED);
	}
	pthread_mutex_unlock(&helper.life);
}

void oci_helper_fork_child(void)
{
	pthread_mutex_init(&helper.life, NULL);
	oci_helper_runs = helper.ends = false;
	helper.work = 0;
	helper.asleep = AWAKE;
}
