/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fork() in ranks whose malloc is a shared heap: at once after MPI_Init, while a collective is
 * outstanding, from a thread, also where its stack is of malloc, and in the child of a fork. The
 * child has what the parent had, and neither sees what the other does to it.
 */
#include "case.h"

#include <gnu/libc-version.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BYTES = 4 << 20, ROUNDS = 4, WORDS = 1 << 18, STACK = 1 << 20 };

static char *memory;
static int rank, ranks;

static int is_all(const char *at, int value)
{
	for (size_t i = 0; i < BYTES; i += 4096)
		if (at[i] != value)
			return 0;
	return 1;
}

/* What a child ends with when all is well. */
enum { WELL = 5 };

static int in_child(int deeper);

/* Forks; parent and child then each change their own memory, and neither sees the other's. */
static void check_fork(int value, int deeper)
{
	int status = -1, go[2];
	char byte = 0;
	pid_t child;

	memset(memory, value, BYTES);
	if (pipe(go))
		case_fail("no pipe");
	child = fork();
	if (!child) {
		if (read(go[0], &byte, 1) != 1 || !is_all(memory, value))
			_exit(1);
		_exit(in_child(deeper));
	}
	memset(memory, value + 1, BYTES);
	if (child < 0 || write(go[1], &byte, 1) != 1 || waitpid(child, &status, 0) != child)
		case_fail("fork or waitpid failed");
	if (!WIFEXITED(status) || WEXITSTATUS(status) != WELL)
		case_fail("fork %d: the child ended with status 0x%x", value, (unsigned int)status);
	if (!is_all(memory, value + 1))
		case_fail("fork %d: the child wrote into its parent's memory", value);
	close(go[0]);
	close(go[1]);
}

static int in_child(int deeper)
{
	char *more = malloc(BYTES);

	if (!more)
		return 2;
	memset(more, 1, BYTES);
	memset(memory, 100, BYTES);
	if (deeper)
		check_fork(50, 0);
	free(more);
	return WELL;
}

static void *fork_in_thread(void *argument)
{
	check_fork(*(int *)argument, 1);
	return NULL;
}

/* stack: NULL, or where the thread has its own. */
static void fork_from_a_thread(int value, void *stack)
{
	pthread_attr_t attributes;
	pthread_t thread;

	pthread_attr_init(&attributes);
	if (stack && pthread_attr_setstack(&attributes, stack, STACK))
		case_fail("no thread on a stack of malloc");
	if (pthread_create(&thread, &attributes, fork_in_thread, &value) ||
	    pthread_join(thread, NULL))
		case_fail("no thread");
	pthread_attr_destroy(&attributes);
	free(stack);
}

/* Such a fork() is refused under glibc 2.41 and newer (src/heap/dso/hide.c). */
static int is_on_a_stack_of_malloc(int value)
{
	int major = 0, minor = 0;

	return value % 8 == 0 && sscanf(gnu_get_libc_version(), "%d.%d", &major, &minor) == 2 &&
	       major * 1000 + minor < 2041;
}

static void fork_beside_a_collective(int value)
{
	int *send = malloc(WORDS * sizeof(*send)), *sum = malloc(WORDS * sizeof(*sum));
	MPI_Request request;

	if (!send || !sum)
		case_fail("no memory");
	for (int i = 0; i < WORDS; i++)
		send[i] = rank + i;
	MPI_Iallreduce(send, sum, WORDS, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
	case_count(CASE_ALLREDUCE, 1);
	if (value % 4)
		check_fork(value, 1);
	else
		fork_from_a_thread(value, is_on_a_stack_of_malloc(value) ? malloc(STACK) : NULL);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	for (int i = 0; i < WORDS; i++)
		if (sum[i] != ranks * i + ranks * (ranks - 1) / 2)
			case_fail("element %d of the sum is %d", i, sum[i]);
	free(send);
	free(sum);
}

int main(int argc, char **argv)
{
	case_begin_threads(&argc, &argv, &rank, &ranks);
	memory = malloc(BYTES);
	if (!memory)
		case_fail("no memory");
	check_fork(9, 1);
	/* There is a team then, so that nonblocking calls are served. */
	case_barrier(MPI_COMM_WORLD);
	for (int round = 0; round < ROUNDS; round++)
		fork_beside_a_collective(2 * (round + 1));
	free(memory);
	return case_end("forks: %d of fork() in each rank%s\n", 2 * (ROUNDS + 1),
			is_on_a_stack_of_malloc(8) ? "" :
						     "; none on a stack of malloc, which glibc "
						     "from 2.41 on makes impossible");
}
