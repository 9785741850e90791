/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A nonblocking collective goes on while its rank is inside any blocking MPI call. Rank 0 starts it
 * and then sits in a call that can only end after the others have completed theirs: they wait for
 * the collective first, and then do their part of that call. On communicators used before and on
 * fresh ones, where the call is the first of all and the MPI's. With the word "across", over hosts,
 * only what goes in two levels, on a communicator used before.
 */
#include "progress.h"
#include "checked.h"

#include <string.h>

enum { MESSAGE = 1 << 20, TAG = 11 };

static int rank, ranks, rounds;
static char out[MESSAGE], in[MESSAGE];
static MPI_Comm other; /* for what the blocking calls do */

/* ---- what rank 0 blocks in, and what rank 1, or all, do for it afterwards ------------------- */

static void in_recv(int bytes)
{
	if (!rank)
		MPI_Recv(in, bytes, MPI_BYTE, 1, TAG, other, MPI_STATUS_IGNORE);
	else if (rank == 1)
		MPI_Send(out, bytes, MPI_BYTE, 0, TAG, other);
}

static void in_send(int bytes)
{
	if (!rank)
		MPI_Send(out, bytes, MPI_BYTE, 1, TAG, other);
	else if (rank == 1)
		MPI_Recv(in, bytes, MPI_BYTE, 0, TAG, other, MPI_STATUS_IGNORE);
}

static void in_ssend(int bytes)
{
	if (!rank)
		MPI_Ssend(out, bytes, MPI_BYTE, 1, TAG, other);
	else if (rank == 1)
		MPI_Recv(in, bytes, MPI_BYTE, 0, TAG, other, MPI_STATUS_IGNORE);
}

static void in_sendrecv(int bytes)
{
	if (rank < 2)
		MPI_Sendrecv(out, bytes, MPI_BYTE, !rank, TAG, in, bytes, MPI_BYTE, !rank, TAG,
			     other, MPI_STATUS_IGNORE);
}

static void in_sendrecv_replace(int bytes)
{
	if (rank < 2)
		MPI_Sendrecv_replace(in, bytes, MPI_BYTE, !rank, TAG, !rank, TAG, other,
				     MPI_STATUS_IGNORE);
}

static void in_replace_of_nothing(int bytes)
{
	(void)bytes;
	if (rank < 2)
		MPI_Sendrecv_replace(in, 0, MPI_BYTE, !rank, TAG, !rank, TAG, other,
				     MPI_STATUS_IGNORE);
}

static void in_probe(int bytes)
{
	if (!rank)
		MPI_Probe(1, TAG, other, MPI_STATUS_IGNORE);
	in_recv(bytes);
}

static void in_mprobe(int bytes)
{
	MPI_Message message;

	if (!rank) {
		MPI_Mprobe(1, TAG, other, &message, MPI_STATUS_IGNORE);
		MPI_Mrecv(in, bytes, MPI_BYTE, &message, MPI_STATUS_IGNORE);
	} else if (rank == 1) {
		MPI_Send(out, bytes, MPI_BYTE, 0, TAG, other);
	}
}

/* `how`: of Wait, Waitall, Waitany, Waitsome. */
static void in_a_wait(int bytes, int how)
{
	MPI_Request request[2] = { MPI_REQUEST_NULL, MPI_REQUEST_NULL };
	MPI_Status status[2];
	int index[2], count;

	if (rank) {
		in_recv(bytes);
		return;
	}
	MPI_Irecv(in, bytes, MPI_BYTE, 1, TAG, other, &request[1]);
	if (how == 0)
		MPI_Wait(&request[1], status);
	else if (how == 1)
		MPI_Waitall(2, request, status);
	else if (how == 2)
		MPI_Waitany(2, request, &count, status);
	else
		MPI_Waitsome(2, request, &count, index, status);
}

static void in_wait(int bytes)
{
	in_a_wait(bytes, 0);
}

static void in_waitall(int bytes)
{
	in_a_wait(bytes, 1);
}

static void in_waitany(int bytes)
{
	in_a_wait(bytes, 2);
}

static void in_waitsome(int bytes)
{
	in_a_wait(bytes, 3);
}

