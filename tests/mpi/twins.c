/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Blocking messages of threads, which are other calls inside: with types that have gaps, with
 * MPI_PROC_NULL on either side, cut short, and what their statuses say. A Waitall that has requests
 * of the MPI's own that stay after they are over.
 */
#include "case.h"

#include <pthread.h>
#include <string.h>

enum { ROWS = 50, COLUMNS = 7, TAG = 5, ROUNDS = 3 };

static int rank, ranks, next, before;
static const char *what;

static void expect_status(const MPI_Status *status, int source, int tag, MPI_Datatype type,
			  int elements)
{
	int got;

	MPI_Get_count(status, type, &got);
	if (status->MPI_SOURCE != source || status->MPI_TAG != tag || got != elements)
		case_fail("%s: %d elements from %d with tag %d, not %d from %d with %d", what, got,
			  status->MPI_SOURCE, status->MPI_TAG, elements, source, tag);
}

static void fill(int matrix[ROWS][COLUMNS], int salt)
{
	for (int i = 0; i < ROWS; i++)
		for (int k = 0; k < COLUMNS; k++)
			matrix[i][k] = salt * 10000 + i * COLUMNS + k;
}

/* Column 0 is that of `from`, of the others nothing has changed. */
static void expect_column(int matrix[ROWS][COLUMNS], int from, int rows)
{
	for (int i = 0; i < ROWS; i++)
		for (int k = 0; k < COLUMNS; k++) {
			int salt = k == 0 && i < rows ? from : rank;

			if (matrix[i][k] != salt * 10000 + i * COLUMNS + k)
				case_fail("%s: element %d, %d is %d", what, i, k, matrix[i][k]);
		}
}

static void replace(MPI_Datatype column)
{
	static int matrix[ROWS][COLUMNS];
	MPI_Status status;

	what = "MPI_Sendrecv_replace of a column";
	fill(matrix, rank);
	MPI_Sendrecv_replace(matrix, 1, column, next, TAG, MPI_ANY_SOURCE, MPI_ANY_TAG,
			     MPI_COMM_WORLD, &status);
	expect_status(&status, before, TAG, MPI_INT, ROWS);
	expect_column(matrix, before, ROWS);

	what = "MPI_Sendrecv_replace to nobody and from nobody";
	fill(matrix, rank);
	MPI_Sendrecv_replace(matrix, 1, column, MPI_PROC_NULL, TAG, MPI_PROC_NULL, TAG,
			     MPI_COMM_WORLD, &status);
	expect_status(&status, MPI_PROC_NULL, MPI_ANY_TAG, MPI_INT, 0);
	expect_column(matrix, rank, ROWS);

	/* As on a line of ranks, which has ends. */
	what = "MPI_Sendrecv_replace along a line";
	MPI_Sendrecv_replace(matrix, 1, column, rank + 1 < ranks ? rank + 1 : MPI_PROC_NULL, TAG,
			     rank ? rank - 1 : MPI_PROC_NULL, TAG, MPI_COMM_WORLD, &status);
	if (rank)
		expect_status(&status, rank - 1, TAG, MPI_INT, ROWS);
	else
		expect_status(&status, MPI_PROC_NULL, MPI_ANY_TAG, MPI_INT, 0);
	expect_column(matrix, rank ? rank - 1 : 0, ROWS);
}

static void expect_truncation(int error, const char *call)
{
	int class = MPI_SUCCESS;

	if (error)
		MPI_Error_class(error, &class);
	if (class != MPI_ERR_TRUNCATE)
		case_fail("%s: %s returns error class %d", what, call, class);
}

/* The message is longer than the receive: an error, which the communicator returns. */
static void cut_short(MPI_Comm returns)
{
	int two[2] = { rank, rank };

	what = "a message that is cut short";
	if (rank % 2 == 0 && rank + 1 < ranks) {
		MPI_Send(two, 2, MPI_INT, rank + 1, TAG, returns);
		MPI_Recv(two, 1, MPI_INT, rank + 1, TAG, returns, MPI_STATUS_IGNORE);
		MPI_Send(two, 2, MPI_INT, rank + 1, TAG, returns);
	} else if (rank % 2) {
		expect_truncation(MPI_Sendrecv_replace(two, 1, MPI_INT, rank - 1, TAG, rank - 1,
						       TAG, returns, MPI_STATUS_IGNORE),
				  "MPI_Sendrecv_replace");
		expect_truncation(
			MPI_Recv(two, 1, MPI_INT, rank - 1, TAG, returns, MPI_STATUS_IGNORE),
			"MPI_Recv");
	}
}

/* Nobody sends, so who waits for a message waits for ever. */
static void wrong_receive(MPI_Comm returns)
{
	int value, class = MPI_SUCCESS, error;

	what = "a receive of -1 elements";
	error = MPI_Recv(&value, -1, MPI_INT, before, TAG, returns, MPI_STATUS_IGNORE);
	MPI_Error_class(error, &class);
	if (class != MPI_ERR_COUNT)
		case_fail("%s: MPI_Recv returns error class %d", what, class);
	error = MPI_Sendrecv(&rank, 1, MPI_INT, next, TAG, &value, -1, MPI_INT, before, TAG,
			     returns, MPI_STATUS_IGNORE);
	MPI_Error_class(error, &class);
	if (class != MPI_ERR_COUNT)
		case_fail("%s: MPI_Sendrecv returns error class %d", what, class);
}

