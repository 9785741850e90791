// SPDX-License-Identifier: BSD-3-Clause
/*
 * Functions with large counts (MPI_..._c, MPICH alone): datatypes of their constructors, and calls
 * of each collective that some ranks make with large counts and the others with int ones, which
 * match, in all three forms. With a word as argument: such calls where they are the MPI's.
 */
#include "large.h"
#include "checked.h"

#include <stdlib.h>

static int rank, ranks, stock;
static MPI_Comm graph; /* where all are neighbors */

static void one_call(MPI_Comm comm, const struct checked_spec *spec, enum form form)
{
	struct checked call;

	if (form != FORM_PERSISTENT) {
		checked_run(comm, spec, form);
		return;
	}
	checked_open(&call, comm, spec);
	checked_init(&call);
	for (int run = 0; run < 2; run++) {
		checked_fill(&call, spec->salt + (unsigned int)run);
		checked_restart(&call);
		MPI_Wait(&call.request, MPI_STATUS_IGNORE);
		checked_verify(&call);
	}
	MPI_Request_free(&call.request);
	checked_close(&call);
}

static int all_calls(MPI_Comm comm)
{
	/* The ranks that have large counts, a bit each. */
	static const unsigned int masks[] = { 0x1, 0x2, 0xfe, 0xff };
	static const int blocks[] = { 3, 9000 };
	int calls = 0;

	for (int b = 0; b < 2; b++) {
		for (int f = CASE_BARRIER + 1; f < CASE_FUNCTIONS; f++) {
			enum case_collective function = (enum case_collective)f;
			MPI_Comm on = oci_is_neighbor(case_of(function)) ? graph : comm;

			/* MPICH 4.0.2 by itself fails in persistent ones. */
			for (int form = 0; form < (stock ? FORM_PERSISTENT : FORMS); form++) {
				unsigned int mask = masks[(unsigned int)calls % 4];
				struct checked_spec spec = {
					.collective = function,
					.elements = blocks[b],
					.plain = 1 + PLAIN_INTS,
					.root = calls / 4 % ranks,
					.in_place = calls % 3 == 2 && case_has_in_place(function),
					.shape = (unsigned int)calls,
					.salt = 2 * (unsigned int)calls,
					.stock = stock,
					.large = mask >> rank & 1,
				};

				one_call(on, &spec, (enum form)form);
				calls++;
			}
		}
	}
	return calls;
}

/* Communicators whose collectives are all the MPI's. */
static void forced_to_the_mpi(MPI_Comm *on)
{
	MPI_Info info;
	char key[64];

	MPI_Info_create(&info);
	for (int f = 0; f < CASE_FUNCTIONS; f++) {
		case_info_key(key, sizeof(key), (enum case_collective)f);
		MPI_Info_set(info, key, "mpi");
	}
	MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, on);
	case_all_neighbors(MPI_COMM_WORLD, info, &graph);
	MPI_Info_free(&info);
}

/* More bytes than there are addresses: an error on all ranks, nothing done and nobody left waiting.
 */
static void beyond_all_memory(void)
{
	MPI_Datatype huge;
	MPI_Comm comm;
	int byte = 0;

	MPI_Type_contiguous(1 << 30, MPI_DOUBLE, &huge);
	MPI_Type_commit(&huge);
	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
	if (MPI_Bcast_c(&byte, (MPI_Count)1 << 31, huge, 0, comm) == MPI_SUCCESS)
		case_fail("a Bcast of 2^64 bytes succeeded");
	MPI_Comm_free(&comm);
	MPI_Type_free(&huge);
}

int main(int argc, char **argv)
{
	MPI_Comm on;
	int calls, moved = 0, under_stock = getenv("OC_TEST_STOCK") != NULL;

	case_begin(&argc, &argv, &rank, &ranks);
	stock = argc > 1 || under_stock;
	if (argc > 1) {
		forced_to_the_mpi(&on);
		case_stop_counting();
		calls = all_calls(on);
		MPI_Comm_free(&on);
	} else {
		case_all_neighbors(MPI_COMM_WORLD, MPI_INFO_NULL, &graph);
		/* A nonblocking call would be the MPI's until the communicator is known. */
		case_barrier(graph);
		moved = large_types();
		calls = all_calls(MPI_COMM_WORLD);
		case_stop_counting();
		if (!under_stock)
			beyond_all_memory();
	}
	MPI_Comm_free(&graph);
	return case_end("large: %d layouts, %d calls of ranks with large and with int counts\n",
			moved, calls);
}
