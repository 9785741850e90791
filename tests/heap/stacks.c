/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fork() where the stack is memory of malloc: a thread's, in which lies the thread itself, too; a
 * coroutine's; and that of a signal handler. Parent and child write all over theirs at once.
 */
#include "check.h"

#include <errno.h>
#include <gnu/libc-version.h>
#include <pthread.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>
#if __has_include(<sys/rseq.h>)
#include <sys/rseq.h>
#endif

enum { STACK = 1 << 20, DEPTH = 100, WIDTH = 2048, ROUNDS = 20, THREADS = 4 };

static _Thread_local char own[8192];
static _Thread_local volatile sig_atomic_t signals;
static pid_t (*how)(void) = fork;
static pid_t first; /* the process that the scenario began in */
static bool deeper;

static void count(int signal)
{
	(void)signal;
	signals++;
}

static void check_filled(const volatile char *at, size_t bytes, int value)
{
	for (size_t i = 0; i < bytes; i++)
		CHECK(at[i] == value);
}

/* Frames, and what they hold when those beneath have returned. */
static int scribble(int depth, int value)
{
	volatile char frame[WIDTH];

	for (int i = 0; i < WIDTH; i++)
		frame[i] = (char)value;
	if (depth)
		CHECK(scribble(depth - 1, value) == depth - 1);
	check_filled(frame, WIDTH, value);
	return depth;
}

/* The kernel writes there again which processor this is. */
static void check_rseq(void)
{
#if __has_include(<sys/rseq.h>)
	const volatile struct rseq *area =
		(void *)((char *)__builtin_thread_pointer() + __rseq_offset);

	CHECK(!__rseq_size || (int)area->cpu_id >= 0);
#endif
}

/* The C library has the thread's id right: it is the owner of a mutex, and where a signal goes. */
static void check_thread(void)
{
	pthread_mutexattr_t attributes;
	pthread_mutex_t mutex;
	int before = signals;

	CHECK(!pthread_mutexattr_init(&attributes));
	CHECK(!pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK));
	CHECK(!pthread_mutex_init(&mutex, &attributes));
	CHECK(!pthread_mutex_lock(&mutex) && mutex.__data.__owner == gettid());
	CHECK(pthread_mutex_lock(&mutex) == EDEADLK && !pthread_mutex_unlock(&mutex));
	CHECK(!pthread_kill(pthread_self(), SIGUSR1) && signals > before);
	CHECK(close(-1) == -1 && errno == EBADF);
	check_rseq();
}

static void use(char *heap, int value)
{
	for (int round = 0; round < ROUNDS; round++) {
		memset(own, value, sizeof(own));
		memset(heap, value, MIB);
		check_thread();
		CHECK(scribble(DEPTH, value) == DEPTH);
		check_filled(own, sizeof(own), value);
		check_filled(heap, MIB, value);
	}
}

/* 0 in the child, as fork() */
static pid_t fork_and_use(int value)
{
	volatile char frame[WIDTH];
	char *heap = malloc(MIB);
	pid_t child;

	CHECK(heap);
	memset(heap, value, MIB);
	memset(own, value, sizeof(own));
	for (int i = 0; i < WIDTH; i++)
		frame[i] = (char)value;
	child = how();
	CHECK(child >= 0);
	check_filled(frame, WIDTH, value);
	check_filled(own, sizeof(own), value);
	check_filled(heap, MIB, value);
	if (child) {
		use(heap, value + 1);
		reap(child);
	} else {
		use(heap, value + 2);
	}
	check_filled(frame, WIDTH, value);
	free(heap);
	return child;
}

/* The child returns from all that it is in, as the parent does. */
static void fork_here(void)
{
	for (int i = 0; i < 3; i++) {
		if (fork_and_use(10 * i + 1))
			continue;
		if (deeper)
			CHECK(fork_and_use(100) >= 0);
		return;
	}
}

/* No child, and nothing is written over. */
static void refused_here(void)
{
	for (int i = 0; i < 3; i++) {
		errno = 0;
		CHECK(how() == -1 && errno == ENOTSUP);
		check_thread();
	}
}

static void *refused_body(void *argument)
{
	refused_here();
	return argument;
}

/* From 2.41 on the C library's child touches its thread before it can be given to it. */
static bool is_refused_anyway(void)
{
	int major = 0, minor = 0;

	CHECK(sscanf(gnu_get_libc_version(), "%d.%d", &major, &minor) == 2);
	return major * 1000 + minor >= 2041;
}

static void *thread_body(void *argument)
{
	CHECK(in_arena((const void *)own, sizeof(own)));
	if (is_refused_anyway())
		return refused_body(argument);
	fork_here();
	/* In a child it is the last one: the process ends with 0. */
	return argument;
}

static void begin(void)
{
	struct sigaction action = { .sa_handler = count, .sa_flags = SA_RESTART };

	first = getpid();
	CHECK(!sigaction(SIGUSR1, &action, NULL) && !sigaction(SIGALRM, &action, NULL));
}

