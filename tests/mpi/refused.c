/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * refused [team]: calls that are the MPI's, between nonblocking collectives that are under way:
 * each has to come to the MPI in its place, or the members' calls do not match. Rank 0 has another
 * option than the others, so the teams are refused and all calls are the MPI's. With the word
 * `team` all have the same options, and the nonblocking collectives are served.
 */
#include "case.h"

#include <stdlib.h>
#include <string.h>

#if defined(OPEN_MPI) && OMPI_MAJOR_VERSION < 5
#include <mpi-ext.h>
#define INIT(name) MPIX_##name
#else
#define INIT(name) MPI_##name
#endif

enum { MOST_RANKS = 16, BLOCK = 3, INTS = MOST_RANKS * BLOCK };

static int rank, ranks;
static MPI_Comm ring; /* periodic, of one dimension */

/* Of one call: the buffers, what is to arrive, and arrays as its parameters. */
static int in[INTS], out[INTS], wanted[INTS];
static int counts[MOST_RANKS], displs[MOST_RANKS];
static MPI_Aint places[MOST_RANKS];
static MPI_Datatype block, types[MOST_RANKS];
static MPI_Comm made = MPI_COMM_NULL;

/* Element i of what a rank gives. */
static int given(int of, int i)
{
	return 1000 * (of + 1) + i;
}

static void want(int first, int of, int from)
{
	for (int i = 0; i < BLOCK; i++)
		wanted[first * BLOCK + i] = given(of, from * BLOCK + i);
}

static void want_from_all(int from)
{
	for (int r = 0; r < ranks; r++)
		want(r, r, from);
}

static int left(void)
{
	return (rank + ranks - 1) % ranks;
}

static int right(void)
{
	return (rank + 1) % ranks;
}

static void neighbors_gather(void)
{
	want(0, left(), 0);
	want(1, right(), 0);
}

/* A rank's block 0 goes to its left, block 1 to its right. */
static void neighbors_exchange(void)
{
	want(0, left(), 1);
	want(1, right(), 0);
}

static void create(void)
{
	MPI_Group group;

	MPI_Comm_group(ring, &group);
	MPI_Comm_create(ring, group, &made);
	MPI_Group_free(&group);
}

#define ALL in, BLOCK, MPI_INT, out, BLOCK, MPI_INT
#define FROM_ALL_V in, BLOCK, MPI_INT, out, counts, displs, MPI_INT
#define ALL_V in, counts, displs, MPI_INT, out, counts, displs, MPI_INT
#define ALL_W in, counts, places, types, out, counts, places, types
#define SUM in, out, BLOCK, MPI_INT, MPI_SUM

/* Open MPI 4.1.4 by itself mixes up the messages of an MPI_Comm_idup with those of the next call.
 */
#ifdef MPICH_VERSION
#define IDUP_STARTED(X) X(comm_idup, MPI_Comm_idup(ring, &made, r), (void)0)
#define IDUP_AWAITED(X)
#else
#define IDUP_STARTED(X)
#define IDUP_AWAITED(X) X(comm_idup, idup(r), (void)0)

static void idup(MPI_Request *request)
{
	MPI_Comm_idup(ring, &made, request);
	MPI_Wait(request, MPI_STATUS_IGNORE);
}
#endif

/* X(name, call, what is to arrive) */
#define INEIGHBORS(X)                                                                              \
	X(ineighbor_allgather, MPI_Ineighbor_allgather(ALL, ring, r), neighbors_gather())          \
	X(ineighbor_allgatherv, MPI_Ineighbor_allgatherv(FROM_ALL_V, ring, r), neighbors_gather()) \
	X(ineighbor_alltoall, MPI_Ineighbor_alltoall(ALL, ring, r), neighbors_exchange())          \
	X(ineighbor_alltoallv, MPI_Ineighbor_alltoallv(ALL_V, ring, r), neighbors_exchange())      \
	X(ineighbor_alltoallw, MPI_Ineighbor_alltoallw(ALL_W, ring, r), neighbors_exchange())      \
	IDUP_STARTED(X)
