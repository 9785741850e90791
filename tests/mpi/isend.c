/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A large MPI_Isend is outstanding while its sender enters a collective.
 *
 * Form 0: the receiver takes it before it enters the collective, so the collective's wait on the
 * sender's side must drive the MPI. Form 1: after it. Form 2: the receiver has a receive posted
 * before, and waits for it afterwards. Each in front of each collective, from each rank to the
 * next.
 */
#include "case.h"

#include <stdlib.h>
#include <string.h>

enum { MESSAGE_BYTES = 8 << 20, FORMS = 3, TAG = 5 };

static char *message, *received;
static unsigned int round_number;

static void check(int source)
{
	unsigned char expected = (unsigned char)(round_number * 7 + (unsigned int)source + 1);

	for (size_t i = 0; i < MESSAGE_BYTES; i += 4095)
		if ((unsigned char)received[i] != expected)
			case_fail("round %u: byte %zu of the message from rank %d is 0x%02x, not "
				  "0x%02x",
				  round_number, i, source, (unsigned char)received[i], expected);
}

static void one_round(const struct case_call *call, int form, int source, int target, int rank)
{
	MPI_Request request = MPI_REQUEST_NULL;

	if (rank == source) {
		memset(message, (int)(round_number * 7 + (unsigned int)source + 1), MESSAGE_BYTES);
		MPI_Isend(message, MESSAGE_BYTES, MPI_BYTE, target, TAG, MPI_COMM_WORLD, &request);
	}
	if (rank == target && form == 0)
		MPI_Recv(received, MESSAGE_BYTES, MPI_BYTE, source, TAG, MPI_COMM_WORLD,
			 MPI_STATUS_IGNORE);
	if (rank == target && form == 2)
		MPI_Irecv(received, MESSAGE_BYTES, MPI_BYTE, source, TAG, MPI_COMM_WORLD, &request);
	case_run(MPI_COMM_WORLD, call);
	if (rank == target && form == 1)
		MPI_Recv(received, MESSAGE_BYTES, MPI_BYTE, source, TAG, MPI_COMM_WORLD,
			 MPI_STATUS_IGNORE);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	if (rank == target)
		check(source);
	round_number++;
}

int main(int argc, char **argv)
{
	static const size_t sizes[] = { 8, 200000 };
	int ranks, rank;

	case_begin(&argc, &argv, &rank, &ranks);
	message = malloc(MESSAGE_BYTES);
	received = malloc(MESSAGE_BYTES);
	if (!message || !received)
		case_fail("no memory");
	for (int c = 0; c < CASE_COLLECTIVES; c++) {
		for (int form = 0; form < FORMS; form++) {
			for (int s = 0; s < 2; s++) {
				int source = (c + form) % ranks, target = (source + 1 + s) % ranks;
				struct case_call call = { .collective = (enum case_collective)c,
							  .bytes = sizes[s],
							  .root = (target + form) % ranks,
							  .kind = c,
							  .salt = round_number };

				if (source != target)
					one_round(&call, form, source, target, rank);
			}
		}
	}
	return case_end("isend: %u rounds on %d ranks, every byte right\n", round_number, ranks);
}
