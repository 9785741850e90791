// SPDX-License-Identifier: BSD-3-Clause
/*
 * More nonblocking calls than a small segment has slots, on several communicators, begun in another
 * order on each rank: none waits for a slot that a call of another communicator holds.
 */
#include "checked.h"

#include <stdlib.h>

enum { COMMS = 4, CALLS = 8, INTS = 1500 /* more than a small slot */, ROUNDS = 5 };

static struct checked call[COMMS][CALLS];
static MPI_Request request[COMMS][CALLS];

static struct checked_spec spec_of(int comm, int number, int round)
{
	return (struct checked_spec){ .collective = CASE_ALLGATHER,
				      .elements = INTS,
				      .plain = 1 + PLAIN_INTS,
				      .salt = (unsigned int)((comm * CALLS + number) * ROUNDS +
							     round) };
}

static void start(MPI_Comm comm, int c, int round)
{
	for (int i = 0; i < CALLS; i++) {
		struct checked_spec spec = spec_of(c, i, round);

		checked_open(&call[c][i], comm, &spec);
		checked_start(&call[c][i]);
		request[c][i] = call[c][i].request;
	}
}

int main(int argc, char **argv)
{
	MPI_Comm comm[COMMS];
	int ranks, rank, token = 0;

	setenv("ONECOPY_SEGMENT_BYTES", "1M", 1);
	setenv("ONECOPY_ALLGATHER", "cico", 1);
	case_begin(&argc, &argv, &rank, &ranks);
	for (int c = 0; c < COMMS; c++) {
		struct checked_spec spec = spec_of(c, 0, 0);

		MPI_Comm_dup(MPI_COMM_WORLD, &comm[c]);
		/* A first call that waits for the team. */
		checked_run(comm[c], &spec, FORM_BLOCKING);
	}
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < COMMS; i++) {
			int c = rank % 2 ? COMMS - 1 - i : i;

			start(comm[c], c, round);
			/* Both halves of the ranks have begun the calls of other communicators. */
			if (i == COMMS / 2 - 1)
				MPI_Sendrecv_replace(&token, 1, MPI_INT, (rank + 1) % ranks, 1,
						     (rank + ranks - 1) % ranks, 1, MPI_COMM_WORLD,
						     MPI_STATUS_IGNORE);
		}
		MPI_Waitall(COMMS * CALLS, &request[0][0], MPI_STATUSES_IGNORE);
		for (int i = 0; i < COMMS * CALLS; i++) {
			checked_verify(&call[i / CALLS][i % CALLS]);
			checked_close(&call[i / CALLS][i % CALLS]);
		}
	}
	for (int c = 0; c < COMMS; c++)
		MPI_Comm_free(&comm[c]);
	return case_end("crosswise: %d calls on %d ranks\n", ROUNDS * COMMS * CALLS, ranks);
}
