/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Functions of MPI 4.1 that look at requests, in an MPI that has them (behind.c where it does not):
 * programs call them until a collective is over, so they have to drive it.
 */
#include "case.h"

#include <dlfcn.h>
#include <stdlib.h>

typedef int all_fn(int, const MPI_Request *, int *, MPI_Status *);
typedef int any_fn(int, const MPI_Request *, int *, int *, MPI_Status *);
typedef int some_fn(int, const MPI_Request *, int *, int *, MPI_Status *);

enum { COUNT = 100000, CALLS = 2, ROUNDS = 9 };

static all_fn *get_all;
static any_fn *get_any;
static some_fn *get_some;

static int is_over(const MPI_Request *request, int form)
{
	int flag = 0, index[CALLS], done = 0;
	MPI_Status status[CALLS];

	if (form == 0)
		get_all(CALLS, request, &flag, status);
	else if (form == 1)
		get_any(1, request + 1, index, &flag, status);
	else
		get_some(CALLS, request, &done, index, status);
	return flag || done == CALLS;
}

int main(int argc, char **argv)
{
	MPI_Request request[CALLS];
	int rank, ranks, *own, *sum[CALLS];

	case_begin(&argc, &argv, &rank, &ranks);
	get_all = (all_fn *)(void (*)(void))dlsym(RTLD_DEFAULT, "MPI_Request_get_status_all");
	get_any = (any_fn *)(void (*)(void))dlsym(RTLD_DEFAULT, "MPI_Request_get_status_any");
	get_some = (some_fn *)(void (*)(void))dlsym(RTLD_DEFAULT, "MPI_Request_get_status_some");
	own = malloc(COUNT * sizeof(*own));
	for (int i = 0; i < CALLS; i++)
		sum[i] = malloc(COUNT * sizeof(*sum[i]));
	if (!get_all || !get_any || !get_some || !own || !sum[0] || !sum[1])
		case_fail("the functions are not there, or no memory");
	case_barrier(MPI_COMM_WORLD);
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < COUNT; i++)
			own[i] = i + rank + round;
		for (int i = 0; i < CALLS; i++)
			MPI_Iallreduce(own, sum[i], COUNT, MPI_INT, MPI_SUM, MPI_COMM_WORLD,
				       &request[i]);
		case_count(CASE_ALLREDUCE, CALLS);
		while (!is_over(request, round % 3))
			;
		MPI_Waitall(CALLS, request, MPI_STATUSES_IGNORE);
		for (int i = 0; i < COUNT * CALLS; i++)
			if (sum[i % 2][i / 2] != ranks * (i / 2 + round) + ranks * (ranks - 1) / 2)
				case_fail("item %d of sum %d is %d", i / 2, i % 2,
					  sum[i % 2][i / 2]);
	}
	free(own);
	for (int i = 0; i < CALLS; i++)
		free(sum[i]);
	return case_end("newer: %d rounds on %d ranks\n", ROUNDS, ranks);
}