static void on_threads(int threads, void *(*body)(void *))
{
	char *stack[THREADS];
	pthread_attr_t attributes;
	pthread_t thread[THREADS];

	begin();
	CHECK(!pthread_attr_init(&attributes));
	for (int i = 0; i < threads; i++) {
		stack[i] = malloc(STACK);
		CHECK(stack[i] && !pthread_attr_setstack(&attributes, stack[i], STACK));
		CHECK(!pthread_create(&thread[i], &attributes, body, NULL));
	}
	for (int i = 0; i < threads; i++) {
		CHECK(!pthread_join(thread[i], NULL));
		free(stack[i]);
	}
}

static void on_a_thread(void)
{
	on_threads(1, thread_body);
}

static void on_a_coroutine(void)
{
	ucontext_t here, there;
	char *stack = malloc(STACK);

	begin();
	CHECK(stack && in_arena(stack, STACK) && !getcontext(&there));
	there.uc_stack.ss_sp = stack;
	there.uc_stack.ss_size = STACK;
	there.uc_link = &here;
	makecontext(&there, fork_here, 0);
	CHECK(!swapcontext(&here, &there));
	if (getpid() != first)
		_exit(0);
	free(stack);
}

static void handler(int signal)
{
	(void)signal;
	fork_here();
}

static void in_a_handler(void)
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = SA_ONSTACK };
	stack_t stack = { .ss_sp = malloc(STACK), .ss_size = STACK };

	begin();
	CHECK(!sigaltstack(&stack, NULL) && !sigaction(SIGUSR2, &action, NULL));
	CHECK(!raise(SIGUSR2));
	if (getpid() != first)
		_exit(0);
}

static void fork_on_a_thread_of_malloc(void)
{
	on_a_thread();
}

static void fork_on_threads_of_malloc(void)
{
	on_threads(THREADS, thread_body);
}

static void fork_on_a_coroutine_of_malloc(void)
{
	on_a_coroutine();
}

static void fork_in_a_handler_on_malloc(void)
{
	in_a_handler();
}

static void fork_on_malloc_by_children(void)
{
	deeper = true;
	on_a_thread();
	on_a_coroutine();
}

static void fork_on_malloc_without_descriptors(void)
{
	struct rlimit limit = { 3, 3 };

	CHECK(!setrlimit(RLIMIT_NOFILE, &limit));
	on_a_coroutine();
	on_a_thread();
}

/* The child has a file of its own then, and forks from a stack in that. */
static void fork_on_malloc_where_memory_is_counted(void)
{
	struct rlimit limit = { 256 * MIB, 256 * MIB }, files = { MIB, RLIM_INFINITY };

	CHECK(!setrlimit(RLIMIT_DATA, &limit) && !setrlimit(RLIMIT_FSIZE, &files));
	fork_on_malloc_by_children();
}

static void fork_on_malloc_among_signals(void)
{
	struct itimerval often = { { 0, 500 }, { 0, 500 } };

	begin();
	CHECK(!setitimer(ITIMER_REAL, &often, NULL));
	on_a_coroutine();
	on_a_thread();
}

static void fork_by_other_names(void)
{
	how = _Fork;
	on_a_coroutine();
	on_a_thread();
	fork_here();
	if (getpid() != first)
		_exit(0);
}

static pid_t fork_a_terminal(void)
{
	int terminal;

	return forkpty(&terminal, NULL, NULL, NULL);
}

static void forkpty_on_malloc(void)
{
	how = fork_a_terminal;
	on_a_coroutine();
}

/* Nobody can say where the C library has the thread's id, as the descriptor is gone. */
static void fork_on_a_thread_of_malloc_refused(void)
{
	closefrom(3);
	on_threads(1, refused_body);
	/* The stack alone needs no descriptor. */
	on_a_coroutine();
}

const struct scenario stack_scenarios[] = {
	{ "fork_on_a_thread_of_malloc", fork_on_a_thread_of_malloc },
	{ "fork_on_threads_of_malloc", fork_on_threads_of_malloc },
	{ "fork_on_a_coroutine_of_malloc", fork_on_a_coroutine_of_malloc },
	{ "fork_in_a_handler_on_malloc", fork_in_a_handler_on_malloc },
	{ "fork_on_malloc_by_children", fork_on_malloc_by_children },
	{ "fork_on_malloc_without_descriptors", fork_on_malloc_without_descriptors },
	{ "fork_on_malloc_where_memory_is_counted", fork_on_malloc_where_memory_is_counted },
	{ "fork_on_malloc_among_signals", fork_on_malloc_among_signals },
	{ "fork_by_other_names", fork_by_other_names },
	{ "forkpty_on_malloc", forkpty_on_malloc },
	{ "fork_on_a_thread_of_malloc_refused", fork_on_a_thread_of_malloc_refused },
	{ NULL, NULL },
};
