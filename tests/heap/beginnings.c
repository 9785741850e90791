/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a child of fork() does before any handler of ours runs in it must not reach its parent, and
 * works with its own memory.
 */
#include "check.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define KEYS 64 /* more than a thread has room for in itself: the others lie in malloc's memory */

static pthread_key_t keys[KEYS];
static sem_t filled, looked;

static void fork_a_child(void)
{
	pid_t child = fork();

	CHECK(child >= 0);
	if (!child)
		_exit(0);
	reap(child);
}

static void *keeper(void *argument)
{
	for (uintptr_t i = 0; i < KEYS; i++)
		CHECK(!pthread_setspecific(keys[i], (void *)(i + 1)));
	sem_post(&filled);
	sem_wait(&looked);
	for (uintptr_t i = 0; i < KEYS; i++)
		CHECK(pthread_getspecific(keys[i]) == (void *)(i + 1));
	return argument;
}

/* The C library clears them in the child. */
static void fork_keeps_keys_of_other_threads(void)
{
	pthread_t thread;

	for (int i = 0; i < KEYS; i++)
		CHECK(!pthread_key_create(&keys[i], NULL));
	CHECK(!sem_init(&filled, 0, 0) && !sem_init(&looked, 0, 0));
	CHECK(!pthread_create(&thread, NULL, keeper, NULL));
	sem_wait(&filled);
	fork_a_child();
	sem_post(&looked);
	CHECK(!pthread_join(thread, NULL));
}

static FILE *stream;
static _Atomic int inside;
static _Atomic bool stop;

static void *writer(void *argument)
{
	while (!stop) {
		flockfile(stream);
		CHECK(!inside++);
		for (volatile int i = 0; i < 2000; i++)
			;
		inside--;
		funlockfile(stream);
	}
	return argument;
}

/* The C library resets them in the child, whoever holds them. */
static void fork_keeps_locks_of_streams(void)
{
	pthread_t thread[2];

	stream = fopen("/dev/null", "w");
	CHECK(stream && in_arena(stream, 1));
	for (int i = 0; i < 2; i++)
		CHECK(!pthread_create(&thread[i], NULL, writer, NULL));
	for (int round = 0; round < 100; round++) {
		pid_t child = fork();

		CHECK(child >= 0);
		if (!child)
			_exit(0);
		reap(child);
	}
	stop = true;
	for (int i = 0; i < 2; i++)
		CHECK(!pthread_join(thread[i], NULL));
}

/* Private memory is counted before it is touched, and an arena is more than there may be. */
static void fork_where_memory_is_counted(void)
{
	struct rlimit limit = { 256 * MIB, 256 * MIB };
	char *text = strdup("before");
	pid_t child;

	CHECK(!setrlimit(RLIMIT_DATA, &limit));
	child = fork();
	CHECK(child >= 0);
	if (!child) {
		char *more = malloc(10 * MIB);

		CHECK(more && !strcmp(text, "before"));
		memset(more, 1, 10 * MIB);
		strcpy(text, "child");
		CHECK(in_arena(more, 10 * MIB));
		/* Again from there: a file that is the grandchild's. */
		child = fork();
		CHECK(child >= 0);
		if (!child) {
			CHECK(!strcmp(text, "child"));
			strcpy(text, "end");
			_exit(0);
		}
		reap(child);
		CHECK(!strcmp(text, "child"));
		_exit(0);
	}
	reap(child);
	CHECK(!strcmp(text, "before"));
}

static ssize_t write_with_a_block(void *cookie, const char *text, size_t bytes)
{
	(void)cookie;
	(void)text;
	sem_post(&filled);
	usleep(50000); /* the other one is inside fork() then */
	free(malloc(40 * MIB));
	return (ssize_t)bytes;
}

static void *flusher(void *argument)
{
	FILE *own = fopencookie(NULL, "w", (cookie_io_functions_t){ .write = write_with_a_block });

	CHECK(own && fputc('x', own) == 'x' && !fflush(NULL) && !fclose(own));
	return argument;
}

/* fork() waits for the C library's lock of all streams, which is this thread's, and it for fork().
 * Of more than 32 MiB mimalloc 3 has no block. */
static void fork_beside_a_block_under_a_lock(void)
{
	pthread_t thread;

	CHECK(!sem_init(&filled, 0, 0) && !pthread_create(&thread, NULL, flusher, NULL));
	sem_wait(&filled);
	fork_a_child();
	CHECK(!pthread_join(thread, NULL));
}

static volatile sig_atomic_t faults;

static void fault(int signal)
{
	(void)signal;
	faults++;
}

static void fork_keeps_signals(void)
{
	struct sigaction action = { .sa_handler = fault }, now;
	static char memory[1 << 16];
	stack_t stack = { .ss_sp = memory, .ss_size = sizeof(memory) };
	char *text = strdup("before");
	pid_t child;

	CHECK(!sigaction(SIGSEGV, &action, NULL) && !sigaltstack(&stack, NULL));
	child = fork();
	CHECK(child >= 0);
	CHECK(!strcmp(text, "before"));
	CHECK(!sigaction(SIGSEGV, NULL, &now) && now.sa_handler == fault);
	CHECK(!sigaltstack(NULL, &stack) && stack.ss_sp == memory);
	CHECK(!faults && !raise(SIGSEGV) && faults == 1);
	if (!child)
		_exit(0);
	reap(child);
}

const struct scenario beginning_scenarios[] = {
	{ "fork_keeps_keys_of_other_threads", fork_keeps_keys_of_other_threads },
	{ "fork_keeps_locks_of_streams", fork_keeps_locks_of_streams },
	{ "fork_beside_a_block_under_a_lock", fork_beside_a_block_under_a_lock },
	{ "fork_where_memory_is_counted", fork_where_memory_is_counted },
	{ "fork_keeps_signals", fork_keeps_signals },
	{ NULL, NULL },
};
