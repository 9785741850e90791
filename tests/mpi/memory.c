/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank that lacks memory: the communicator stays with the MPI and every call works, or the calls
 * fail on all ranks. None hangs.
 *
 * The allocations that fail are those of the front end, told by the address of their caller.
 */
#define _GNU_SOURCE 1 /* dladdr() */
#include "case.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef MPICH_VERSION
#define FRONT_END "onecopy-pmpi"
#else
#define FRONT_END "coll_onecopy"
#endif
#if defined(OPEN_MPI) && OMPI_MAJOR_VERSION < 5
#include <mpi-ext.h>
#define ALLREDUCE_INIT MPIX_Allreduce_init
#else
#define ALLREDUCE_INIT MPI_Allreduce_init
#endif

enum { COUNT = 1000, CALLS = 20 };

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_memalign(size_t align, size_t bytes);

/* Of the front end: allocations until one fails, -1: all; bytes of the largest that does not fail;
 * how many of LARGE and more did not. */
enum { LARGE = 1 << 20 };
static volatile int allowed = -1;
static volatile size_t most = SIZE_MAX;
static volatile int large;

static int is_front_end(void *caller)
{
	Dl_info info;

	return dladdr(caller, &info) && strstr(info.dli_fname, FRONT_END);
}

static int fails(void *caller)
{
	if (allowed < 0 || !is_front_end(caller) || allowed-- > 0)
		return 0;
	errno = ENOMEM;
	return 1;
}

static int is_too_large(size_t bytes, void *caller)
{
	if (most == SIZE_MAX || bytes < LARGE || !is_front_end(caller))
		return 0;
	if (bytes <= most) {
		large++;
		return 0;
	}
	errno = ENOMEM;
	return 1;
}

#define EXPORTED __attribute__((visibility("default")))

EXPORTED void *malloc(size_t bytes)
{
	void *caller = __builtin_return_address(0);

	return fails(caller) || is_too_large(bytes, caller) ? NULL : __libc_malloc(bytes);
}

EXPORTED void *calloc(size_t count, size_t bytes)
{
	return fails(__builtin_return_address(0)) ? NULL : __libc_calloc(count, bytes);
}

EXPORTED void *aligned_alloc(size_t align, size_t bytes)
{
	return fails(__builtin_return_address(0)) ? NULL : __libc_memalign(align, bytes);
}

static int sum(MPI_Comm comm, int ranks)
{
	double in = 1, out = 0;
	int error = MPI_Allreduce(&in, &out, 1, MPI_DOUBLE, MPI_SUM, comm);

	if (error == MPI_SUCCESS && out != ranks)
		case_fail("an Allreduce gave %g instead of %d", out, ranks);
	return error;
}

static int wait_for(MPI_Request *request, int count, const double *out, int ranks)
{
	int error = MPI_Waitall(count, request, MPI_STATUSES_IGNORE);

	for (int i = 0; i < count && error == MPI_SUCCESS; i++)
		if (out[i] != ranks)
			case_fail("a nonblocking Allreduce gave %g instead of %d", out[i], ranks);
	return error;
}

/* Two of them outstanding, behind the call that makes the team. What could not be started is no
 * request. */
static int sum_nonblocking(MPI_Comm comm, int ranks)
{
	MPI_Request request[2] = { MPI_REQUEST_NULL, MPI_REQUEST_NULL };
	double in = 1, out[2] = { 0, 0 };
	int error = MPI_Barrier(comm);

	for (int i = 0; i < 2 && error == MPI_SUCCESS; i++)
		error = MPI_Iallreduce(&in, &out[i], 1, MPI_DOUBLE, MPI_SUM, comm, &request[i]);
	if (error != MPI_SUCCESS)
		MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
	return error == MPI_SUCCESS ? wait_for(request, 2, out, ranks) : error;
}

static int sum_persistent(MPI_Comm comm, int ranks)
{
	MPI_Request request;
	double in = 1, out = 0;
	int error =
		ALLREDUCE_INIT(&in, &out, 1, MPI_DOUBLE, MPI_SUM, comm, MPI_INFO_NULL, &request);

	if (error != MPI_SUCCESS)
		return error;
	for (int start = 0; start < 2 && error == MPI_SUCCESS; start++) {
		out = 0;
		error = MPI_Start(&request);
		if (error == MPI_SUCCESS)
			error = MPI_Wait(&request, MPI_STATUS_IGNORE);
		if (error == MPI_SUCCESS && out != ranks)
			case_fail("a persistent Allreduce gave %g instead of %d", out, ranks);
	}
	if (request != MPI_REQUEST_NULL) /* Open MPI frees one that fails */
		MPI_Request_free(&request);
	return error;
}

static int (*const forms[])(MPI_Comm comm, int ranks) = { sum, sum_nonblocking, sum_persistent };
enum { FORMS = sizeof(forms) / sizeof(forms[0]) };

/*
 * The allocation number `nth` of the last rank fails while a team is made and used first: calls
 * work on all ranks or fail on all. Returns whether there was such an allocation.
 */
