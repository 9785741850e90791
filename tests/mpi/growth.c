/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory of many calls: of each collective in each form there come calls after which what the C
 * library has given out is what it was. Some grow: plans, types that were seen, packed copies, and
 * what the MPIs keep. What leaks does in each of them.
 *
 * growth left: once, as calls of the MPI are among them.
 */
#include "checked.h"

#include <limits.h>
#include <malloc.h>

enum { CALLS = 48, ELEMENTS = 3000, LEAST_LEAK = 16, TURNS = 10 };

static int plain; /* numbers: the MPIs get other layouts wrong, by themselves */

static long used(void)
{
	struct mallinfo2 info = mallinfo2();

	return (long)(info.uordblks + info.hblkhd);
}

static void calls(MPI_Comm comm, enum case_collective collective, enum form form, int ranks)
{
	for (int i = 0; i < CALLS; i++) {
		struct checked_spec spec = { .collective = collective,
					     .elements = i % 4 ? ELEMENTS : 20,
					     .root = i % ranks,
					     .layout = i / 4,
					     .plain = plain,
					     .stock = 1,
					     .shape = 1,
					     .salt = (uint64_t)i };

		checked_run(comm, &spec, form);
	}
}

/* Large pieces with gaps, which peers are told of by lists. */
static void pieces(MPI_Comm comm, enum form form, int ranks)
{
	enum { PIECES = 40, PIECE = 1024 };
	static int from[4 * PIECES * 2 * PIECE], to[4 * PIECES * 2 * PIECE];
	MPI_Datatype vector, type;
	MPI_Request request;

	if (ranks > 4)
		return;
	MPI_Type_vector(PIECES, PIECE, 2 * PIECE, MPI_INT, &vector);
	MPI_Type_create_resized(vector, 0, PIECES * 2 * PIECE * sizeof(int), &type);
	MPI_Type_commit(&type);
	for (int i = 0; i < CALLS; i++) {
		struct arguments a = { .collective = CASE_ALLTOALL,
				       .send = from,
				       .recv = to,
				       .send_count = 1,
				       .recv_count = 1,
				       .send_type = type,
				       .recv_type = type,
				       .comm = comm };

		form_begin(&a, form, &request);
		if (form == FORM_PERSISTENT)
			MPI_Start(&request);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
		if (form == FORM_PERSISTENT)
			MPI_Request_free(&request);
		case_count(CASE_ALLTOALL, 0);
	}
	MPI_Type_free(&type);
	MPI_Type_free(&vector);
}

/* As many turns on all ranks. */
static int all_say(int yes)
{
	int all;

	MPI_Allreduce(&yes, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
	case_count(CASE_ALLREDUCE, 1);
	return all;
}

int main(int argc, char **argv)
{
	int rank, ranks;
	MPI_Comm comm;
	long most = 0;

	case_begin(&argc, &argv, &rank, &ranks);
	layouts_make();
	plain = argc > 1;
	case_all_neighbors(MPI_COMM_WORLD, MPI_INFO_NULL, &comm);
	for (int c = 0; c <= CASE_FUNCTIONS; c++) {
		for (int f = 0; f < FORMS; f++) {
			long least = LONG_MAX;
			int over = 0;

			/* What the MPI's own calls take is not held against it. */
			for (int turn = 0; turn < (argc > 1 ? 1 : TURNS) && !over; turn++) {
				long before = used(), grown;

				if (c == CASE_FUNCTIONS)
					pieces(comm, (enum form)f, ranks);
				else
					calls(comm, (enum case_collective)c, (enum form)f, ranks);
				grown = used() - before;
				least = grown < least ? grown : least;
				over = all_say(least < CALLS * LEAST_LEAK);
			}
			most = least > most ? least : most;
			if (!over && argc == 1 && least >= CALLS * LEAST_LEAK)
				case_fail("%d calls of %s, %s, take %ld bytes more", CALLS,
					  c < CASE_FUNCTIONS ? case_names[c] : "pieces",
					  form_names[f], least);
		}
	}
	MPI_Comm_free(&comm);
	return case_end("growth: %d ranks, %d calls each: at most %ld bytes more\n", ranks, CALLS,
			most);
}
