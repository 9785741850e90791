/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_THREAD_MULTIPLE: an operation of the program waits for what another thread holds while that
 * one starts a collective: a nonblocking call is local, whatever other threads are in.
 */
#include "case.h"

#include <pthread.h>
#include <unistd.h>

enum { MOST = 20000 };

static const int counts[] = { 1, 300, MOST };
enum { ROUNDS = 3 * sizeof(counts) / sizeof(counts[0]) };

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
static int inside; /* the operation has begun in this round; atomic */

static void locks_and_adds(void *in, void *inout, int *count, MPI_Datatype *type)
{
	const int *a = in;
	int *b = inout;

	(void)type;
	if (!__atomic_exchange_n(&inside, 1, __ATOMIC_ACQ_REL)) {
		pthread_mutex_lock(&held);
		pthread_mutex_unlock(&held);
	}
	for (int i = 0; i < *count; i++)
		b[i] += a[i];
}

struct reduction {
	MPI_Comm comm;
	MPI_Op op;
	int count;
	int in[MOST], out[MOST];
};

static void *reduces(void *context)
{
	struct reduction *r = context;
	MPI_Request request;

	MPI_Iallreduce(r->in, r->out, r->count, MPI_INT, r->op, r->comm, &request);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	return NULL;
}

static void one_round(struct reduction *waits, struct reduction *starts, int ranks, int round)
{
	MPI_Request request;
	pthread_t thread;

	waits->count = starts->count = counts[round % 3];
	for (int i = 0; i < waits->count; i++)
		waits->in[i] = starts->in[i] = round + i;
	inside = 0;
	pthread_mutex_lock(&held);
	if (pthread_create(&thread, NULL, reduces, waits))
		case_fail("no thread");
	while (!__atomic_load_n(&inside, __ATOMIC_ACQUIRE))
		usleep(100);
	MPI_Iallreduce(starts->in, starts->out, starts->count, MPI_INT, starts->op, starts->comm,
		       &request);
	pthread_mutex_unlock(&held);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	pthread_join(thread, NULL);
	case_count(CASE_ALLREDUCE, 1);
	case_count(CASE_ALLREDUCE, 1);
	for (int i = 0; i < waits->count; i++)
		if (waits->out[i] != ranks * (round + i) || starts->out[i] != ranks * (round + i))
			case_fail("round %d: element %d is %d and %d instead of %d", round, i,
				  waits->out[i], starts->out[i], ranks * (round + i));
}

int main(int argc, char **argv)
{
	static struct reduction waits, starts = { .op = MPI_SUM };
	int rank, ranks;

	case_begin_threads(&argc, &argv, &rank, &ranks);
	MPI_Comm_dup(MPI_COMM_WORLD, &waits.comm);
	MPI_Comm_dup(MPI_COMM_WORLD, &starts.comm);
	/* They have teams then, so that their nonblocking calls are served. */
	case_barrier(waits.comm);
	case_barrier(starts.comm);
	MPI_Op_create(locks_and_adds, 1, &waits.op);
	for (int round = 0; round < ROUNDS; round++)
		one_round(&waits, &starts, ranks, round);
	MPI_Op_free(&waits.op);
	MPI_Comm_free(&waits.comm);
	MPI_Comm_free(&starts.comm);
	return case_end("callbacks: %d rounds\n", ROUNDS);
}
