/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A random mix of collectives, sizes, roots and communicators: the whole, a duplicate, two halves
 * of a split, the whole in reverse order, and one that is made and freed again and again.
 *
 * random SEED STEPS: the same everywhere and in every run, so the driver can hold the checksum of
 * all received bytes against a run under the MPI alone.
 */
#include "case.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { WORLD, DUPLICATE, HALF, REVERSED, SHORT_LIVED, COMMS };
enum { LARGEST = 1 << 20, RENEW_EVERY = 40 };

static uint64_t state;

static uint32_t next(uint32_t below)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(((state >> 33) * below) >> 31);
}

/* Sizes of every order of magnitude alike, and every tenth at a threshold. */
static size_t next_bytes(void)
{
	static const size_t edges[] = { 0, 1, 496, 497, 4096, 65535, 65536, 65537 };
	uint32_t bits = next(20);

	if (next(10) == 0)
		return edges[next(sizeof(edges) / sizeof(edges[0]))];
	return ((size_t)1 << bits) + next(1u << bits);
}

static void create(MPI_Comm *comm, int rank)
{
	comm[WORLD] = MPI_COMM_WORLD;
	MPI_Comm_dup(MPI_COMM_WORLD, &comm[DUPLICATE]);
	MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &comm[HALF]);
	MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comm[REVERSED]);
	MPI_Comm_dup(comm[REVERSED], &comm[SHORT_LIVED]);
}

static void one_step(MPI_Comm *comm, int step, int rank)
{
	uint32_t which = next(COMMS), late = next(64);
	struct case_call call = { .collective = (enum case_collective)next(CASE_COLLECTIVES),
				  .bytes = next_bytes(),
				  .in_place = (int)next(2),
				  .kind = (int)next(CASE_KINDS) };
	uint32_t root = next(1 << 20);
	int ranks;

	MPI_Comm_size(comm[which], &ranks);
	call.root = (int)(root % (uint32_t)ranks);
	/* The members of one half differ from those of the other in what they send. */
	call.salt = (uint64_t)step * 2 + (which == HALF ? (uint64_t)rank % 2 : 0);
	while (case_buffer_bytes(&call, ranks) > LARGEST)
		call.bytes /= 2;
	if (late == (uint32_t)rank)
		usleep(2000);
	case_run(comm[which], &call);
	if (step % RENEW_EVERY == 0) {
		MPI_Comm_free(&comm[SHORT_LIVED]);
		MPI_Comm_dup(comm[REVERSED], &comm[SHORT_LIVED]);
	}
}

int main(int argc, char **argv)
{
	MPI_Comm comm[COMMS];
	int steps, rank;

	case_begin(&argc, &argv, &rank, NULL);
	if (argc != 3)
		case_fail("usage: random SEED STEPS");
	state = strtoull(argv[1], NULL, 10);
	steps = atoi(argv[2]);
	if (!rank)
		printf("seed %s, %d steps\n", argv[1], steps);
	create(comm, rank);
	for (int step = 1; step <= steps; step++)
		one_step(comm, step, rank);
	for (int i = DUPLICATE; i < COMMS; i++)
		MPI_Comm_free(&comm[i]);
	case_report();
	MPI_Finalize();
	return 0;
}
