/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What an attribute's copy function starts goes on while MPI_Comm_dup,
 * MPI_Win_create and MPI_File_open wait for the other ranks, which are still waiting for it in
 * their own copy functions: the job's first nonblocking collective, and one that begins as another
 * ends.
 */
#include "case.h"

#include <stdlib.h>
#include <unistd.h>

enum { INTS = 100000, IN_TIME_US = 50000 };

static int rank, ranks;
static int copies; /* calls of the function below, the number of this one's sums */
static int own[INTS], sums[INTS];
static MPI_Request request = MPI_REQUEST_NULL;

static void finish(void)
{
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	case_count(CASE_ALLREDUCE, 1);
	for (int i = 0; i < INTS; i++)
		if (sums[i] != ranks * (ranks - 1) / 2 + ranks * (i + copies))
			case_fail("copy %d: sum %d is %d", copies, i, sums[i]);
}

/* All but rank 0 stay until there is the sum, for which each rank adds up a part. */
static int add_up(MPI_Comm comm, int keyval, void *extra, void *in, void *out, int *copied)
{
	(void)keyval;
	(void)extra;
	copies++;
	for (int i = 0; i < INTS; i++)
		own[i] = rank + i + copies;
	usleep(rank ? IN_TIME_US : 0);
	MPI_Iallreduce(own, sums, INTS, MPI_INT, MPI_SUM, comm, &request);
	if (rank)
		finish();
	*(void **)out = in;
	*copied = 1;
	return MPI_SUCCESS;
}

int main(int argc, char **argv)
{
	MPI_Comm comm, made;
	MPI_Win window;
	MPI_File file;
	int key, expected = 0;

	(getenv("OC_TEST_THREADS") ? case_begin_threads : case_begin)(&argc, &argv, &rank, &ranks);
	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	case_barrier(comm); /* makes its team */
	MPI_Comm_create_keyval(add_up, MPI_COMM_NULL_DELETE_FN, &key, NULL);
	MPI_Comm_set_attr(comm, key, &ranks);

	MPI_Comm_dup(comm, &made);
	expected++;
	if (!rank)
		finish();
	MPI_Comm_free(&made);
	MPI_Comm_dup_with_info(comm, MPI_INFO_NULL, &made);
	expected++;
	if (!rank)
		finish();
	MPI_Comm_free(&made);
	if (copies != expected)
		case_fail("%d copies called the function, not %d", copies, expected);
	/* Whether these copy attributes is the MPI's to say. */
	MPI_Win_create(own, sizeof(own), 1, MPI_INFO_NULL, comm, &window);
	if (!rank && copies != expected)
		finish();
	MPI_Win_free(&window);
	expected = copies;
	MPI_File_open(comm, "/dev/null", MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
	if (!rank && copies != expected)
		finish();
	MPI_File_close(&file);

	MPI_Comm_delete_attr(comm, key);
	MPI_Comm_free_keyval(&key);
	MPI_Comm_free(&comm);
	return case_end("attributes: sums of %d copy functions\n", copies);
}
