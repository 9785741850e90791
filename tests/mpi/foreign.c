/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What onecopy hands back: intercommunicators, and processes that came by MPI_Comm_spawn or
 * MPI_Comm_connect, which are no node-mates of the job's. Every result is right; of the calls of
 * Alltoall only those among the processes of one MPI_COMM_WORLD may be served.
 *
 * foreign intercomm|spawn|connect|spawn_multiple
 */
#include "checked.h"

#include <pthread.h>
#include <string.h>

enum { CHILDREN = 2, COUNT = 3000, ROUNDS = 6, SPAWNS = 2, BURNERS = 2 };

static int rank, ranks;
static int out[CHECKED_RANKS * COUNT], in[CHECKED_RANKS * COUNT];

/* On an intracommunicator. `counted`: it is of one world. */
static void use(MPI_Comm comm, int counted, int rounds)
{
	int me, size;

	MPI_Comm_rank(comm, &me);
	MPI_Comm_size(comm, &size);
	for (int round = 0; round < rounds; round++) {
		int count = round % 2 ? COUNT : 2, sum = 0;
		MPI_Request request;

		for (int i = 0; i < count * size; i++)
			out[i] = me * 1000003 + i + round;
		if (round % 3) {
			MPI_Alltoall(out, count, MPI_INT, in, count, MPI_INT, comm);
		} else {
			MPI_Ialltoall(out, count, MPI_INT, in, count, MPI_INT, comm, &request);
			MPI_Wait(&request, MPI_STATUS_IGNORE);
		}
		if (counted)
			case_count(CASE_ALLTOALL, size > 1);
		for (int i = 0; i < count * size; i++)
			if (in[i] != i / count * 1000003 + me * count + i % count + round)
				case_fail("Alltoall of %d ranks, round %d: int %d is wrong", size,
					  round, i);
		MPI_Allreduce(&me, &sum, 1, MPI_INT, MPI_SUM, comm);
		if (sum != size * (size - 1) / 2)
			case_fail("Allreduce of %d ranks gave %d", size, sum);
		MPI_Bcast(out, count, MPI_INT, size - 1, comm);
		if (out[count - 1] != (size - 1) * 1000003 + count - 1 + round)
			case_fail("Bcast of %d ranks, round %d: a wrong int", size, round);
	}
}

/* Every rank of each side gets the blocks of all on the other side. */
static void use_between(MPI_Comm inter, int side)
{
	int me, remote, sum = 0, remote_sum;
	MPI_Request request;

	MPI_Comm_rank(inter, &me);
	MPI_Comm_remote_size(inter, &remote);
	remote_sum = remote * (remote - 1) / 2 + remote * 100 * !side;
	for (int round = 0; round < ROUNDS; round++) {
		int count = round % 2 ? COUNT : 2, value = me + 100 * side;
		int root = side ? 0 : !me ? MPI_ROOT : MPI_PROC_NULL;

		for (int i = 0; i < count * remote; i++)
			out[i] = value * 1000003 + i;
		if (round % 2)
			MPI_Alltoall(out, count, MPI_INT, in, count, MPI_INT, inter);
		else
			MPI_Ialltoall(out, count, MPI_INT, in, count, MPI_INT, inter, &request);
		if (!(round % 2))
			MPI_Wait(&request, MPI_STATUS_IGNORE);
		for (int i = 0; i < count * remote; i++)
			if (in[i] != (i / count + 100 * !side) * 1000003 + me * count + i % count)
				case_fail("Alltoall between %d and others: int %d is wrong", remote,
					  i);
		MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, inter);
		if (sum != remote_sum)
			case_fail("Allreduce between groups gave %d, not %d", sum, remote_sum);
		for (int i = 0; i < count; i++)
			out[i] = i + round;
		if (side)
			memset(out, 0, (size_t)count * sizeof(out[0]));
		MPI_Bcast(out, count, MPI_INT, root, inter);
		if (out[count - 1] != count - 1 + round)
			case_fail("Bcast between groups: a wrong int");
		MPI_Barrier(inter);
	}
}

static void merge_and_use(MPI_Comm inter, int side, int counted)
{
	MPI_Comm merged, again;

	MPI_Intercomm_merge(inter, side, &merged);
	use(merged, counted, ROUNDS);
	MPI_Comm_dup(merged, &again);
	use(again, counted, ROUNDS);
	MPI_Comm_free(&again);
	MPI_Comm_free(&merged);
}

