/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_THREAD_MULTIPLE: the first calls on a communicator of one process, by all threads at once, as
 * programs make them although MPI lets collectives come one at a time: what is kept for the
 * communicator is made once.
 */
#include "case.h"

#include <pthread.h>

enum { THREADS = 4, ROUNDS = 200 };

static pthread_barrier_t all_ready;
static MPI_Comm alone;

static void *first_use(void *context)
{
	int one = 1, sum = 0;

	for (int round = 0; round < ROUNDS; round++) {
		if (pthread_barrier_wait(&all_ready) == PTHREAD_BARRIER_SERIAL_THREAD) {
			MPI_Comm_dup(MPI_COMM_SELF, &alone);
			MPI_Comm_set_name(alone, "alone");
		}
		pthread_barrier_wait(&all_ready);
		MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, alone);
		if (sum != 1)
			case_fail("Allreduce of one process gave %d", sum);
		if (pthread_barrier_wait(&all_ready) == PTHREAD_BARRIER_SERIAL_THREAD)
			MPI_Comm_free(&alone);
	}
	return context;
}

int main(int argc, char **argv)
{
	pthread_t thread[THREADS];
	int rank, ranks;

	case_begin_threads(&argc, &argv, &rank, &ranks);
	pthread_barrier_init(&all_ready, NULL, THREADS);
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&thread[i], NULL, first_use, NULL))
			case_fail("no thread");
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	return case_end("communicators %d\n", ROUNDS * ranks);
}
