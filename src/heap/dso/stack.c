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

/* Whether a child can be told from its parent where the thread itself is in the arena. */
static bool can_hide_thread(void)
{
	bool locked = heap_lock(), can = heap_can_hide_thread();

	if (locked)
		heap_unlock();
	return can;
}

/* A call of the C library's: all take integers and pointers, and none minds some too many. */
struct call {
	int function;
	long arguments[4];
};
typedef int any_function(long a, long b, long c, long d);

static int make(const void *argument)
{
	const struct call *call = argument;
	const long *a = call->arguments;
	any_function *real = find(call->function);
	int result, error;

	if (!real) {
		errno = ENOSYS;
		return -1;
	}
	if (call->function != UNDERSCORE_FORK)
		return real(a[0], a[1], a[2], a[3]);
	/* It runs no handlers, and the child must have its copy all the same. */
	heap_before_fork();
	result = real(0, 0, 0, 0);
	error = errno;
	if (result)
		heap_after_fork_in_parent();
	else
		heap_after_fork_in_child();
	errno = error;
	return result;
}

static int make_apart(const struct call *call)
{
	uint8_t *stack;
	int result;

	if (heap_has_thread() && !can_hide_thread()) {
		raw_say("onecopy: error: fork() from a thread whose stack is memory of malloc was "
			"refused, as under the shared heap it needs a glibc before 2.41, "
			"prctl(PR_GET_TID_ADDRESS), the C library's rseq area alone, and the heap's "
			"descriptor; fork from another thread, take the stack by mmap, or run without --shared-heap\n");
		errno = ENOTSUP;
		return -1;
	}
	if (!heap_has(__builtin_frame_address(0), 1))
		return make(call);
	stack = raw_mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1);
	if (stack == MAP_FAILED) {
		errno = ENOMEM;
		return -1;
	}
	raw_mprotect(stack, GUARD_BYTES, PROT_NONE);
	result = oc_heap_call_on(stack + STACK_BYTES, make, call);
	/* errno is fork()'s. */
	raw_call(SYS_munmap, (long)stack, STACK_BYTES, 0, 0, 0, 0);
	return result;
}
#define APART(...) make_apart(&(const struct call){ __VA_ARGS__ })

pid_t oc_heap_fork(void);

pid_t oc_heap_fork(void)
{
	return APART(FORK, { 0 });
}

OC_EXPORT pid_t fork(void) __attribute__((alias("oc_heap_fork")));
OC_EXPORT pid_t __fork(void) __attribute__((alias("oc_heap_fork")));
OC_EXPORT pid_t __libc_fork(void) __attribute__((alias("oc_heap_fork")));

OC_EXPORT pid_t _Fork(void);

OC_EXPORT pid_t _Fork(void)
{
	return APART(UNDERSCORE_FORK, { 0 });
}

OC_EXPORT int daemon(int keep_directory, int keep_streams)
{
	return APART(DAEMON, { keep_directory, keep_streams });
}

OC_EXPORT int forkpty(int *master, char *name, const struct termios *terminal,
		      const struct winsize *window)
{
	return APART(FORKPTY, { (long)master, (long)name, (long)terminal, (long)window });
}
