/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A nonblocking collective of the job goes on while its rank is inside a blocking call with
 * processes of another job, who were spawned: they may come late, and what brings them may be a
 * peer that waits for the collective. Rank 0 starts it and then sits in that call; the other ranks
 * complete theirs first.
 *
 * MPICH 4.0.2 as Debian builds it, for UCX, can meet no other job, as its MPI_Open_port is not
 * supported there, nor is what rests on that (MPI_Comm_spawn, _connect, _join). With the word
 * `apart` the last processes of this job are the others, and behind.c says so to onecopy.
 */
#include "case.h"

#include <stdio.h>
#include <string.h>

enum { CHILDREN = 2, INTS = 1 << 18, MOST_RANKS = 16, PLAIN = 0, FRESH = 1 };

static int rank, ranks, child;		  /* rank: among the children, too */
static MPI_Comm job, inter, merged, half; /* job: of this rank's */
static int data[INTS], sums[INTS];

/* ---- what rank 0 sits in -------------------------------------------------------------------- */

static void in_barrier(void)
{
	MPI_Barrier(inter);
}

static void in_allreduce(void)
{
	int one = 1, sum = 0;

	MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, inter);
	if (sum != (child ? ranks : CHILDREN))
		case_fail("MPI_Allreduce between the jobs gave %d", sum);
}

static void in_merged_barrier(void)
{
	MPI_Barrier(merged);
}

static void in_merged_bcast(void)
{
	static char bytes[1 << 20];
	int size;

	MPI_Comm_size(merged, &size);
	memset(bytes, child ? 7 : 0, sizeof(bytes));
	MPI_Bcast(bytes, sizeof(bytes), MPI_BYTE, size - 1, merged);
	if (bytes[sizeof(bytes) - 1] != 7)
		case_fail("MPI_Bcast of both jobs gave %d", bytes[sizeof(bytes) - 1]);
}

static void in_dup(void)
{
	MPI_Comm made;

	MPI_Comm_dup(inter, &made);
	MPI_Comm_free(&made);
}

static void in_merged_dup(void)
{
	MPI_Comm made;

	MPI_Comm_dup(merged, &made);
	MPI_Barrier(made);
	MPI_Comm_free(&made);
}

static void in_split(void)
{
	MPI_Comm made;

	MPI_Comm_split(merged, 0, 0, &made);
	MPI_Comm_free(&made);
}

static void in_merge(void)
{
	MPI_Comm made;

	MPI_Intercomm_merge(inter, child, &made);
	MPI_Comm_free(&made);
}

static void in_create_group(void)
{
	MPI_Group group;
	MPI_Comm made;

	MPI_Comm_group(merged, &group);
	MPI_Comm_create_group(merged, group, 5, &made);
	MPI_Group_free(&group);
	MPI_Comm_free(&made);
}

/* One leader is the last child, whom the job's others do not see. */
static void in_intercomm_create(void)
{
	MPI_Comm made;
	int size;

	MPI_Comm_size(merged, &size);
	MPI_Intercomm_create(half, 0, merged, child ? 0 : size - CHILDREN, 9, &made);
	MPI_Comm_free(&made);
}

static void in_neighbors(void)
{
	int size, periodic = 1, me, got[2] = { -1, -1 };
	MPI_Comm ring;

	MPI_Comm_size(merged, &size);
	MPI_Comm_rank(merged, &me);
	MPI_Cart_create(merged, 1, &size, &periodic, 0, &ring);
	MPI_Neighbor_allgather(&me, 1, MPI_INT, got, 1, MPI_INT, ring);
	if (got[0] != (me + size - 1) % size || got[1] != (me + 1) % size)
		case_fail("MPI_Neighbor_allgather of both jobs gave %d and %d", got[0], got[1]);
	MPI_Comm_free(&ring);
}

#ifdef MPICH_VERSION
static void in_large_barrier(void)
{
	int one = 1, sum = 0;

	MPI_Allreduce_c(&one, &sum, 1, MPI_INT, MPI_SUM, merged);
}

/* Open MPI 4.1 makes no windows with processes of another job. */
static void in_window(void)
{
	int size, me, value = -1, got = -1;
	MPI_Win win;

	MPI_Comm_size(merged, &size);
	MPI_Comm_rank(merged, &me);
	MPI_Win_create(&value, sizeof(value), sizeof(value), MPI_INFO_NULL, merged, &win);
	MPI_Win_fence(0, win);
	MPI_Put(&me, 1, MPI_INT, (me + 1) % size, 0, 1, MPI_INT, win);
	MPI_Win_fence(0, win);
	if (value != (me + size - 1) % size)
		case_fail("MPI_Put of both jobs gave %d", value);
	MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
	MPI_Get(&got, 1, MPI_INT, 0, 0, 1, MPI_INT, win);
	MPI_Win_unlock(0, win);
	MPI_Win_free(&win);
}
#endif

