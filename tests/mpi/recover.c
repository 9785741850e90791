/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The permission to copy goes away while the job runs: the last rank forbids it to itself after
 * the first collectives, and every later one must still be right.
 */
#include "case.h"
#include "filter.h"

#include <errno.h>
#include <string.h>

enum { ROUNDS = 3, BYTES = 300000 };

static void all_collectives(int ranks)
{
	static unsigned int calls;

	for (int round = 0; round < ROUNDS; round++) {
		for (int c = CASE_BCAST; c < CASE_COLLECTIVES; c++) {
			struct case_call call = { .collective = (enum case_collective)c,
						  .bytes = BYTES,
						  .root = (int)calls % ranks,
						  .in_place = round == 1,
						  .kind = (int)calls % CASE_KINDS,
						  .salt = calls };

			case_run(MPI_COMM_WORLD, &call);
			calls++;
		}
	}
}

int main(int argc, char **argv)
{
	int ranks, rank, err;

	case_begin(&argc, &argv, &rank, &ranks);
	all_collectives(ranks);
	if (rank == ranks - 1 && (err = filter_install(FILTER_COPIES, EPERM)))
		case_fail("the filter cannot be installed: %s", strerror(-err));
	all_collectives(ranks);
	return case_end("recover: %d ranks, every byte right before and after\n", ranks);
}
