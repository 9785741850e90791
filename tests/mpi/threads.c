/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_THREAD_MULTIPLE: threads that call different collectives, each on a communicator of its own.
 */
#include "case.h"

#include <pthread.h>

enum { THREADS = 4, ROUNDS = 60, COUNT = 3000, MOST_RANKS = 16 };

static int rank, ranks;

struct thread {
	pthread_t id;
	int number;
	MPI_Comm comm;
	int in[COUNT * MOST_RANKS], out[COUNT * MOST_RANKS];
};
static struct thread threads[THREADS];

static int value(const struct thread *t, int round, int from, int i)
{
	return t->number * 1000 + round * 7 + from * 100 + i;
}

static void check(const struct thread *t, int round, int is, int should, const char *what)
{
	if (is != should)
		case_fail("thread %d, round %d: %s gave %d instead of %d", t->number, round, what,
			  is, should);
}

/* Two at a time, which other threads' waits may complete. */
static void nonblocking(struct thread *t, int round, int count)
{
	MPI_Request request[2];
	int sum = 0;

	for (int i = 0; i < count; i++)
		t->in[i] = value(t, round, rank, i);
	MPI_Iallgather(t->in, count, MPI_INT, t->out, count, MPI_INT, t->comm, &request[0]);
	MPI_Iscan(&round, &sum, 1, MPI_INT, MPI_SUM, t->comm, &request[1]);
	case_count(CASE_ALLGATHER, ranks > 1);
	case_count(CASE_SCAN, ranks > 1);
	MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
	check(t, round, sum, round * (rank + 1), "Iscan");
	for (int i = 0; i < count * ranks; i++)
		check(t, round, t->out[i], value(t, round, i / count, i % count), "Iallgather");
}

/* Sizes differ by thread and round, so that other algorithms run at the same time. */
static void one_round(struct thread *t, int round)
{
	int count = 1 + (round * 37 + t->number * 911) % COUNT, root = round % ranks;

	for (int i = 0; i < count * ranks; i++)
		t->in[i] = value(t, round, rank, i);
	MPI_Allreduce(t->in, t->out, count, MPI_INT, MPI_SUM, t->comm);
	for (int i = 0; i < count; i++)
		check(t, round, t->out[i],
		      ranks * value(t, round, 0, i) + 100 * (ranks * (ranks - 1) / 2), "Allreduce");
	MPI_Alltoall(t->in, count, MPI_INT, t->out, count, MPI_INT, t->comm);
	for (int i = 0; i < count * ranks; i++)
		check(t, round, t->out[i], value(t, round, i / count, rank * count + i % count),
		      "Alltoall");
	MPI_Gather(t->in, count, MPI_INT, t->out, count, MPI_INT, root, t->comm);
	for (int i = 0; rank == root && i < count * ranks; i++)
		check(t, round, t->out[i], value(t, round, i / count, i % count), "Gather");
	MPI_Bcast(t->in, count, MPI_INT, root, t->comm);
	for (int i = 0; i < count; i++)
		check(t, round, t->in[i], value(t, round, root, i), "Bcast");
	MPI_Barrier(t->comm);
	case_count(CASE_ALLREDUCE, ranks > 1);
	case_count(CASE_ALLTOALL, ranks > 1);
	case_count(CASE_GATHER, ranks > 1);
	case_count(CASE_BCAST, ranks > 1);
	case_count(CASE_BARRIER, ranks > 1);
	nonblocking(t, round, count);
}

static void *run(void *context)
{
	for (int round = 0; round < ROUNDS; round++)
		one_round(context, round);
	return NULL;
}

int main(int argc, char **argv)
{
	int provided;

	case_begin_threads(&argc, &argv, &provided, &rank, &ranks);
	if (provided != MPI_THREAD_MULTIPLE || ranks > MOST_RANKS)
		case_fail("this test needs MPI_THREAD_MULTIPLE and at most %d ranks", MOST_RANKS);
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
	return case_end("threads: %d threads, %d rounds of 7 calls each\n", THREADS, ROUNDS);
}
