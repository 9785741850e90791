/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fork() from a stack that is memory of malloc.
 *
 * The parent goes on in fork() while the child copies the arena, so on a stack in the arena it
 * would write over frames that the child is about to return to. Our fork() goes to a stack of
 * private memory first, where both have frames of their own, and comes back when the child has its
 * copy: meanwhile nobody is on the other one. Such stacks are those of coroutines, of threads that
 * were given one (pthread_attr_setstack()), and of signal handlers (sigaltstack()).
 *
 * The C library's own functions call its fork() directly, so they are here, too.
 */
#include "dso.h"
#include "raw.h"

#include <errno.h>
#include <pty.h>

#define STACK_BYTES ((size_t)1 << 20) /* handlers of pthread_atfork() run on it */
#define GUARD_BYTES ((size_t)4096)

enum { FORK, UNDERSCORE_FORK, DAEMON, FORKPTY, FUNCTIONS };
static const char *const names[FUNCTIONS] = { "fork", "_Fork", "daemon", "forkpty" };
static void *_Atomic next[FUNCTIONS];

/* Threads that search at the same time find the same. */
static void *find(int function)
{
	void *found = atomic_load_explicit(&next[function], memory_order_relaxed);

	if (!found) {
		found = heap_find_next(names[function]);
		atomic_store_explicit(&next[function], found, memory_order_relaxed);
	}
	return found;
}

void heap_find_forks(void)
{
	for (int i = 0; i < FUNCTIONS; i++)
		find(i);
}

/* function(arguments) on another stack. The frame is found by rbp, so debuggers and exceptions see
 * through it. */
int oc_heap_call_on(void *top, int (*function)(const void *), const void *arguments);
__asm__(".pushsection .text\n"
	".type oc_heap_call_on, @function\n"
	".hidden oc_heap_call_on\n"
	".globl oc_heap_call_on\n"
	"oc_heap_call_on:\n"
	"	.cfi_startproc\n"
	"	endbr64\n"
	"	push %rbp\n"
	"	.cfi_def_cfa_offset 16\n"
	"	.cfi_offset %rbp, -16\n"
	"	mov %rsp, %rbp\n"
	"	.cfi_def_cfa_register %rbp\n"
	"	mov %rdi, %rsp\n"
	"	mov %rdx, %rdi\n"
	"	call *%rsi\n"
	"	leave\n"
	"	.cfi_def_cfa %rsp, 8\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size oc_heap_call_on, . - oc_heap_call_on\n"
	".popsection\n");

static int refuse(int error, const char *text, size_t bytes)
{
	raw_call(SYS_write, STDERR_FILENO, (long)text, (long)bytes, 0, 0, 0);
	errno = error;
	return -1;
}
#define REFUSE(error, text) refuse(error, text, sizeof(text) - 1)

/* Whether a child can be told from its parent where the thread itself is in the arena. */
static bool can_hide_thread(void)
{
	bool locked = heap_lock(), can = heap_can_hide_thread();

	if (locked)
		heap_unlock();
	return can;
}

static int apart(int (*function)(const void *), const void *arguments)
{
	uint8_t *stack;
	int result;

	if (heap_has_thread() && !can_hide_thread())
		return REFUSE(
			ENOTSUP,
			"onecopy: error: fork() from a thread whose stack is memory of malloc "
			"was refused, as under the shared heap it needs prctl"
			"(PR_GET_TID_ADDRESS), the C library's rseq area alone, and the "
			"heap's descriptor; fork from another thread, take the stack by "
			"mmap, or run without --shared-heap\n");
	if (!heap_has(__builtin_frame_address(0), 1))
		return function(arguments);
	stack = raw_mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1);
	if (stack == MAP_FAILED) {
		errno = ENOMEM;
		return -1;
	}
	raw_mprotect(stack, GUARD_BYTES, PROT_NONE);
	result = oc_heap_call_on(stack + STACK_BYTES, function, arguments);
	/* errno is fork()'s. */
	raw_call(SYS_munmap, (long)stack, STACK_BYTES, 0, 0, 0, 0);
	return result;
}

static int missing(void)
{
	errno = ENOSYS;
	return -1;
}

static int call_fork(const void *unused)
{
	int (*real)(void) = find(FORK);

	(void)unused;
	return real ? real() : missing();
}

/* It runs no handlers, and the child must have its copy all the same. */
static int call_underscore_fork(const void *unused)
{
	int (*real)(void) = find(UNDERSCORE_FORK);
	int child, error;

	(void)unused;
	if (!real)
		return missing();
	heap_before_fork();
	child = real();
	error = errno;
	if (child)
		heap_after_fork_in_parent();
	else
		heap_after_fork_in_child();
	errno = error;
	return child;
}

struct daemon {
	int keep_directory, keep_streams;
};

static int call_daemon(const void *arguments)
{
	const struct daemon *given = arguments;
	int (*real)(int, int) = find(DAEMON);

	return real ? real(given->keep_directory, given->keep_streams) : missing();
}

struct forkpty {
	int *master;
	char *name;
	const struct termios *terminal;
	const struct winsize *window;
};

static int call_forkpty(const void *arguments)
{
	const struct forkpty *given = arguments;
	int (*real)(int *, char *, const struct termios *, const struct winsize *) = find(FORKPTY);

	return real ? real(given->master, given->name, given->terminal, given->window) : missing();
}

pid_t oc_heap_fork(void);

pid_t oc_heap_fork(void)
{
	return apart(call_fork, NULL);
}

OC_EXPORT pid_t fork(void) __attribute__((alias("oc_heap_fork")));
OC_EXPORT pid_t __fork(void) __attribute__((alias("oc_heap_fork")));
OC_EXPORT pid_t __libc_fork(void) __attribute__((alias("oc_heap_fork")));

OC_EXPORT pid_t _Fork(void);

OC_EXPORT pid_t _Fork(void)
{
	return apart(call_underscore_fork, NULL);
}

OC_EXPORT int daemon(int keep_directory, int keep_streams)
{
	const struct daemon given = { keep_directory, keep_streams };

	return apart(call_daemon, &given);
}

OC_EXPORT int forkpty(int *master, char *name, const struct termios *terminal,
		      const struct winsize *window)
{
	const struct forkpty given = { master, name, terminal, window };

	return apart(call_forkpty, &given);
}
