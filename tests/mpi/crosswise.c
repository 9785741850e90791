/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * More nonblocking calls than a small segment has slots, on several communicators, begun in another
 * order on each rank: none waits for a slot that a call of another communicator holds.
 */
#include "case.h"

#include <stdlib.h>
#include <string.h>

enum { COMMS = 4, CALLS = 8, ELEMENTS = 500, MOST_RANKS = 8, ROUNDS = 5 };

static int sent[COMMS][CALLS][ELEMENTS], received[COMMS][CALLS][MOST_RANKS * ELEMENTS];
static MPI_Request request[COMMS][CALLS];

static int element(int comm, int call, int round, int from, int at)
{
	return (((comm * CALLS + call) * ROUNDS + round) * MOST_RANKS + from) * ELEMENTS + at;
}

static void start(MPI_Comm comm, int c, int round, int rank)
{
	for (int i = 0; i < CALLS; i++) {
		for (int at = 0; at < ELEMENTS; at++)
			sent[c][i][at] = element(c, i, round, rank, at);
		memset(received[c][i], 0xff, sizeof(received[c][i]));
		MPI_Iallgather(sent[c][i], ELEMENTS, MPI_INT, received[c][i], ELEMENTS, MPI_INT,
			       comm, &request[c][i]);
		case_count(CASE_ALLGATHER, 1);
	}
}

static void check(int c, int round, int ranks)
{
	for (int i = 0; i < CALLS; i++) {
		for (int r = 0; r < ranks; r++) {
			for (int at = 0; at < ELEMENTS; at++) {
				if (received[c][i][r * ELEMENTS + at] !=
				    element(c, i, round, r, at))
					case_fail("communicator %d, call %d, round %d: element %d "
						  "of rank %d is wrong",
						  c, i, round, at, r);
			}
		}
	}
}

int main(int argc, char **argv)
{
	MPI_Comm comm[COMMS];
	int ranks, rank, token = 0;

	setenv("ONECOPY_SEGMENT_BYTES", "1M", 1);
	setenv("ONECOPY_ALLGATHER", "cico", 1);
	case_begin(&argc, &argv, &rank, &ranks);
	if (ranks > MOST_RANKS)
		case_fail("this needs at most %d ranks", MOST_RANKS);
	for (int c = 0; c < COMMS; c++) {
		MPI_Comm_dup(MPI_COMM_WORLD, &comm[c]);
		/* A first call that waits for the team. */
		MPI_Allgather(&rank, 1, MPI_INT, received[c][0], 1, MPI_INT, comm[c]);
		case_count(CASE_ALLGATHER, 1);
	}
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < COMMS; i++) {
			int c = rank % 2 ? COMMS - 1 - i : i;

			start(comm[c], c, round, rank);
			/* Both halves of the ranks have begun the calls of other communicators. */
			if (i == COMMS / 2 - 1)
				MPI_Sendrecv_replace(&token, 1, MPI_INT, (rank + 1) % ranks, 1,
						     (rank + ranks - 1) % ranks, 1, MPI_COMM_WORLD,
						     MPI_STATUS_IGNORE);
		}
		MPI_Waitall(COMMS * CALLS, &request[0][0], MPI_STATUSES_IGNORE);
		for (int c = 0; c < COMMS; c++)
			check(c, round, ranks);
	}
	for (int c = 0; c < COMMS; c++)
		MPI_Comm_free(&comm[c]);
	case_report();
	MPI_Finalize();
	return 0;
}