static int without_team(int form, int nth, int rank, int ranks)
{
	int last = ranks - 1, error = MPI_SUCCESS, mine[2], all[2];
	MPI_Comm comm;

	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
	if (rank == last)
		allowed = nth;
	for (int i = 0; i < CALLS && error == MPI_SUCCESS; i++)
		error = forms[form](comm, ranks);
	mine[0] = error != MPI_SUCCESS;
	mine[1] = rank == last && allowed < 0;
	allowed = -1;
	MPI_Allreduce(mine, all, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (all[0] && all[0] != ranks)
		case_fail("form %d without allocation %d: errors on %d of %d ranks", form, nth,
			  all[0], ranks);
	MPI_Comm_free(&comm);
	return all[1];
}

static void without_copy(int rank, int ranks)
{
	static int data[4 * COUNT];
	char sentence[MPI_MAX_ERROR_STRING];
	MPI_Datatype gaps;
	MPI_Comm comm;
	int error, length;

	MPI_Type_vector(COUNT, 1, 2, MPI_INT, &gaps);
	MPI_Type_commit(&gaps);
	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
	for (int i = 0; i < CALLS; i++)
		if (sum(comm, ranks) != MPI_SUCCESS)
			case_fail("an Allreduce failed");
	/* What is kept of a type for later calls may lack memory: this one's is there. Its copy is
	 * kept, too, and too short for the next. */
	if (MPI_Bcast(data, 1, gaps, 0, comm) != MPI_SUCCESS)
		case_fail("a Bcast failed");
	if (rank == ranks - 1)
		allowed = 0;
	error = MPI_Bcast(data, 2, gaps, 0, comm);
	allowed = -1;
	/* Ranks that the last one owes nothing in a Bcast learn it in their next call. */
	if (error == MPI_SUCCESS)
		error = MPI_Barrier(comm);
	if (error == MPI_SUCCESS)
		case_fail("a Bcast without memory on rank %d was no error", ranks - 1);
	MPI_Error_string(error, sentence, &length);
	printf("rank %d: %s\n", rank, sentence);
	MPI_Comm_free(&comm);
	MPI_Type_free(&gaps);
}

static void sum_many(MPI_Comm comm, int ranks, int bytes)
{
	int count = bytes / (int)sizeof(double);
	double *in = malloc((size_t)bytes), *out = malloc((size_t)bytes);

	for (int i = 0; i < count; i++)
		in[i] = i % 7;
	MPI_Allreduce(in, out, count, MPI_DOUBLE, MPI_SUM, comm);
	for (int i = 0; i < count; i++)
		if (out[i] != i % 7 * ranks)
			case_fail("byte %zu of an Allreduce of %d bytes is wrong",
				  (size_t)i * sizeof(double), bytes);
	free(in);
	free(out);
}

/* A leader that lacks memory for one call has it for a smaller one. */
static void for_a_smaller_call(MPI_Comm comm, int rank, int ranks)
{
	int leader = ranks / 2, before = large;

	most = rank == leader ? 4 << 20 : SIZE_MAX - 1;
	sum_many(comm, ranks, 8 << 20);
	if (rank == leader && large != before)
		case_fail("an Allreduce of 8 MiB had memory");
	sum_many(comm, ranks, 2 << 20);
	if (rank == leader && large == before)
		case_fail(
			"an Allreduce of 2 MiB behind one that lacked memory did not ask for any");
	most = SIZE_MAX;
}

/*
 * Over several hosts (the word "across"): the last rank has no memory for its request, or for what
 * a persistent call has for itself. As others may have begun already, all calls are right.
 */
static int on_several_hosts(int rank, int ranks)
{
	enum { FAIL = 6 };
#ifdef MPICH_VERSION
	const int expected = FAIL; /* the requests of the calls before are used again */
#else
	const int expected = FAIL + 1;
#endif
	int failed = 0;
	MPI_Comm comm;

	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	/* The first are the MPI's, and the next Barrier makes what they want. */
	for (int i = 0; i < 3; i++)
		sum_nonblocking(comm, ranks);
	for (int nth = 0; nth < FAIL; nth++) {
		for (int form = 1; form < FORMS; form++) {
			/* Later ones of a nonblocking call are the engine's. */
			if (form == 1 && nth)
				continue;
			if (rank == ranks - 1)
				allowed = nth;
			forms[form](comm, ranks);
			failed += rank == ranks - 1 && allowed < 0;
			allowed = -1;
		}
	}
	if (rank == ranks - 1 && failed != expected)
		case_fail("%d of %d allocations failed", failed, expected);
	for_a_smaller_call(comm, rank, ranks);
	MPI_Comm_free(&comm);
	return case_end("memory: over hosts, %d allocations failed in turn\n", expected);
}

int main(int argc, char **argv)
{
	int ranks, rank, nth, total = 0;

	case_begin(&argc, &argv, &rank, &ranks);
	if (argc > 1)
		return on_several_hosts(rank, ranks);
	for (int form = 0; form < FORMS; form++) {
		for (nth = 0; without_team(form, nth, rank, ranks); nth++)
			total++;
		if (!rank && nth < 2)
			case_fail("form %d: the front end allocated nothing", form);
	}
	without_copy(rank, ranks);
	return case_end("memory: %d allocations failed in turn, each without a hang\n", total);
}