static void intercomm(void)
{
	MPI_Comm half, inter, again;
	int side = rank % 2;

	MPI_Comm_split(MPI_COMM_WORLD, side, rank, &half);
	use(half, 1, 2);
	MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, !side, 3, &inter);
	use_between(inter, side);
	MPI_Comm_dup(inter, &again);
	use_between(again, side);
	MPI_Comm_free(&again);
	/* These are node-mates, but not every first call can be served. */
	merge_and_use(inter, side, 0);
	MPI_Comm_free(&inter);
	MPI_Comm_free(&half);
}

static void spawn(char *program)
{
	MPI_Comm parent;
	char *arguments[] = { (char[]){ "spawn" }, NULL };

	MPI_Comm_get_parent(&parent);
	if (parent == MPI_COMM_NULL)
		MPI_Comm_spawn(program, arguments, CHILDREN, MPI_INFO_NULL, 0, MPI_COMM_WORLD,
			       &parent, MPI_ERRCODES_IGNORE);
	else
		rank += 100;
	use_between(parent, rank >= 100);
	merge_and_use(parent, rank >= 100, 0);
	use(MPI_COMM_WORLD, 1, ROUNDS);
	MPI_Comm_disconnect(&parent);
}

static int burning = 1; /* atomic */

static void *burn(void *context)
{
	while (__atomic_load_n(&burning, __ATOMIC_RELAXED))
		;
	return context;
}

/* Two programs at a time, several times, while other threads keep the CPUs busy. */
static void spawn_multiple(char *program)
{
	char *arguments[] = { (char[]){ "spawn_multiple" }, NULL },
	     *programs[] = { program, program };
	char **all_arguments[] = { arguments, arguments };
	MPI_Info infos[] = { MPI_INFO_NULL, MPI_INFO_NULL };
	int most[] = { 1, CHILDREN - 1 }, child;
	pthread_t burner[BURNERS];
	MPI_Comm parent;

	MPI_Comm_get_parent(&parent);
	child = parent != MPI_COMM_NULL;
	rank += 100 * child;
	for (int b = 0; !rank && b < BURNERS; b++)
		if (pthread_create(&burner[b], NULL, burn, NULL))
			case_fail("no thread");
	for (int turn = 0; turn < (child ? 1 : SPAWNS); turn++) {
		if (!child)
			MPI_Comm_spawn_multiple(2, programs, all_arguments, most, infos, 0,
						MPI_COMM_WORLD, &parent, MPI_ERRCODES_IGNORE);
		use_between(parent, child);
		merge_and_use(parent, child, 0);
		use(MPI_COMM_WORLD, 1, ROUNDS);
		MPI_Comm_disconnect(&parent);
	}
	__atomic_store_n(&burning, 0, __ATOMIC_RELAXED);
	for (int b = 0; !rank && b < BURNERS; b++)
		pthread_join(burner[b], NULL);
}

static void connect_halves(void)
{
	char port[MPI_MAX_PORT_NAME];
	int side = rank % 2;
	MPI_Comm half, inter;

	MPI_Comm_split(MPI_COMM_WORLD, side, rank, &half);
	use(half, 1, 2);
	if (!rank) {
		MPI_Open_port(MPI_INFO_NULL, port);
		MPI_Send(port, MPI_MAX_PORT_NAME, MPI_CHAR, 1, 4, MPI_COMM_WORLD);
	}
	if (rank == 1)
		MPI_Recv(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, 4, MPI_COMM_WORLD,
			 MPI_STATUS_IGNORE);
	if (side)
		MPI_Comm_connect(port, MPI_INFO_NULL, 0, half, &inter);
	else
		MPI_Comm_accept(port, MPI_INFO_NULL, 0, half, &inter);
	use_between(inter, side);
	merge_and_use(inter, side, 0);
	MPI_Comm_disconnect(&inter);
	MPI_Comm_free(&half);
}

int main(int argc, char **argv)
{
	MPI_Comm parent;

	case_begin(&argc, &argv, &rank, &ranks);
	if (argc != 2)
		case_fail("usage: foreign intercomm|spawn|connect|spawn_multiple");
	MPI_Comm_get_parent(&parent);
	case_barrier(MPI_COMM_WORLD);
	if (!strcmp(argv[1], "intercomm"))
		intercomm();
	else if (!strcmp(argv[1], "spawn"))
		spawn(argv[0]);
	else if (!strcmp(argv[1], "spawn_multiple"))
		spawn_multiple(argv[0]);
	else
		connect_halves();
	if (parent == MPI_COMM_NULL)
		return case_end("foreign: %s of %d ranks, every result right\n", argv[1], ranks);
	MPI_Finalize();
	return 0;
}
