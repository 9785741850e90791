/* SPDX-License-Identifier: BSD-3-Clause */
/* A session's communicator, whose collectives go on before MPI_Init and after MPI_Finalize. */
#include "case.h"

#include <stdio.h>

enum { CALLS = 100 };

static int rank, ranks;

static void use(MPI_Comm comm, const char *when, int served)
{
	int own, sum, blocking, expected;
	MPI_Request request;

	MPI_Comm_rank(comm, &rank);
	MPI_Comm_size(comm, &ranks);
	for (int i = 0; i < CALLS; i++) {
		own = rank + i;
		expected = ranks * (ranks - 1) / 2 + i * ranks;
		MPI_Allreduce(&own, &blocking, 1, MPI_INT, MPI_SUM, comm);
		MPI_Iallreduce(&own, &sum, 1, MPI_INT, MPI_SUM, comm, &request);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
		for (int form = 0; form < 2 * served; form++)
			case_count(CASE_ALLREDUCE, 1);
		if (blocking != expected || sum != expected)
			case_fail("%s: sums are %d and %d instead of %d", when, blocking, sum,
				  expected);
	}
}

int main(int argc, char **argv)
{
	MPI_Session session;
	MPI_Group group;
	MPI_Comm comm;

	MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
	MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
	MPI_Comm_create_from_group(group, "sessions", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
	MPI_Group_free(&group);
	use(comm, "before MPI_Init", 0);
	case_begin(&argc, &argv, &rank, &ranks);
	use(MPI_COMM_WORLD, "in between", 1);
	use(comm, "in between", 1);
	case_report();
	MPI_Finalize();
	use(comm, "behind MPI_Finalize", 0);
	MPI_Comm_free(&comm);
	MPI_Session_finalize(&session);
	if (!rank)
		printf("sessions: sums before, between and behind on %d ranks are right\n", ranks);
	return 0;
}
