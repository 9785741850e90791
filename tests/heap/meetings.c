/* SPDX-License-Identifier: BSD-3-Clause */
/* Children of fork() that are met while they copy the heap: stopped, killed, or stopped while other
 * threads of the parent allocate and free. */
#include "check.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* The child of `parent` that is not us. */
static pid_t find_child(pid_t parent)
{
	char path[64];
	FILE *file;
	int child = 0;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", parent, parent);
	do {
		file = fopen(path, "re");
		CHECK(file);
		while (fscanf(file, "%d", &child) == 1 && child == getpid())
			child = 0;
		fclose(file);
	} while (!child);
	return child;
}

static void has_ones(const char *big, size_t bytes)
{
	for (size_t i = 0; i < bytes; i += 4096)
		CHECK(big[i] == 1);
}

/* Forks without descriptors, and a third process meets the child while it copies the heap. */
static int fork_and_meet(void (*meet)(pid_t child), void (*in_child)(const char *, size_t))
{
	struct rlimit limit = { 3, 3 };
	pid_t child, other, parent = getpid();
	size_t bytes = 300 * MIB;
	char *big = malloc(bytes);
	int status = -1;

	if (access("/proc/thread-self/children", F_OK))
		_Exit(77);
	CHECK(big);
	memset(big, 1, bytes);
	other = fork();
	CHECK(other >= 0);
	if (!other) {
		meet(find_child(parent));
		_exit(0);
	}
	CHECK(!setrlimit(RLIMIT_NOFILE, &limit));
	child = fork();
	CHECK(child >= 0);
	if (!child) {
		in_child(big, bytes);
		_exit(0);
	}
	memset(big, 2, bytes);
	CHECK(waitpid(child, &status, 0) == child);
	reap(other);
	return status;
}

static void stop_for_long(pid_t child)
{
	kill(child, SIGSTOP);
	sleep(8);
	kill(child, SIGCONT);
}

static void kill_child(pid_t child)
{
	kill(child, SIGKILL);
}

/* For longer than the heap once had patience with a child of which nothing is heard. */
static void fork_of_a_stopped_child(void)
{
	CHECK(fork_and_meet(stop_for_long, has_ones) == 0);
}

static void fork_of_a_killed_child(void)
{
	int status = fork_and_meet(kill_child, has_ones);

	CHECK(status == 0 || (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL));
}

/* Of this process and those that it makes. */
static atomic_bool *met;
enum { BEGINNERS = 8 };
static atomic_int waiting, begun;

static void stop_for_a_second(pid_t child)
{
	kill(child, SIGSTOP);
	*met = true;
	sleep(1);
	kill(child, SIGCONT);
}

static void wait_until_it_is_met(void)
{
	const struct timespec look = { .tv_nsec = 100000 };

	waiting++;
	while (!*met)
		nanosleep(&look, NULL);
}

/* Threads that do something while the child is stopped before it has its copy. */
static void begin_threads(pthread_t *thread, int count, void *(*run)(void *))
{
	met = mmap(NULL, sizeof(*met), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(met != MAP_FAILED);
	for (int i = 0; i < count; i++)
		CHECK(!pthread_create(&thread[i], NULL, run, NULL));
	while (waiting < count)
		sched_yield();
}

static void *begin_meanwhile(void *unused)
{
	char *first;

	wait_until_it_is_met();
	first = malloc(1000);
	CHECK(first);
	memset(first, 0xaa, 1000);
	begun++;
	return unused;
}

/* Whether no block of many is another one's. */
static void has_blocks_of_its_own(const char *big, size_t bytes)
{
	enum { BLOCKS = 3000000 };
	static size_t *block[BLOCKS];

	CHECK(begun == 0); /* as this memory was when the child was made */
	has_ones(big, bytes);
	for (size_t i = 0; i < BLOCKS; i++) {
		/* Some of the length that the threads have taken. */
		block[i] = malloc(i % 64 ? 2 * sizeof(size_t) : 1000);
		CHECK(block[i]);
		block[i][0] = i;
		block[i][1] = ~i;
	}
	for (size_t i = 0; i < BLOCKS; i++)
		CHECK(block[i][0] == i && block[i][1] == ~i);
}

/* Threads that take their first memory, after they have waited for so long as they do. */
static void fork_among_threads_that_begin(void)
{
	pthread_t thread[BEGINNERS];

	begin_threads(thread, BEGINNERS, begin_meanwhile);
	CHECK(fork_and_meet(stop_for_a_second, has_blocks_of_its_own) == 0);
	for (int i = 0; i < BEGINNERS; i++)
		CHECK(!pthread_join(thread[i], NULL));
}

enum { SMALL = 1000, SMALLS = 60000, SOME = 40000 }; /* from SOME on behind the first segment */
static size_t *small[SMALLS];

/* Once, before fork(), when the large block is there: pages with room in them, to which what other
 * threads free comes back. */
static void fill_with_gaps(void)
{
	if (small[0])
		return;
	for (size_t i = 0; i < SMALLS; i++) {
		small[i] = malloc(SMALL);
		CHECK(small[i]);
		*small[i] = i;
	}
	for (size_t i = SOME; i < SMALLS; i += 8) {
		free(small[i]);
		small[i] = NULL;
	}
}

static void *free_meanwhile(void *unused)
{
	wait_until_it_is_met();
	/* Those first that are copied last. */
	for (size_t i = SMALLS; i-- > SOME;)
		free(small[i]);
	return unused;
}

/* How many of new blocks are old ones. */
static size_t count_again(void)
{
	size_t again = 0;

	for (size_t i = 0; i < SMALLS; i++) {
		size_t *block = malloc(SMALL);

		CHECK(block);
		memset(block, 0xff, SMALL);
	}
	for (size_t i = SOME; i < SMALLS; i++)
		again += small[i] && *small[i] != i;
	return again;
}

static void has_what_is_freed_meanwhile(const char *big, size_t bytes)
{
	has_ones(big, bytes);
	CHECK(count_again() == 0);
}

/* Another thread frees what is in use in the child, and free here when that has its copy. */
static void fork_among_threads_that_free(void)
{
	pthread_t thread;

	CHECK(!pthread_atfork(fill_with_gaps, NULL, NULL));
	begin_threads(&thread, 1, free_meanwhile);
	CHECK(fork_and_meet(stop_for_a_second, has_what_is_freed_meanwhile) == 0);
	CHECK(!pthread_join(thread, NULL));
	CHECK(count_again() > (SMALLS - SOME) / 2);
}

const struct scenario meeting_scenarios[] = {
	{ "fork_of_a_stopped_child", fork_of_a_stopped_child },
	{ "fork_of_a_killed_child", fork_of_a_killed_child },
	{ "fork_among_threads_that_begin", fork_among_threads_that_begin },
	{ "fork_among_threads_that_free", fork_among_threads_that_free },
	{ NULL, NULL },
};
