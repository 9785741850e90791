// SPDX-License-Identifier: BSD-3-Clause
/*
 * MPI_THREAD_MULTIPLE: threads that call different collectives, each on a communicator of its own;
 * and a rank that always comes last, so that it never waits, keeps no requests. "threads [ROUNDS]",
 * else 60: the MPI by itself is slow where ranks share CPUs.
 */
#include "checked.h"

#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

enum { THREADS = 4, MOST_INTS = 3000, AT_ONCE = 2 };

static const enum case_collective blocking[] = { CASE_ALLREDUCE, CASE_ALLTOALL, CASE_GATHER,
						 CASE_BCAST, CASE_BARRIER };
static const enum case_collective started[AT_ONCE] = { CASE_ALLGATHER, CASE_SCAN };

static int ranks, rounds = 60;

struct thread {
	pthread_t id;
	int number;
	unsigned int calls;
	MPI_Comm comm;
};

/* Sizes differ by thread and round, so that other algorithms run at the same time. */
static struct checked_spec next_spec(struct thread *t, enum case_collective collective, int round)
{
	return (struct checked_spec){ .collective = collective,
				      .elements = 1 + (round * 37 + t->number * 911) % MOST_INTS,
				      .plain = 1 + PLAIN_INTS,
				      .root = round % ranks,
				      .salt = t->calls++ * THREADS + (unsigned int)t->number };
}

/* Two at a time, which other threads' waits may complete. */
static void nonblocking(struct thread *t, int round)
{
	struct checked call[AT_ONCE];
	MPI_Request request[AT_ONCE];

	for (int i = 0; i < AT_ONCE; i++) {
		struct checked_spec spec = next_spec(t, started[i], round);

		checked_open(&call[i], t->comm, &spec);
		checked_start(&call[i]);
		request[i] = call[i].request;
	}
	MPI_Waitall(AT_ONCE, request, MPI_STATUSES_IGNORE);
	for (int i = 0; i < AT_ONCE; i++) {
		checked_verify(&call[i]);
		checked_close(&call[i]);
	}
}

static void *run(void *context)
{
	struct thread *t = context;

	for (int round = 0; round < rounds; round++) {
		for (size_t i = 0; i < sizeof(blocking) / sizeof(blocking[0]); i++) {
			struct checked_spec spec = next_spec(t, blocking[i], round);

			checked_run(t->comm, &spec, FORM_BLOCKING);
		}
		nonblocking(t, round);
	}
	return NULL;
}

enum { LAST = 6000, KEPT = 1 << 20 };

static void come_last(int rank)
{
	MPI_Request request;
	size_t before = 0;

	for (int i = 0; i <= LAST; i++) {
		if (i == LAST / 2)
			before = mallinfo2().uordblks;
		if (rank == ranks - 1)
			usleep(50);
		MPI_Ibarrier(MPI_COMM_WORLD, &request);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
	}
	if (mallinfo2().uordblks > before + KEPT)
		case_fail("after %d nonblocking barriers %zu more bytes are allocated", LAST / 2,
			  mallinfo2().uordblks - before);
}

static void *receive(void *number)
{
	MPI_Recv(number, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	return number;
}

/*
 * The process's first nonblocking collective begins while another thread of rank 0 is in a receive,
 * whose message comes when the others have theirs; and who began it waits for that thread.
 */
static void begin_beside_a_receive(int rank)
{
	enum { IN_TIME_US = 100000, INTS = 100000 };
	static int own[INTS], sums[INTS]; /* each rank adds up a part */
	int number = 0;
	MPI_Request request;
	pthread_t thread;

	if (!rank && pthread_create(&thread, NULL, receive, &number))
		case_fail("no thread");
	usleep(rank ? 3 * IN_TIME_US : IN_TIME_US);
	for (int i = 0; i < INTS; i++)
		own[i] = rank + i;
	MPI_Iallreduce(own, sums, INTS, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
	if (!rank)
		pthread_join(thread, NULL);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	if (rank == 1)
		MPI_Send(&ranks, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
	for (int i = 0; i < INTS; i++)
		if (sums[i] != ranks * (ranks - 1) / 2 + ranks * i)
			case_fail("sum %d is %d", i, sums[i]);
	if (!rank && number != ranks)
		case_fail("the number is %d", number);
}

int main(int argc, char **argv)
{
	static struct thread threads[THREADS];
	int rank;

	case_begin_threads(&argc, &argv, &rank, &ranks);
	if (argc > 1)
		rounds = atoi(argv[1]);
	layouts_make();
	case_barrier(MPI_COMM_WORLD);
	begin_beside_a_receive(rank);
	come_last(rank);
	for (int i = 0; i < THREADS; i++) {
		threads[i].number = i;
		MPI_Comm_dup(MPI_COMM_WORLD, &threads[i].comm);
	}
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i].id, NULL, run, &threads[i]))
			case_fail("no thread");
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i].id, NULL);
		MPI_Comm_free(&threads[i].comm);
	}
	return case_end("threads: %d threads, %d rounds of 7 calls each\n", THREADS, rounds);
}