#define NEIGHBOR_INITS(X)                                                                        \
	X(neighbor_allgather_init, INIT(Neighbor_allgather_init)(ALL, ring, MPI_INFO_NULL, r),   \
	  neighbors_gather())                                                                    \
	X(neighbor_alltoallw_init, INIT(Neighbor_alltoallw_init)(ALL_W, ring, MPI_INFO_NULL, r), \
	  neighbors_exchange())                                                                  \
	X(allgather_init, INIT(Allgather_init)(ALL, ring, MPI_INFO_NULL, r), want_from_all(0))
#define NEIGHBORS(X)                                                                     \
	X(neighbor_allgather, MPI_Neighbor_allgather(ALL, ring), neighbors_gather())     \
	X(neighbor_alltoallv, MPI_Neighbor_alltoallv(ALL_V, ring), neighbors_exchange()) \
	X(comm_split, MPI_Comm_split(ring, 0, rank, &made), (void)0)                     \
	X(comm_dup, MPI_Comm_dup(ring, &made), (void)0)                                  \
	IDUP_AWAITED(X)                                                                  \
	X(comm_create, create(), (void)0)                                                \
	X(cart_create, MPI_Cart_create(ring, 1, &ranks, displs, 0, &made), (void)0)

#ifdef MPICH_VERSION
/* The same arrays as large numbers. */
static MPI_Count lengths[MOST_RANKS];
static MPI_Aint firsts[MOST_RANKS];

#define TO_ALL_LV in, lengths, firsts, MPI_INT, out, BLOCK, MPI_INT
#define FROM_ALL_LV in, BLOCK, MPI_INT, out, lengths, firsts, MPI_INT
#define ALL_LV in, lengths, firsts, MPI_INT, out, lengths, firsts, MPI_INT
#define ALL_LW in, lengths, places, types, out, lengths, places, types

/* Sums over the ranks below `end`. */
static void want_sums(int end, int from)
{
	for (int i = 0; i < BLOCK; i++) {
		wanted[i] = end ? 0 : -1;
		for (int r = 0; r < end; r++)
			wanted[i] += given(r, from * BLOCK + i);
	}
}

/* Not in Open MPI 4.1. */
static void idup_with_info(MPI_Request *request)
{
	MPI_Info info;

	MPI_Info_create(&info);
	MPI_Info_set(info, "onecopy_bcast", "knomial:2");
	MPI_Comm_idup_with_info(ring, info, &made, request);
	MPI_Info_free(&info);
}

static void want_at_root(void)
{
	if (!rank)
		want_from_all(0);
}

#define LARGE(X)                                                                                   \
	X(comm_idup_with_info, idup_with_info(r), (void)0)                                         \
	X(ibcast_c, MPI_Ibcast_c(rank ? out : in, BLOCK, MPI_INT, 0, ring, r),                     \
	  rank ? want(0, 0, 0) : (void)0)                                                          \
	X(iscatter_c, MPI_Iscatter_c(ALL, 0, ring, r), want(0, 0, rank))                           \
	X(iscatterv_c, MPI_Iscatterv_c(TO_ALL_LV, 0, ring, r), want(0, 0, rank))                   \
	X(igather_c, MPI_Igather_c(ALL, 0, ring, r), want_at_root())                               \
	X(igatherv_c, MPI_Igatherv_c(FROM_ALL_LV, 0, ring, r), want_at_root())                     \
	X(iallgather_c, MPI_Iallgather_c(ALL, ring, r), want_from_all(0))                          \
	X(iallgatherv_c, MPI_Iallgatherv_c(FROM_ALL_LV, ring, r), want_from_all(0))                \
	X(ialltoall_c, MPI_Ialltoall_c(ALL, ring, r), want_from_all(rank))                         \
	X(ialltoallv_c, MPI_Ialltoallv_c(ALL_LV, ring, r), want_from_all(rank))                    \
	X(ialltoallw_c, MPI_Ialltoallw_c(ALL_LW, ring, r), want_from_all(rank))                    \
	X(ireduce_c, MPI_Ireduce_c(SUM, 0, ring, r), rank ? (void)0 : want_sums(ranks, 0))         \
	X(iallreduce_c, MPI_Iallreduce_c(SUM, ring, r), want_sums(ranks, 0))                       \
	X(ireduce_scatter_c, MPI_Ireduce_scatter_c(in, out, lengths, MPI_INT, MPI_SUM, ring, r),   \
	  want_sums(ranks, rank))                                                                  \
	X(ireduce_scatter_block_c, MPI_Ireduce_scatter_block_c(SUM, ring, r),                      \
	  want_sums(ranks, rank))                                                                  \
	X(iscan_c, MPI_Iscan_c(SUM, ring, r), want_sums(rank + 1, 0))                              \
	X(iexscan_c, MPI_Iexscan_c(SUM, ring, r), want_sums(rank, 0))                              \
	X(ineighbor_allgather_c, MPI_Ineighbor_allgather_c(ALL, ring, r), neighbors_gather())      \
	X(ineighbor_allgatherv_c, MPI_Ineighbor_allgatherv_c(FROM_ALL_LV, ring, r),                \
	  neighbors_gather())                                                                      \
	X(ineighbor_alltoall_c, MPI_Ineighbor_alltoall_c(ALL, ring, r), neighbors_exchange())      \
	X(ineighbor_alltoallv_c, MPI_Ineighbor_alltoallv_c(ALL_LV, ring, r), neighbors_exchange()) \
	X(ineighbor_alltoallw_c, MPI_Ineighbor_alltoallw_c(ALL_LW, ring, r), neighbors_exchange())