static void in_barrier(int bytes)
{
	(void)bytes;
	MPI_Barrier(other);
}

static MPI_Comm fresh_one;

static void make_fresh(int bytes)
{
	(void)bytes;
	MPI_Comm_dup(other, &fresh_one);
}

/* The call in which a team is made. */
static void in_first_barrier(int bytes)
{
	(void)bytes;
	MPI_Barrier(fresh_one);
	MPI_Comm_free(&fresh_one);
}

static void in_bcast(int bytes)
{
	MPI_Bcast(in, bytes, MPI_BYTE, ranks - 1, other);
}

static void in_scan(int bytes)
{
	MPI_Scan(out, in, bytes / 4, MPI_INT, MPI_SUM, other);
}

static void in_neighbor_allgather(int bytes)
{
	static char all[4 * 4096];
	int size = ranks, periodic = 1;
	MPI_Comm cart;

	MPI_Cart_create(other, 1, &size, &periodic, 0, &cart);
	MPI_Neighbor_allgather(out, bytes > 4096 ? 4096 : bytes, MPI_BYTE, all,
			       bytes > 4096 ? 4096 : bytes, MPI_BYTE, cart);
	MPI_Comm_free(&cart);
}

static void in_comm_dup(int bytes)
{
	MPI_Comm comm;

	(void)bytes;
	MPI_Comm_dup(other, &comm);
	MPI_Comm_free(&comm);
}

static void in_comm_split(int bytes)
{
	MPI_Comm comm;

	(void)bytes;
	MPI_Comm_split(other, 0, -rank, &comm);
	MPI_Comm_free(&comm);
}

static void in_comm_create(int bytes)
{
	MPI_Group group;
	MPI_Comm comm;

	(void)bytes;
	MPI_Comm_group(other, &group);
	MPI_Comm_create(other, group, &comm);
	MPI_Group_free(&group);
	MPI_Comm_free(&comm);
}

static const struct progress_blocking blocking[] = {
	{ "MPI_Recv", in_recv, NULL },
	{ "MPI_Send", in_send, NULL },
	{ "MPI_Ssend", in_ssend, NULL },
	{ "MPI_Sendrecv", in_sendrecv, NULL },
	{ "MPI_Sendrecv_replace", in_sendrecv_replace, NULL },
	{ "MPI_Sendrecv_replace of nothing", in_replace_of_nothing, NULL },
	{ "MPI_Probe", in_probe, NULL },
	{ "MPI_Mprobe", in_mprobe, NULL },
	{ "MPI_Wait", in_wait, NULL },
	{ "MPI_Waitall", in_waitall, NULL },
	{ "MPI_Waitany", in_waitany, NULL },
	{ "MPI_Waitsome", in_waitsome, NULL },
	{ "MPI_Barrier", in_barrier, NULL },
	{ "MPI_Barrier on a new communicator", in_first_barrier, make_fresh },
	{ "MPI_Bcast", in_bcast, NULL },
	{ "MPI_Scan", in_scan, NULL },
	{ "MPI_Neighbor_allgather", in_neighbor_allgather, NULL },
	{ "MPI_Comm_dup", in_comm_dup, NULL },
	{ "MPI_Comm_split", in_comm_split, NULL },
	{ "MPI_Comm_create", in_comm_create, NULL },
	{ NULL, NULL, NULL },
};

/* ---- rounds --------------------------------------------------------------------------------- */

static const enum case_collective pending[] = { CASE_BARRIER,	CASE_BCAST,  CASE_ALLREDUCE,
						CASE_ALLTOALLV, CASE_GATHER, CASE_SCAN };
static int across;

static struct checked_spec spec_of(enum case_collective collective, int elements)
{
	rounds++;
	if (across && collective == CASE_ALLTOALLV)
		collective = CASE_ALLGATHER;
	return (struct checked_spec){ .collective = collective,
				      .elements = elements,
				      .root = rounds % 2 ? 0 : ranks - 1,
				      .layout = rounds % 3,
				      .plain = across ? 1 + PLAIN_INTS : 0,
				      .shape = (unsigned int)rounds,
				      .salt = (uint64_t)rounds,
				      .stock = 1 };
}

