/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_Finalize calls the delete functions of MPI_COMM_SELF's attributes while MPI can still be
 * used: libraries end there what they have begun. One of them starts a persistent collective that
 * was made before, and calls blocking and nonblocking ones, also on MPI_COMM_SELF; the attribute of
 * another one was set first, so it comes after that, and frees the request.
 */
#include "case.h"

#include <stdio.h>

#if defined(OPEN_MPI) && OMPI_MAJOR_VERSION < 5
#include <mpi-ext.h>
#define ALLREDUCE_INIT MPIX_Allreduce_init
#else
#define ALLREDUCE_INIT MPI_Allreduce_init
#endif

enum { STARTS = 3 };

static int rank, ranks, in, out;
static MPI_Request kept;

static void check(const char *what, int want)
{
	if (out != want)
		case_fail("%s in MPI_Finalize gave %d instead of %d", what, out, want);
	out = -1;
}

static int works(MPI_Comm comm, int keyval, void *value, void *extra)
{
	MPI_Request request;

	(void)keyval;
	(void)value;
	(void)extra;
	for (int i = 0; i < STARTS; i++) {
		in = rank + i;
		MPI_Start(&kept);
		MPI_Wait(&kept, MPI_STATUS_IGNORE);
		check("a persistent MPI_Allreduce", ranks * (ranks - 1) / 2 + ranks * i);
	}
	MPI_Allreduce(&rank, &out, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
	check("MPI_Allreduce", ranks - 1);
	MPI_Iallreduce(&rank, &out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	check("MPI_Iallreduce", ranks * (ranks - 1) / 2);
	MPI_Allreduce(&rank, &out, 1, MPI_INT, MPI_SUM, comm);
	check("MPI_Allreduce of one process", rank);
	return MPI_SUCCESS;
}

static int gives_back(MPI_Comm comm, int keyval, void *value, void *extra)
{
	(void)comm;
	(void)keyval;
	(void)value;
	(void)extra;
	MPI_Request_free(&kept);
	if (!rank)
		puts("given back");
	return MPI_SUCCESS;
}

static void at_the_end(MPI_Comm_delete_attr_function *function)
{
	int keyval;

	MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, function, &keyval, NULL);
	MPI_Comm_set_attr(MPI_COMM_SELF, keyval, NULL);
	MPI_Comm_free_keyval(&keyval);
}

int main(int argc, char **argv)
{
	int provided;

	case_begin_threads(&argc, &argv, &provided, &rank, &ranks);
	at_the_end(gives_back);
	at_the_end(works);
	MPI_Allreduce(&rank, &out, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
	ALLREDUCE_INIT(&in, &out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &kept);
	/* This one, and those of the delete function. */
	for (int i = 0; i < 1 + STARTS + 2; i++)
		case_count(CASE_ALLREDUCE, 1);
	return case_end("last uses: collectives in MPI_Finalize");
}
