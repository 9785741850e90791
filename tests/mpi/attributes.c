/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What an attribute's function starts goes on while the call that it is called from waits for the
 * other ranks, which are still waiting for it in their own functions: in MPI_Comm_dup first, whose
 * is the job's first nonblocking collective.
 */
#include "case.h"

#include <stdlib.h>
#include <unistd.h>

enum { INTS = 100000, IN_TIME_US = 50000 };

static int rank, ranks;
static int calls; /* of the functions; the number of this one's sums */
static int own[INTS], sums[INTS];
static MPI_Comm comm;
static MPI_Request request;

static void finish(void)
{
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	case_count(CASE_ALLREDUCE, 1);
	for (int i = 0; i < INTS; i++)
		if (sums[i] != ranks * (ranks - 1) / 2 + ranks * (i + calls))
			case_fail("function %d: sum %d is %d", calls, i, sums[i]);
}

/* All but rank 0 stay until there is the sum, for which each rank adds up a part. */
static void add_up(void)
{
	calls++;
	for (int i = 0; i < INTS; i++)
		own[i] = rank + i + calls;
	usleep(rank ? IN_TIME_US : 0);
	MPI_Iallreduce(own, sums, INTS, MPI_INT, MPI_SUM, comm, &request);
	if (rank)
		finish();
}

static int copy(MPI_Comm from, int keyval, void *extra, void *in, void *out, int *copied)
{
	(void)from;
	(void)keyval;
	(void)extra;
	add_up();
	*(void **)out = in;
	*copied = 1;
	return MPI_SUCCESS;
}

static int comm_goes(MPI_Comm gone, int keyval, void *value, void *extra)
{
	(void)gone;
	(void)keyval;
	(void)value;
	(void)extra;
	add_up();
	return MPI_SUCCESS;
}

static int window_goes(MPI_Win gone, int keyval, void *value, void *extra)
{
	(void)gone;
	(void)keyval;
	(void)value;
	(void)extra;
	add_up();
	return MPI_SUCCESS;
}

/* Behind a call of a function, if any: which calls copy attributes is in part the MPI's to say
 * (least 0), and both of Debian 12 do in all. */
static void came_back(const char *call, int least)
{
	static int before;

	if (calls < before + least)
		case_fail("%s did not call the attribute's function", call);
	if (!rank && calls > before)
		finish();
	before = calls;
}

static void copies(int key)
{
	MPI_Comm made;
	MPI_Win window;
	MPI_File file;

	MPI_Comm_set_attr(comm, key, &ranks);
	MPI_Comm_dup(comm, &made);
	came_back("MPI_Comm_dup", 1);
	MPI_Comm_free(&made);
	MPI_Comm_dup_with_info(comm, MPI_INFO_NULL, &made);
	came_back("MPI_Comm_dup_with_info", 1);
	MPI_Comm_free(&made);
	MPI_Win_create(own, sizeof(own), 1, MPI_INFO_NULL, comm, &window);
	came_back("MPI_Win_create", 0);
	MPI_Win_free(&window);
	MPI_File_open(comm, "/dev/null", MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
	came_back("MPI_File_open", 0);
	MPI_File_close(&file);
	MPI_Comm_delete_attr(comm, key);
}

static void ends(int comm_key, int window_key)
{
	MPI_Comm made;
	MPI_Win window;

	MPI_Win_create(own, sizeof(own), 1, MPI_INFO_NULL, comm, &window);
	MPI_Win_set_attr(window, window_key, &ranks);
	MPI_Win_free(&window);
	came_back("MPI_Win_free", 1);
	MPI_Comm_dup(comm, &made);
	MPI_Comm_set_attr(made, comm_key, &ranks);
	MPI_Comm_disconnect(&made);
	came_back("MPI_Comm_disconnect", 1);
}

int main(int argc, char **argv)
{
	int key, comm_key, window_key;

	(getenv("OC_TEST_THREADS") ? case_begin_threads : case_begin)(&argc, &argv, &rank, &ranks);
	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	case_barrier(comm); /* makes its team */
	MPI_Comm_create_keyval(copy, MPI_COMM_NULL_DELETE_FN, &key, NULL);
	MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, comm_goes, &comm_key, NULL);
	MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, window_goes, &window_key, NULL);
	copies(key);
	ends(comm_key, window_key);
	MPI_Comm_free_keyval(&key);
	MPI_Comm_free_keyval(&comm_key);
	MPI_Win_free_keyval(&window_key);
	MPI_Comm_free(&comm);
	return case_end("attributes: sums of %d functions\n", calls);
}