/* While another thread's receive waits, on whichever communicator, as well as before and after. */
static void expect_handler(MPI_Errhandler wanted)
{
	MPI_Errhandler handler;

	MPI_Comm_get_errhandler(MPI_COMM_WORLD, &handler);
	if (handler != wanted)
		case_fail("%s: MPI_COMM_WORLD has another error handler", what);
	MPI_Errhandler_free(&handler);
}

static MPI_Comm waits_on;
static int token;

static void *receive(void *unused)
{
	MPI_Recv(&token, 1, MPI_INT, before, TAG + 1, waits_on, MPI_STATUS_IGNORE);
	return unused;
}

/* For as long as this rank looks, the one behind it sends nothing. */
static void while_another_waits(MPI_Comm comm, MPI_Errhandler wanted)
{
	double begin = case_seconds();
	pthread_t thread;

	what = "a receive of another thread";
	waits_on = comm;
	pthread_create(&thread, NULL, receive, NULL);
	do
		expect_handler(wanted);
	while (case_seconds() - begin < 0.02);
	MPI_Send(&rank, 1, MPI_INT, next, TAG + 1, comm);
	pthread_join(thread, NULL);
	if (token != before)
		case_fail("%s: it received %d", what, token);
}

static void from_nobody(void)
{
	int value = 7, other = 8;
	MPI_Status status;

	what = "MPI_Recv from nobody";
	memset(&status, 0x55, sizeof(status));
	MPI_Recv(&value, 1, MPI_INT, MPI_PROC_NULL, TAG, MPI_COMM_WORLD, &status);
	expect_status(&status, MPI_PROC_NULL, MPI_ANY_TAG, MPI_INT, 0);

	what = "MPI_Sendrecv along a line";
	memset(&status, 0x55, sizeof(status));
	MPI_Sendrecv(&rank, 1, MPI_INT, rank + 1 < ranks ? rank + 1 : MPI_PROC_NULL, TAG, &other, 1,
		     MPI_INT, rank ? rank - 1 : MPI_PROC_NULL, TAG, MPI_COMM_WORLD, &status);
	if (rank)
		expect_status(&status, rank - 1, TAG, MPI_INT, 1);
	else
		expect_status(&status, MPI_PROC_NULL, MPI_ANY_TAG, MPI_INT, 0);
	if (value != 7 || other != (rank ? rank - 1 : 8))
		case_fail("%s: received %d and %d", what, value, other);

#if MPI_VERSION >= 3
	MPI_Message none = MPI_MESSAGE_NO_PROC;

	what = "MPI_Mrecv from nobody";
	memset(&status, 0x55, sizeof(status));
	MPI_Mrecv(&value, 1, MPI_INT, &none, &status);
	expect_status(&status, MPI_PROC_NULL, MPI_ANY_TAG, MPI_INT, 0);
	if (none != MPI_MESSAGE_NULL)
		case_fail("%s: the message is not null", what);
#endif
}

/* The MPI's own, of one rank, which MPICH takes for active after they are over; twice, and beside
 * others. */
static void persistent(void)
{
#if MPI_VERSION >= 4
	MPI_Request requests[3];
	int in = rank, out[2], token;

	what = "MPI_Waitall of persistent collectives";
	for (int i = 0; i < 2; i++)
		MPI_Allreduce_init(&in, &out[i], 1, MPI_INT, MPI_SUM, MPI_COMM_SELF, MPI_INFO_NULL,
				   &requests[2 * i]);
	for (int round = 0; round < 2; round++) {
		memset(out, 0x55, sizeof(out));
		MPI_Start(&requests[0]);
		MPI_Start(&requests[2]);
		MPI_Irecv(&token, 1, MPI_INT, before, TAG, MPI_COMM_WORLD, &requests[1]);
		MPI_Send(&rank, 1, MPI_INT, next, TAG, MPI_COMM_WORLD);
		MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
		if (requests[0] == MPI_REQUEST_NULL || requests[1] != MPI_REQUEST_NULL ||
		    requests[2] == MPI_REQUEST_NULL)
			case_fail("%s: which requests stay is wrong", what);
		if (out[0] != rank || out[1] != rank || token != before)
			case_fail("%s: results are wrong", what);
	}
	MPI_Request_free(&requests[0]);
	MPI_Request_free(&requests[2]);
#endif
}

int main(int argc, char **argv)
{
	MPI_Datatype column;
	MPI_Comm returns, fatal;
	int sum;

	case_begin_threads(&argc, &argv, &rank, &ranks);
	next = (rank + 1) % ranks;
	before = (rank + ranks - 1) % ranks;
	MPI_Comm_dup(MPI_COMM_WORLD, &returns);
	MPI_Comm_dup(MPI_COMM_WORLD, &fatal);
	MPI_Comm_set_errhandler(returns, MPI_ERRORS_RETURN);
	MPI_Type_vector(ROWS, 1, COLUMNS, MPI_INT, &column);
	MPI_Type_commit(&column);
	for (int round = 0; round < ROUNDS; round++) {
		MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
		case_count(CASE_ALLREDUCE, 1);
		replace(column);
		cut_short(returns);
		wrong_receive(returns);
		expect_handler(round ? MPI_ERRORS_RETURN : MPI_ERRORS_ARE_FATAL);
		while_another_waits(returns, round ? MPI_ERRORS_RETURN : MPI_ERRORS_ARE_FATAL);
		while_another_waits(fatal, round ? MPI_ERRORS_RETURN : MPI_ERRORS_ARE_FATAL);
		from_nobody();
		persistent();
		MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	}
	MPI_Type_free(&column);
	MPI_Comm_free(&returns);
	MPI_Comm_free(&fatal);
	return case_end("twins: %d rounds of messages\n", ROUNDS);
}
