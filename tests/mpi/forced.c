/* SPDX-License-Identifier: BSD-3-Clause */
/* forced COLLECTIVE=ALGORITHM...: each forced at run time, for one communicator, by its info key.
 */
#include "case.h"

#include <string.h>

enum { CALLS = 10, BYTES = 40 };

/* Open MPI 4.1 does not have the nonblocking one. */
static void make(MPI_Info info, int nonblocking, MPI_Comm *comm)
{
#ifdef MPICH_VERSION
	MPI_Request request;

	if (nonblocking) {
		MPI_Comm_idup_with_info(MPI_COMM_WORLD, info, comm, &request);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
		return;
	}
#endif
	(void)nonblocking;
	MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, comm);
}

/* Of some ranks of the world, the first one not among them, with a key of ours and without: the
 * duplicate has their group, not that of what its handle was before. */
static void duplicate_a_part(int rank)
{
#ifdef MPICH_VERSION
	MPI_Comm part, duplicate;
	MPI_Request request;
	MPI_Info info;
	int alike;

	MPI_Info_create(&info);
	MPI_Info_set(info, "onecopy_bcast", "knomial:2");
	MPI_Comm_split(MPI_COMM_WORLD, !rank, rank, &part);
	for (int i = 0; i < 4; i++) {
		MPI_Comm of = i % 2 ? MPI_COMM_WORLD : part;

		MPI_Comm_idup_with_info(of, i < 2 ? MPI_INFO_NULL : info, &duplicate, &request);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
		MPI_Comm_compare(of, duplicate, &alike);
		if (alike != MPI_CONGRUENT)
			case_fail("a duplicate that was made by MPI_Comm_idup_with_info has "
				  "other members");
		MPI_Barrier(duplicate);
		MPI_Comm_free(&duplicate);
	}
	MPI_Comm_free(&part);
	MPI_Info_free(&info);
#endif
	(void)rank;
}

static void run_forced(const char *words, int ranks, int *calls)
{
	size_t length = strcspn(words, "=");
	enum case_collective collective = case_parse(words, length);
	char key[64];
	MPI_Info info;
	MPI_Comm comm;

	case_info_key(key, sizeof(key), collective);
	MPI_Info_create(&info);
	MPI_Info_set(info, key, words + length + 1);
	make(info, *calls / CALLS % 2, &comm);
	MPI_Info_free(&info);
	for (int i = 0; i < CALLS; i++) {
		struct case_call call = { .collective = collective,
					  .bytes = BYTES,
					  .root = i % ranks,
					  .kind = i,
					  .salt = (uint64_t)*calls };

		case_run(comm, &call);
		++*calls;
	}
	MPI_Comm_free(&comm);
}

int main(int argc, char **argv)
{
	int ranks, rank, calls = 0;

	case_begin(&argc, &argv, &rank, &ranks);
	for (int i = 1; i < argc; i++)
		run_forced(argv[i], ranks, &calls);
	duplicate_a_part(rank);
	return case_end("forced: %d calls on %d ranks, every byte right\n", calls, ranks);
}
