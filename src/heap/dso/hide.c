/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The arena kept out of a child of fork() until it has its own copy.
 *
 * Before our handler runs in the child, the C library has run there: it resets the locks of streams
 * and clears what other threads have under pthread keys, and both may lie in malloc's memory. In
 * pages that are still the parent's it would do that to the parent. So the child begins with a hole
 * there (MADV_DONTFORK), and whoever touches it first, in the C library or in another library's
 * handler, makes the copy, from a handler of SIGSEGV that is there for the time of the fork.
 *
 * The thread itself may lie there (struct pthread, errno and all of its TLS):
 * pthread_attr_setstack() puts them on the stack that it is given. Then the handler must do without
 * errno, and what the kernel writes there for the C library is seen to here: the child's thread id,
 * which it writes before the child runs and into the hole; and the area of rseq(2), which it writes
 * whenever it has taken the processor away, where a hole is a signal that no handler cures.
 */
#include "dso.h"
#include "raw.h"

#include <errno.h>
#include <gnu/libc-version.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>

/* The largest frame of a signal by far is 12 KiB (AMX). */
#define STACK_BYTES ((size_t)64 << 10)

/* Of the one fork under way, which has the lock of the arena. */
static struct {
	pid_t owner;
	void (*copy)(void);
	struct sigaction action;
	stack_t stack;
	bool on_stack;		 /* `stack` is to be put back */
	pid_t *id;		 /* where the C library has the thread's, if in the arena */
	unsigned int rseq_bytes; /* of the area that is to be put back, or 0 */
} hidden;
static uint8_t own_stack[STACK_BYTES] __attribute__((aligned(64)));

/* What another thread of the parent would have got without us. Not inlined: this one may use errno.
 */
static __attribute__((noinline)) void pass_on(int signal, siginfo_t *info, void *context)
{
	int error = errno;

	if (hidden.action.sa_flags & SA_SIGINFO) {
		hidden.action.sa_sigaction(signal, info, context);
	} else if (hidden.action.sa_handler == SIG_DFL || hidden.action.sa_handler == SIG_IGN) {
		sigaction(signal, &hidden.action, NULL);
		raise(signal);
	} else {
		hidden.action.sa_handler(signal);
	}
	errno = error;
}

static void touched(int signal, siginfo_t *info, void *context)
{
	if (getpid() == hidden.owner || !heap_has(info->si_addr, 1)) {
		pass_on(signal, info, context);
		return;
	}
	hidden.copy();
	if (hidden.id)
		*hidden.id = (pid_t)raw_call(SYS_gettid, 0, 0, 0, 0, 0, 0);
}

/* What the C library exports since 2.35; a size of 0: it has registered nothing. */
extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned int __rseq_size __attribute__((weak));
#define RSEQ_LEAST 32U
#define RSEQ_UNREGISTER 1
#define RSEQ_SIGNATURE 0x53053053 /* of x86's, <sys/rseq.h> */

static long rseq(void *area, unsigned int bytes, int flags)
{
	return raw_call(SYS_rseq, (long)area, bytes, flags, RSEQ_SIGNATURE, 0, 0);
}

static void *rseq_area(void)
{
	return (uint8_t *)__builtin_thread_pointer() + __rseq_offset;
}

static void rseq_back(void)
{
	if (hidden.rseq_bytes)
		rseq(rseq_area(), hidden.rseq_bytes, 0);
	hidden.rseq_bytes = 0;
}

/* false: the kernel keeps an area of this thread that is somebody else's, as a registration of
 * one of ours tells. */
static bool rseq_leave(void)
{
	static uint8_t probe[RSEQ_LEAST] __attribute__((aligned(32)));
	unsigned int bytes = &__rseq_size ? __rseq_size : 0;
	long error;

	hidden.rseq_bytes = 0;
	if (bytes) {
		/* The size is that of its use; what was registered is that or more, in 32s. */
		bytes = (bytes + RSEQ_LEAST - 1) / RSEQ_LEAST * RSEQ_LEAST;
		if (!rseq(rseq_area(), bytes, RSEQ_UNREGISTER))
			hidden.rseq_bytes = bytes;
	}
	error = rseq(probe, sizeof(probe), 0);
	if (!error)
		rseq(probe, sizeof(probe), RSEQ_UNREGISTER);
	if (!error || error == -ENOSYS)
		return true;
	rseq_back();
	return false;
}

bool heap_has_thread(void)
{
	return heap_has((const void *)pthread_self(), 1);
}

/* The kernel knows where the C library has the thread's id: there it writes 0 at its end. */
static pid_t *find_id(void)
{
	pid_t *id = NULL;

	if (raw_call(SYS_prctl, PR_GET_TID_ADDRESS, (long)&id, 0, 0, 0, 0) ||
	    !heap_has(id, sizeof(*id)) || *id != (pid_t)raw_call(SYS_gettid, 0, 0, 0, 0, 0, 0))
		return NULL;
	return id;
}

static bool advise(int advice)
{
	return !raw_madvise(heap_place.base, heap_place.bytes, advice);
}

static void put_back(void)
{
	sigaction(SIGSEGV, &hidden.action, NULL);
	if (hidden.on_stack)
		sigaltstack(&hidden.stack, NULL);
	rseq_back();
}

/* From glibc 2.41 on a child of fork() begins with SIGSEGV blocked, and touches its thread. */
static bool child_begins_deaf(void)
{
	int major = 0, minor = 0;

	return sscanf(gnu_get_libc_version(), "%d.%d", &major, &minor) != 2 ||
	       major * 1000 + minor >= 2041;
}

bool heap_can_hide_thread(void)
{
	bool can;

	if (child_begins_deaf() || !heap_is_file(heap_fd()) || !find_id() || !rseq_leave())
		return false;
	can = advise(MADV_DONTFORK);
	advise(MADV_DOFORK);
	rseq_back();
	return can;
}

bool heap_hide(void (*copy)(void))
{
	struct sigaction action = { .sa_sigaction = touched, .sa_flags = SA_SIGINFO | SA_ONSTACK };
	stack_t stack = { .ss_sp = own_stack, .ss_size = sizeof(own_stack) };

	/* On a stack in the hole parent and child are not apart, see stack.c. */
	if (heap_has(__builtin_frame_address(0), 1))
		return false;
	hidden.id = NULL;
	if (heap_has_thread()) {
		hidden.id = find_id();
		if (!hidden.id || child_begins_deaf() || !rseq_leave())
			return false;
	}
	hidden.owner = getpid();
	hidden.copy = copy;
	/* The program's may lie in the arena. It stays while it is in use: that is where we are. */
	hidden.on_stack = !sigaltstack(&stack, &hidden.stack);
	sigfillset(&action.sa_mask);
	if (sigaction(SIGSEGV, &action, &hidden.action)) {
		if (hidden.on_stack)
			sigaltstack(&hidden.stack, NULL);
		rseq_back();
		return false;
	}
	if (advise(MADV_DONTFORK))
		return true;
	advise(MADV_DOFORK);
	put_back();
	return false;
}

void heap_show(bool child)
{
	if (!child)
		advise(MADV_DOFORK);
	put_back();
}
