/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Communicators over several nodes that are left to MPI_Finalize, behind ones that were freed
 * before they had a collective, and with requests that are over.
 */
#include "case.h"

enum { LEFT = 20 };

int main(int argc, char **argv)
{
	MPI_Comm left[2 * LEFT];
	MPI_Request request;
	int rank, ranks, sum;

	case_begin(&argc, &argv, &rank, &ranks);
	for (int i = 0; i < 2 * LEFT; i++)
		MPI_Comm_dup(MPI_COMM_WORLD, &left[i]);
	for (int i = 0; i < 2 * LEFT; i += 2)
		MPI_Comm_free(&left[i]);
	/* The second time around nonblocking calls go in two levels. */
	for (int k = 0; k < 2 * LEFT; k++) {
		int i = 2 * (k % LEFT) + 1;

		MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, left[i]);
		if (sum != ranks * (ranks - 1) / 2)
			case_fail("the sum on communicator %d is %d", i, sum);
		MPI_Ibarrier(left[i], &request);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
	}
	return case_end("unfreed: %d communicators are left\n", LEFT);
}