static void one_round(const struct progress_blocking *in_call, int number, MPI_Comm comm,
		      int elements)
{
	struct checked_spec spec = spec_of(
		pending[(unsigned int)number % (sizeof(pending) / sizeof(pending[0]))], elements);
	int bytes = elements > 100 ? MESSAGE : 64;
	struct checked call;

	if (in_call->prepare)
		in_call->prepare(bytes);
	checked_open(&call, comm, &spec);
	checked_start(&call);
	if (!rank) {
		in_call->call(bytes);
		MPI_Wait(&call.request, MPI_STATUS_IGNORE);
	} else {
		MPI_Wait(&call.request, MPI_STATUS_IGNORE);
		in_call->call(bytes);
	}
	checked_verify(&call);
	checked_close(&call);
}

/* A: Ibcast, Send. B: Recv, Ibcast. The first use of the communicator may not block. */
static void first_use(int bytes, int elements)
{
	struct checked call;
	struct checked_spec spec = spec_of(CASE_BCAST, elements);
	MPI_Comm comm;

	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	checked_open(&call, comm, &spec);
	if (rank == 1)
		MPI_Recv(in, bytes, MPI_BYTE, 0, TAG, other, MPI_STATUS_IGNORE);
	checked_start(&call);
	if (rank == 0)
		MPI_Send(out, bytes, MPI_BYTE, 1, TAG, other);
	checked_end(&call);
	MPI_Comm_free(&comm);
}

/* The words on the command line: only the calls of these names; none: all. */
static char **only;
static int inside;

static int is_wanted(const struct progress_blocking *call)
{
	for (char **word = only; *word; word++)
		if (!strcmp(*word, call->name))
			return 1;
	return !*only;
}

static void on_a_used_one(const struct progress_blocking *call, MPI_Comm warm)
{
	static const int elements[] = { 1, 9000 };
	static int used;

	for (; call->name; call++) {
		for (int i = 0; is_wanted(call) && i < 12; i++, used++)
			one_round(call, used + inside, warm, elements[i / 6]);
		inside += is_wanted(call);
	}
}

static void on_fresh_ones(const struct progress_blocking *call)
{
	static int used;

	for (; call->name; call++) {
		int elements = used % 2 ? 9000 : 1;
		MPI_Comm fresh;

		if (!is_wanted(call))
			continue;
		MPI_Comm_dup(MPI_COMM_WORLD, &fresh);
		one_round(call, used++, fresh, elements);
		one_round(call, used, fresh, elements);
		MPI_Comm_free(&fresh);
	}
}

int main(int argc, char **argv)
{
	MPI_Comm warm;

	case_begin(&argc, &argv, &rank, &ranks);
	across = argc > 1 && !strcmp(argv[1], "across");
	only = argv + 1 + across;
	MPI_Comm_dup(MPI_COMM_WORLD, &warm);
	MPI_Comm_dup(MPI_COMM_WORLD, &other);
	case_barrier(warm);
	if (across) {
		MPI_Request request;

		MPI_Ibarrier(warm, &request);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
		MPI_Barrier(warm);
	}
	on_a_used_one(blocking, warm);
	/* As long as there are windows, whoever waits spins (mpi/pmpi/request.c). */
	progress_more_begin(other);
	on_a_used_one(progress_more, warm);
#ifdef MPICH_VERSION
	/* Between hosts MPICH moves what goes on, and in these moves nothing. */
	if (!across)
#endif
		on_a_used_one(progress_windows, warm);
	/* What follows has no team: its operations are the MPI's. */
	case_stop_counting();
	if (!across)
		on_fresh_ones(progress_more);
#ifndef MPICH_VERSION
	/* MPICH drives no nonblocking collective of its own in there: these rounds never end with
	 * 4.0.2 alone. */
	on_fresh_ones(progress_windows);
#endif
	progress_more_end();
	if (!across)
		on_fresh_ones(blocking);
	for (int i = 0; i < (across ? 0 : 4); i++)
		first_use(i % 2 ? MESSAGE : 8, i / 2 ? 9000 : 1);
	MPI_Comm_free(&warm);
	MPI_Comm_free(&other);
	return case_end("progress: %d rounds on %d ranks, inside %d blocking calls\n", rounds,
			ranks, inside);
}