static const struct call {
	const char *name;
	void (*call)(void);
} calls[] = {
	{ "MPI_Barrier between the jobs", in_barrier },
	{ "MPI_Allreduce between the jobs", in_allreduce },
	{ "MPI_Barrier", in_merged_barrier },
	{ "MPI_Bcast", in_merged_bcast },
	{ "MPI_Comm_dup between the jobs", in_dup },
	{ "MPI_Comm_dup", in_merged_dup },
	{ "MPI_Comm_split", in_split },
	{ "MPI_Intercomm_merge", in_merge },
	{ "MPI_Comm_create_group", in_create_group },
	{ "MPI_Intercomm_create", in_intercomm_create },
	{ "MPI_Neighbor_allgather", in_neighbors },
#ifdef MPICH_VERSION
	{ "MPI_Allreduce_c", in_large_barrier },
	{ "MPI_Win_create, MPI_Win_fence, MPI_Win_lock", in_window },
#endif
};
enum { CALLS = sizeof(calls) / sizeof(calls[0]) };

/* ---- rounds --------------------------------------------------------------------------------- */

static void start(int number, MPI_Comm comm, MPI_Request *request)
{
	for (int i = 0; i < INTS; i++)
		data[i] = rank == 1 || number % 2 ? number + i : -1;
	if (number % 2)
		MPI_Iallreduce(data, sums, INTS, MPI_INT, MPI_SUM, comm, request);
	else
		MPI_Ibcast(data, INTS, MPI_INT, 1, comm, request);
}

static void finish(int number, MPI_Request *request, const char *inside)
{
	MPI_Wait(request, MPI_STATUS_IGNORE);
	for (int i = 0; i < INTS; i++)
		if (number % 2 ? sums[i] != ranks * (number + i) : data[i] != number + i)
			case_fail("beside %s: int %d is wrong", inside, i);
}

static void beside(const struct call *call, int number, MPI_Comm comm)
{
	MPI_Request request;

	if (child) {
		call->call();
		return;
	}
	start(number, comm, &request);
	if (rank)
		finish(number, &request, call->name);
	call->call();
	if (!rank)
		finish(number, &request, call->name);
}

/* `kind` FRESH: on a communicator without a team, where the operation is the MPI's. */
static void all_calls(int kind, MPI_Comm comm)
{
	for (int c = 0; c < CALLS; c++) {
		for (int turn = kind; turn < 2; turn++) {
			MPI_Comm used = comm;

			if (kind == FRESH)
				MPI_Comm_dup(comm, &used);
			beside(&calls[c], c + turn, used);
			if (kind == FRESH)
				MPI_Comm_free(&used);
		}
	}
}

static void spawn(char *program)
{
	MPI_Comm_dup(MPI_COMM_WORLD, &job);
	MPI_Comm_get_parent(&inter);
	child = inter != MPI_COMM_NULL;
	if (!child)
		MPI_Comm_spawn(program, MPI_ARGV_NULL, CHILDREN, MPI_INFO_NULL, 0, job, &inter,
			       MPI_ERRCODES_IGNORE);
	else
		MPI_Comm_remote_size(inter, &ranks);
}

static void part(void)
{
	ranks -= CHILDREN;
	child = rank >= ranks;
	MPI_Comm_split(MPI_COMM_WORLD, child, 0, &job);
	MPI_Intercomm_create(job, 0, MPI_COMM_WORLD, child ? 0 : ranks, 8, &inter);
	MPI_Comm_rank(job, &rank);
}

int main(int argc, char **argv)
{
	MPI_Comm warm;

	case_begin(&argc, &argv, &rank, &ranks);
	if (argc > 1 && !strcmp(argv[1], "apart"))
		part();
	else
		spawn(argv[0]);
	MPI_Intercomm_merge(inter, child, &merged);
	MPI_Comm_dup(job, &half);
	MPI_Comm_dup(job, &warm);
	MPI_Barrier(warm);
	all_calls(PLAIN, warm);
	all_calls(FRESH, warm);
	MPI_Comm_free(&merged);
	MPI_Comm_disconnect(&inter);
	MPI_Comm_free(&warm);
	MPI_Comm_free(&half);
	MPI_Comm_free(&job);
	if (!child && !rank)
		printf("beside: collectives went on inside %d kinds of calls with another job\n",
		       CALLS);
	MPI_Finalize();
	return 0;
}
