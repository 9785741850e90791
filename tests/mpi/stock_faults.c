/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What MPICH 4.0.2 by itself does wrong, each in a few lines: why soak.c and avoid_faults() in
 * checked.c leave these calls to onecopy, or out. Run by hand, without onecopy, on 2 ranks:
 *
 *   mpirun.mpich -n 2 oc_mpich_stock_faults
 *   mpirun.mpich -n 2 oc_mpich_stock_faults reduce
 *
 * Each rank prints a line a fault, "shows" or "does not show". The second one crashes.
 */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

enum { INTS = 4, REQUESTS = 3, RUNS = 100, BLOCK = 1024 };

static int rank;

static void tell(const char *fault, int shows)
{
	printf("rank %d: %s: %s\n", rank, fault, shows ? "shows" : "does not show");
	fflush(stdout);
}

/* Its data moves in the _init call, and nothing in MPI_Start. */
static void gather_init(void)
{
	int mine[INTS] = { 1, 2, 3, 4 }, all[2 * INTS] = { 0 }, at_init;
	MPI_Request request;

	MPI_Gather_init(mine, INTS, MPI_INT, all, INTS, MPI_INT, 0, MPI_COMM_WORLD, MPI_INFO_NULL,
			&request);
	at_init = all[0] != 0;
	memset(all, 0, sizeof(all));
	MPI_Start(&request);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	if (!rank)
		tell("MPI_Gather_init moves the data, MPI_Start none", at_init || !all[0]);
	MPI_Request_free(&request);
}

static void persistent(int in[][INTS], int out[][INTS], MPI_Request *request)
{
	for (int i = 0; i < REQUESTS; i++)
		MPI_Allreduce_init(in[i], out[i], INTS, MPI_INT, MPI_SUM, MPI_COMM_SELF,
				   MPI_INFO_NULL, &request[i]);
}

/* MPIR_Request_is_active() does not know persistent collectives: Testall takes all for failed. */
static void testall(void)
{
	int in[REQUESTS][INTS] = { 0 }, out[REQUESTS][INTS], flag = 0, error = MPI_SUCCESS;
	MPI_Request request[REQUESTS];

	persistent(in, out, request);
	MPI_Startall(REQUESTS, request);
	while (!flag && !error)
		error = MPI_Testall(REQUESTS, request, &flag, MPI_STATUSES_IGNORE);
	tell("MPI_Testall of persistent collectives is an error", error != MPI_SUCCESS);
	MPI_Waitall(REQUESTS, request, MPI_STATUSES_IGNORE);
	for (int i = 0; i < REQUESTS; i++)
		MPI_Request_free(&request[i]);
}

/* Nor does Waitany: it gives the first one again and again, and the others stay active. */
static void waitany(void)
{
	int in[REQUESTS][INTS] = { 0 }, out[REQUESTS][INTS], index, refused = 0;
	MPI_Request request[REQUESTS];

	persistent(in, out, request);
	for (int run = 0; run < RUNS; run++) {
		for (int i = 0; i < REQUESTS; i++)
			refused += MPI_Start(&request[i]) != MPI_SUCCESS;
		for (int i = 0; i < REQUESTS; i++)
			MPI_Waitany(REQUESTS, request, &index, MPI_STATUS_IGNORE);
	}
	tell("MPI_Waitany completes one persistent collective of three", refused > 0);
	MPI_Waitall(REQUESTS, request, MPI_STATUSES_IGNORE);
	for (int i = 0; i < REQUESTS; i++)
		MPI_Request_free(&request[i]);
}

/*
 * The message for block j is taken for one of the size of the type of block min(rank, j). Rank 1's
 * block 0 is ints, its block 1 bytes; rank 0 has it the other way round.
 */
static void ialltoallw(void)
{
	unsigned char buffer[2][INTS * sizeof(int)];
	int counts[2], places[2] = { 0, sizeof(buffer[0]) }, error;
	MPI_Datatype types[2];
	MPI_Request request;

	memset(buffer, rank + 1, sizeof(buffer));
	for (int block = 0; block < 2; block++) {
		types[block] = block == rank ? MPI_BYTE : MPI_INT;
		counts[block] = block == rank ? INTS * (int)sizeof(int) : INTS;
	}
	error = MPI_Ialltoallw(MPI_IN_PLACE, NULL, NULL, NULL, buffer, counts, places, types,
			       MPI_COMM_WORLD, &request);
	if (!error)
		error = MPI_Wait(&request, MPI_STATUS_IGNORE);
	tell("MPI_Ialltoallw in place mixes up the sizes of types",
	     error || buffer[!rank][INTS * sizeof(int) - 1] != !rank + 1);
}

/* Above 2 KiB the node reduces to its rank 0 first, and the root gives MPI_IN_PLACE to that, too.
 */
static void reduce(void)
{
	static int mine[BLOCK], result[BLOCK];

	MPI_Reduce(rank ? MPI_IN_PLACE : mine, result, BLOCK, MPI_INT, MPI_SUM, 1, MPI_COMM_WORLD);
	tell("MPI_Reduce in place at root 1 crashes", 0);
}

int main(int argc, char **argv)
{
	int ranks;

	MPI_Init(&argc, &argv);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	if (ranks != 2) {
		fprintf(stderr, "stock_faults: 2 ranks were expected, not %d\n", ranks);
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	if (argc > 1) {
		reduce();
		MPI_Finalize();
		return 0;
	}
	gather_init();
	testall();
	waitany();
	MPI_Barrier(MPI_COMM_WORLD);
	ialltoallw();
	MPI_Finalize();
	return 0;
}