#define LARGE_INITS(X)                                                                         \
	X(neighbor_alltoallv_init_c,                                                           \
	  MPI_Neighbor_alltoallv_init_c(ALL_LV, ring, MPI_INFO_NULL, r), neighbors_exchange()) \
	X(allgather_init_c, MPI_Allgather_init_c(ALL, ring, MPI_INFO_NULL, r), want_from_all(0))
#define LARGE_BLOCKING(X)                                            \
	X(allgather_c, MPI_Allgather_c(ALL, ring), want_from_all(0)) \
	X(neighbor_alltoallw_c, MPI_Neighbor_alltoallw_c(ALL_LW, ring), neighbors_exchange())
#else
#define LARGE(X)
#define LARGE_INITS(X)
#define LARGE_BLOCKING(X)
#endif

enum form { STARTED, INITIATED, BLOCKING };

#define NONBLOCKING_FUNCTION(name, call, arrives) \
	static void name(MPI_Request *r)          \
	{                                         \
		arrives;                          \
		call;                             \
	}
#define BLOCKING_FUNCTION(name, call, arrives) \
	static void name(MPI_Request *r)       \
	{                                      \
		arrives;                       \
		*r = MPI_REQUEST_NULL;         \
		call;                          \
	}

INEIGHBORS(NONBLOCKING_FUNCTION)
LARGE(NONBLOCKING_FUNCTION)
NEIGHBOR_INITS(NONBLOCKING_FUNCTION)
LARGE_INITS(NONBLOCKING_FUNCTION)
NEIGHBORS(BLOCKING_FUNCTION)
LARGE_BLOCKING(BLOCKING_FUNCTION)

static const struct kind {
	const char *name;
	enum form form;
	void (*call)(MPI_Request *request);
} kinds[] = {
#define OF_STARTED(name, call, arrives) { #name, STARTED, name },
#define OF_INIT(name, call, arrives) { #name, INITIATED, name },
#define OF_BLOCKING(name, call, arrives) { #name, BLOCKING, name },
	INEIGHBORS(OF_STARTED) LARGE(OF_STARTED) NEIGHBOR_INITS(OF_INIT) LARGE_INITS(OF_INIT)
		NEIGHBORS(OF_BLOCKING) LARGE_BLOCKING(OF_BLOCKING)
};
enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

static void prepare(void)
{
	for (int i = 0; i < INTS; i++) {
		in[i] = given(rank, i);
		out[i] = wanted[i] = -1;
	}
	MPI_Type_contiguous(BLOCK, MPI_INT, &block);
	MPI_Type_commit(&block);
	for (int r = 0; r < MOST_RANKS; r++) {
		counts[r] = BLOCK;
		displs[r] = r * BLOCK;
		places[r] = (MPI_Aint)(r * BLOCK * sizeof(int));
		types[r] = block;
#ifdef MPICH_VERSION
		lengths[r] = BLOCK;
		firsts[r] = r * BLOCK;
#endif
	}
}

