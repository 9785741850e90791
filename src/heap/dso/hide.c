/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The arena kept out of a child of fork() until it has its own copy.
 *
 * Before our handler runs in the child, the C library has run there: it resets the locks of streams
 * and clears what other threads have under pthread keys, and both may lie in malloc's memory. In
 * pages that are still the parent's it would do that to the parent. So the child begins with a hole
 * there (MADV_DONTFORK), and whoever touches it first, in the C library or in another library's
 * handler, makes the copy, from a handler of SIGSEGV that is there for the time of the fork.
 */
#include "dso.h"
#include "raw.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>

/* The largest frame of a signal by far is 12 KiB (AMX). */
#define STACK_BYTES ((size_t)64 << 10)

/* Of the one fork under way, which has the lock of the arena. */
static struct {
	pid_t owner;
	void (*copy)(void);
	struct sigaction action;
	stack_t stack;
	bool on_stack; /* `stack` is to be put back */
} hidden;
static uint8_t own_stack[STACK_BYTES] __attribute__((aligned(64)));

/* What another thread of the parent would have got without us. */
static void pass_on(int signal, siginfo_t *info, void *context)
{
	if (hidden.action.sa_flags & SA_SIGINFO) {
		hidden.action.sa_sigaction(signal, info, context);
	} else if (hidden.action.sa_handler == SIG_DFL || hidden.action.sa_handler == SIG_IGN) {
		sigaction(signal, &hidden.action, NULL);
		raise(signal);
	} else {
		hidden.action.sa_handler(signal);
	}
}

static void touched(int signal, siginfo_t *info, void *context)
{
	int error = errno;

	if (getpid() != hidden.owner && heap_has(info->si_addr, 1))
		hidden.copy();
	else
		pass_on(signal, info, context);
	errno = error;
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
}

bool heap_hide(void (*copy)(void))
{
	struct sigaction action = { .sa_sigaction = touched, .sa_flags = SA_SIGINFO | SA_ONSTACK };
	stack_t stack = { .ss_sp = own_stack, .ss_size = sizeof(own_stack) };

	/* Where thread and stack are, there must not be a hole. */
	if (heap_has((const void *)pthread_self(), 1) || heap_has(__builtin_frame_address(0), 1))
		return false;
	hidden.owner = getpid();
	hidden.copy = copy;
	/* The program's may lie in the arena. It stays while it is in use: that is where we are. */
	hidden.on_stack = !sigaltstack(&stack, &hidden.stack);
	sigfillset(&action.sa_mask);
	if (sigaction(SIGSEGV, &action, &hidden.action)) {
		if (hidden.on_stack)
			sigaltstack(&hidden.stack, NULL);
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