/* The W variants count blocks, all others integers. */
static void count_blocks(const struct kind *kind)
{
	if (!strstr(kind->name, "alltoallw"))
		return;
	for (int r = 0; r < MOST_RANKS; r++) {
		counts[r] = 1;
#ifdef MPICH_VERSION
		lengths[r] = 1;
#endif
	}
}

static void tell_others(void)
{
	for (int r = 1; r < ranks; r++)
		MPI_Send(NULL, 0, MPI_BYTE, r, 1, MPI_COMM_WORLD);
}

/* Inside the MPI, so that it goes on with what is under way. */
static void look_around(void)
{
	int found;

	for (int i = 0; i < 100; i++)
		MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
}

static void check(const struct kind *kind, const int *before, const int *after)
{
	for (int i = 0; i < 5; i++)
		if ((i < 2 && before[i] != 70 + i) || after[i] != 80 + i)
			case_fail("beside %s: an MPI_Ibcast gave %d", kind->name,
				  i < 2 ? before[i] : after[i]);
	for (int i = 0; i < INTS; i++)
		if (out[i] != wanted[i])
			case_fail("%s: element %d is %d, not %d", kind->name, i, out[i], wanted[i]);
}

/* The new communicator is one of its own, with the group and topology of the other. */
static void check_made(const struct kind *kind)
{
	int result, value = rank ? -1 : 5;

	if (made == MPI_COMM_NULL)
		return;
	MPI_Comm_compare(made, ring, &result);
	MPI_Bcast(&value, 1, MPI_INT, 0, made);
	case_count(CASE_BCAST, 1);
	if (result != MPI_CONGRUENT || value != 5)
		case_fail("%s: the communicators compare as %d, a Bcast gave %d", kind->name,
			  result, value);
	MPI_Comm_free(&made);
}

/*
 * An MPI_Ibcast is before it and one behind it; on all ranks but 0 the former is over first. A call
 * that may wait for the members has rank 0 wait for nothing but those.
 */
static void between_others(const struct kind *kind)
{
	int periodic = 1, before[2], after[5];
	MPI_Request request[3];

	MPI_Cart_create(MPI_COMM_WORLD, 1, &ranks, &periodic, 0, &ring);
	/* The call in which its team is made or refused. */
	MPI_Barrier(ring);
	case_count(CASE_BARRIER, 1);
	prepare();
	count_blocks(kind);
	for (int i = 0; i < 5; i++) {
		before[i % 2] = rank ? -1 : 70 + i % 2;
		after[i] = rank ? -1 : 80 + i;
	}
	if (rank)
		MPI_Recv(NULL, 0, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Ibcast(before, 2, MPI_INT, 0, ring, &request[0]);
	if (rank)
		MPI_Wait(&request[0], MPI_STATUS_IGNORE);
	if (!rank && kind->form != STARTED)
		tell_others();
	kind->call(&request[1]);
	if (kind->form == INITIATED)
		MPI_Start(&request[1]);
	if (rank % 2)
		look_around();
	MPI_Ibcast(after, 5, MPI_INT, 0, ring, &request[2]);
	if (!rank && kind->form == STARTED)
		tell_others();
	MPI_Waitall(3, request, MPI_STATUSES_IGNORE);
	case_count(CASE_BCAST, 1);
	case_count(CASE_BCAST, 1);
	if (kind->form == INITIATED)
		MPI_Request_free(&request[1]);
	check(kind, before, after);
	check_made(kind);
	MPI_Type_free(&block);
	MPI_Comm_free(&ring);
}

int main(int argc, char **argv)
{
	const char *open_mpi = getenv("OMPI_COMM_WORLD_RANK"), *mpich = getenv("PMI_RANK");
	const char *number = open_mpi ? open_mpi : mpich;

	if (argc < 2 && number && !strcmp(number, "0"))
		setenv("ONECOPY_SEGMENT_BYTES", "64M", 1);
	case_begin(&argc, &argv, &rank, &ranks);
	/* With two, both neighbours are the same, and whose block is first is the MPI's affair. */
	if (ranks < 3 || ranks > MOST_RANKS)
		case_fail("this needs 3 to %d ranks", MOST_RANKS);
	for (int k = 0; k < KINDS; k++)
		between_others(&kinds[k]);
	return case_end("refused: %d calls between nonblocking ones, each in its place\n", KINDS);
}
