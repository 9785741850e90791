/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What an MPICH program may do and few do: types made of types, requests that outlive their
 * communicator, ends of windows and files and writes beside an outstanding collective, and calls
 * that the MPI is to refuse. More than 500 lines, as it is a list of small cases.
 */
#include "case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TYPES = 40, ELEMENTS = 12, MANY = 300000, ROUNDS = 3, BIG = 5000 };

static int rank, ranks;

static void expect(const int *values, int count, int first, const char *what)
{
	for (int i = 0; i < count; i++)
		if (values[i] != first + i)
			case_fail("%s: element %d is %d, not %d", what, i, values[i], first + i);
}

/* A type's shape is cached by its handle, in a few places: it shares one with its own element. */
static void nested_types(void)
{
	MPI_Datatype inner, outer[TYPES];
	int values[ELEMENTS];

	MPI_Type_contiguous(4, MPI_INT, &inner);
	MPI_Type_commit(&inner);
	for (int t = 0; t < TYPES; t++) {
		MPI_Type_contiguous(ELEMENTS / 4, inner, &outer[t]);
		MPI_Type_commit(&outer[t]);
	}
	for (int t = TYPES; t-- > 0;) {
		for (int i = 0; i < ELEMENTS; i++)
			values[i] = rank ? -1 : 100 * t + i;
		MPI_Bcast(values, 1, outer[t], 0, MPI_COMM_WORLD);
		case_count(CASE_BCAST, 1);
		expect(values, ELEMENTS, 100 * t, "a type of types");
		MPI_Type_free(&outer[t]);
	}
	MPI_Type_free(&inner);
}

/* The request keeps the communicator, also while others are made and freed. */
static void started_after_free(void)
{
	MPI_Comm comm, other;
	MPI_Request request;
	int values[ELEMENTS];

	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	case_barrier(comm); /* so that what comes after it is served */
	MPI_Bcast_init(values, ELEMENTS, MPI_INT, 0, comm, MPI_INFO_NULL, &request);
	MPI_Comm_free(&comm);
	MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &other);
	case_barrier(other);
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < ELEMENTS; i++)
			values[i] = rank ? -1 : round + i;
		MPI_Start(&request);
		case_count(CASE_BCAST, 1);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
		expect(values, ELEMENTS, round, "a start after MPI_Comm_free");
	}
	MPI_Comm_free(&other);
	MPI_Request_free(&request);
}

/* Rank 0 goes into the end of a window or file with the operation outstanding; others wait first.
 */
static void ends(const char *path)
{
	int *in = malloc(MANY * sizeof(*in)), *out = malloc(MANY * sizeof(*out)), memory[ELEMENTS];
	MPI_Request request;
	MPI_File file;
	MPI_Win win;

	if (!in || !out)
		case_fail("no memory");
	for (int round = 0; round < 2 * ROUNDS; round++) {
		for (int i = 0; i < MANY; i++)
			in[i] = rank ? 0 : round + i;
		if (round % 2)
			MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR,
				      MPI_INFO_NULL, &file);
		else
			MPI_Win_create(memory, sizeof(memory), 1, MPI_INFO_NULL, MPI_COMM_WORLD,
				       &win);
		MPI_Iallreduce(in, out, MANY, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
		case_count(CASE_ALLREDUCE, 1);
		if (rank)
			MPI_Wait(&request, MPI_STATUS_IGNORE);
		if (round % 2)
			MPI_File_close(&file);
		else
			MPI_Win_free(&win);
		if (!rank)
			MPI_Wait(&request, MPI_STATUS_IGNORE);
		expect(out, MANY, round, "beside the end of a window or file");
	}
	free(in);
	free(out);
}

/* MPICH calls its own collectives in there; rank 0 has done so once before, its peers have not. */
static void first_from_inside(const char *path)
{
	MPI_File file;

	if (!rank)
		MPI_File_delete(path, MPI_INFO_NULL);
	MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
	MPI_File_close(&file);
}

/* MPICH moves the write only where its request is tested. */
static void write_beside(const char *path)
{
	static char bytes[1 << 20];
	MPI_Request requests[2];
	MPI_Status statuses[2];
	MPI_File file;
	int count;

	MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
	MPI_File_iwrite_at(file, (MPI_Offset)rank * (MPI_Offset)sizeof(bytes), bytes, sizeof(bytes),
			   MPI_BYTE, &requests[0]);
	MPI_Ibarrier(MPI_COMM_WORLD, &requests[1]);
	case_count(CASE_BARRIER, 1);
	MPI_Waitall(2, requests, statuses);
	MPI_Get_count(&statuses[0], MPI_BYTE, &count);
	if (count != sizeof(bytes) || requests[0] != MPI_REQUEST_NULL)
		case_fail("the write says that it wrote %d bytes", count);
	MPI_File_close(&file);
	if (!rank)
		MPI_File_delete(path, MPI_INFO_NULL);
}

/* Persistent calls that the program starts in one order, beside another call of the communicator.
 */
static void ordered(void)
{
	int in[2] = { rank, 2 * rank }, out[2], bytes = rank, sum, pairs = ranks * (ranks - 1) / 2;
	MPI_Request request[3];
	MPI_Info info;
	MPI_Comm comm;

	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Info_create(&info);
	MPI_Info_set(info, "mpi_assert_strict_start_ordering", "true");
	for (int i = 0; i < 2; i++)
		MPI_Allreduce_init(&in[i], &out[i], 1, MPI_INT, MPI_SUM, comm, info, &request[i]);
	MPI_Info_free(&info);
	for (int round = 0; round < ROUNDS; round++) {
		MPI_Startall(2, request);
		MPI_Iallreduce(&bytes, &sum, 1, MPI_INT, MPI_SUM, comm, &request[2]);
		MPI_Waitall(3, request, MPI_STATUSES_IGNORE);
		if (out[0] != pairs || out[1] != 2 * pairs || sum != pairs)
			case_fail("ordered: sums %d, %d and %d", out[0], out[1], sum);
		for (int i = 0; i < 3; i++)
			case_count(CASE_ALLREDUCE, 1);
	}
	/* Too late for what has been made. */
	MPI_Info_create(&info);
	MPI_Info_set(info, "onecopy_allreduce", "mpi");
	MPI_Comm_set_info(comm, info);
	MPI_Info_free(&info);
	MPI_Comm_free(&comm);
	out[0] = out[1] = -1;
	MPI_Startall(2, request);
	MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
	if (out[0] != pairs || out[1] != 2 * pairs)
		case_fail("ordered, with another algorithm forced later: sums %d and %d", out[0],
			  out[1]);
	for (int i = 0; i < 2; i++) {
		case_count(CASE_ALLREDUCE, 1);
		MPI_Request_free(&request[i]);
	}
}

/* A receive that takes any message gets the program's, and none of ours. */
static void intercommunicator(void)
{
	MPI_Comm comm, half, inter;
	MPI_Request request;
	int upper = rank >= ranks / 2, value = -1;
	MPI_Status status;

	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Comm_split(comm, upper, rank, &half);
	if (!rank)
		MPI_Irecv(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &request);
	/* The MPI's own messages are not on this communicator. */
	MPI_Intercomm_create(half, 0, comm, upper ? 0 : ranks / 2, 7, &inter);
	if (rank == ranks / 2)
		MPI_Send(&rank, 1, MPI_INT, 0, 3, comm);
	if (!rank) {
		MPI_Wait(&request, &status);
		if (value != ranks / 2 || status.MPI_TAG != 3)
			case_fail("beside MPI_Intercomm_create: a message %d with tag %d", value,
				  status.MPI_TAG);
	}
	MPI_Comm_free(&inter);
	MPI_Comm_free(&half);
	MPI_Comm_free(&comm);
}

static void add_bytes(void *in, void *inout, int *count, MPI_Datatype *type)
{
	const unsigned char *from = in;
	unsigned char *to = inout;

	(void)type;
	for (int i = 0; i < *count * BIG; i++)
		to[i] = (unsigned char)(to[i] + from[i]);
}

/* A reduction of elements that are too big for the engine, behind a call that it serves. */
static void handed_back(void)
{
	static unsigned char in[2 * BIG], out[2 * BIG];
	MPI_Request request[2];
	int value = rank ? 0 : 7;
	MPI_Datatype big;
	MPI_Comm comm;
	MPI_Op add;

	memset(in, 1, sizeof(in));
	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Type_contiguous(BIG, MPI_UNSIGNED_CHAR, &big);
	MPI_Type_commit(&big);
	MPI_Op_create(add_bytes, 1, &add);
	case_barrier(comm); /* so that what comes after it is served */
	if (rank)
		MPI_Recv(NULL, 0, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Ibcast(&value, 1, MPI_INT, 0, comm, &request[0]);
	case_count(CASE_BCAST, 1);
	MPI_Ireduce(in, out, 2, big, add, 0, comm, &request[1]);
	for (int r = 1; !rank && r < ranks; r++)
		MPI_Send(NULL, 0, MPI_BYTE, r, 1, MPI_COMM_WORLD);
	MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
	if (value != 7)
		case_fail("the call before the one handed back: %d, not 7", value);
	for (int i = 0; !rank && i < 2 * BIG; i++)
		if (out[i] != ranks)
			case_fail("handed back: byte %d is %d, not %d", i, out[i], ranks);
	MPI_Type_free(&big);
	MPI_Op_free(&add);
	MPI_Comm_free(&comm);
}

/* What the delete function of a type's attribute does. */
static struct deletion {
	MPI_Request freed, started;
	MPI_Comm comm;
	int in, sum, calls;
} deletion;

static int type_deleted(MPI_Datatype type, int keyval, void *value, void *extra)
{
	struct deletion *d = value;

	(void)type;
	(void)keyval;
	(void)extra;
	d->calls++;
	MPI_Request_free(&d->freed);
	MPI_Iallreduce(&d->in, &d->sum, 1, MPI_INT, MPI_SUM, d->comm, &d->started);
	return MPI_SUCCESS;
}

/*
 * A type that an operation uses lives until that is over, and is then deleted by us: its
 * attribute's function calls us back. On rank 0, that is: the others come into the operation later.
 */
static void called_back(void)
{
	struct deletion *d = &deletion;
	int key, values[4] = { rank, 0, 0, rank }, unused = 0;
	MPI_Datatype type;
	MPI_Request request;
	MPI_Comm comm;

	for (int round = 0; round < ROUNDS; round++) {
		*d = (struct deletion){ .in = rank + round };
		MPI_Comm_dup(MPI_COMM_WORLD, &comm);
		MPI_Comm_dup(MPI_COMM_WORLD, &d->comm);
		case_barrier(comm); /* so that what comes after it is served */
		case_barrier(d->comm);
		MPI_Allreduce_init(&unused, &unused, 0, MPI_INT, MPI_SUM, d->comm, MPI_INFO_NULL,
				   &d->freed);
		MPI_Type_vector(2, 1, 3, MPI_INT, &type);
		MPI_Type_commit(&type);
		MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, type_deleted, &key, NULL);
		MPI_Type_set_attr(type, key, d);
		if (rank)
			MPI_Recv(NULL, 0, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Ibcast(values, 1, type, ranks - 1, comm, &request);
		case_count(CASE_BCAST, 1);
		MPI_Type_free(&type);
		for (int r = 1; !rank && r < ranks; r++)
			MPI_Send(NULL, 0, MPI_BYTE, r, 1, MPI_COMM_WORLD);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
		if (d->calls != 1)
			case_fail("a type was deleted %d times", d->calls);
		MPI_Wait(&d->started, MPI_STATUS_IGNORE);
		case_count(CASE_ALLREDUCE, 1);
		if (d->sum != ranks * (ranks - 1) / 2 + ranks * round)
			case_fail("a call of a delete function gave %d", d->sum);
		MPI_Type_free_keyval(&key);
		MPI_Comm_free(&d->comm);
		MPI_Comm_free(&comm);
	}
}

static void refuse_alias(const char *name, bool here, int error)
{
	int class = MPI_SUCCESS;

	MPI_Error_class(error, &class);
	if (class != (here ? MPI_ERR_BUFFER : MPI_SUCCESS))
		case_fail("%s of one buffer: class %d", name, class);
}

/*
 * One buffer for both sides: MPICH refuses it where the rank uses both, without a word to the
 * others, so each call is one that all ranks are refused, or whose other ranks need no partner.
 */
static void aliased(MPI_Comm comm)
{
	int buffer[64] = { 0 }, counts[8], displs[8], *mine;
	MPI_Request request = MPI_REQUEST_NULL;

	for (int r = 0; r < ranks; r++) {
		counts[r] = 1;
		displs[r] = 2 * r;
	}
#define ONE 1, MPI_INT
#define REFUSED(name, ...) refuse_alias(#name, true, MPI_##name(__VA_ARGS__))
	REFUSED(Allreduce, buffer, buffer, ONE, MPI_SUM, comm);
	REFUSED(Scan, buffer, buffer, ONE, MPI_SUM, comm);
	REFUSED(Exscan, buffer, buffer, ONE, MPI_SUM, comm);
	REFUSED(Reduce_scatter_block, buffer, buffer, ONE, MPI_SUM, comm);
	REFUSED(Reduce_scatter, buffer, buffer, counts, MPI_INT, MPI_SUM, comm);
	REFUSED(Alltoall, buffer, ONE, buffer, ONE, comm);
	REFUSED(Alltoallv, buffer, counts, displs, MPI_INT, buffer, counts, displs, MPI_INT, comm);
	mine = buffer + rank;
	REFUSED(Allgather, mine, ONE, buffer, ONE, comm);
	mine = buffer + displs[rank];
	REFUSED(Allgatherv, mine, ONE, buffer, counts, displs, MPI_INT, comm);
	REFUSED(Iallreduce, buffer, buffer, ONE, MPI_SUM, comm, &request);
	REFUSED(Allreduce_init, buffer, buffer, ONE, MPI_SUM, comm, MPI_INFO_NULL, &request);
	REFUSED(Allreduce_c, buffer, buffer, ONE, MPI_SUM, comm);
#undef REFUSED
	/* Not refused: nothing is in both, the own block lies elsewhere, or there is none. */
	refuse_alias("Allreduce of nothing", false,
		     MPI_Allreduce(buffer, buffer, 0, MPI_INT, MPI_SUM, comm));
	refuse_alias("Allgather", false, MPI_Allgather(buffer + ranks, ONE, buffer, ONE, comm));
	refuse_alias("Gather in place", false,
		     MPI_Gather(rank ? buffer : MPI_IN_PLACE, ONE, buffer, ONE, 0, comm));
	case_count(CASE_ALLGATHER, 1);
	case_count(CASE_GATHER, 1);
	/* The root alone is refused, and makes up for it. */
	refuse_alias("Gather", !rank, MPI_Gather(buffer, ONE, buffer, ONE, 0, comm));
	if (!rank)
		MPI_Gather(buffer + ranks, ONE, buffer, ONE, 0, comm);
	refuse_alias("Scatterv", !rank,
		     MPI_Scatterv(buffer, counts, displs, MPI_INT, buffer, ONE, 0, comm));
	if (!rank)
		MPI_Scatterv(buffer, counts, displs, MPI_INT, MPI_IN_PLACE, ONE, 0, comm);
	case_count(CASE_GATHER, 1);
	case_count(CASE_SCATTERV, 1);
#undef ONE
}

/* On a communicator that returns errors; MPI_COMM_WORLD would end the job. */
static void refused(void)
{
	double in[2] = { 1, 2 }, out[2];
	MPI_Request request;
	MPI_Comm comm;
	int class;

	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
	MPI_Error_class(MPI_Allreduce(in, out, 2, MPI_DOUBLE, MPI_BAND, comm), &class);
	if (class != MPI_ERR_OP)
		case_fail("MPI_BAND of MPI_DOUBLE: class %d, not MPI_ERR_OP", class);
	MPI_Error_class(MPI_Bcast(NULL, 1, MPI_INT, 0, comm), &class);
	if (class != MPI_ERR_BUFFER)
		case_fail("an MPI_Bcast of NULL: class %d, not MPI_ERR_BUFFER", class);
	MPI_Error_class(MPI_Allreduce(in, NULL, 2, MPI_DOUBLE, MPI_SUM, comm), &class);
	if (class != MPI_ERR_BUFFER)
		case_fail("an MPI_Allreduce into NULL: class %d, not MPI_ERR_BUFFER", class);
	aliased(comm);
	case_barrier(comm);
	if (rank)
		MPI_Recv(NULL, 0, MPI_BYTE, 0, 0, comm, MPI_STATUS_IGNORE);
	MPI_Ibarrier(comm, &request);
	case_count(CASE_BARRIER, 1);
	/* On rank 0 it is outstanding: the others come into it after the message. */
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	if (!rank && MPI_Cancel(&request) == MPI_SUCCESS)
		case_fail("MPI_Cancel of an MPI_Ibarrier succeeded");
	for (int r = 1; !rank && r < ranks; r++)
		MPI_Send(NULL, 0, MPI_BYTE, r, 0, comm);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
	MPI_Comm_free(&comm);
}

static int handled;

static void count_error(MPI_Comm *comm, int *code, ...)
{
	(void)comm;
	(void)code;
	handled++;
}

/* A message that is longer than the others expect: their error. */
static int long_bcast(MPI_Comm comm)
{
	int values[4] = { 0 };

	case_count(CASE_BCAST, 0);
	return MPI_Bcast(values, rank ? 1 : 4, MPI_INT, 0, comm);
}

/* Communicators that have none call MPI_COMM_WORLD's handler, whatever that is by then. */
static void without_a_handler(void)
{
	MPI_Errhandler counts;
	MPI_Group all;
	MPI_Comm made[2];

	MPI_Comm_dup(MPI_COMM_WORLD, &made[0]);
	MPI_Comm_group(MPI_COMM_WORLD, &all);
	MPI_Comm_create(MPI_COMM_WORLD, all, &made[1]);
	MPI_Group_free(&all);
	MPI_Comm_create_errhandler(count_error, &counts);
	for (int i = 0; i < 2; i++) {
		case_barrier(made[i]);
		MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
		if ((long_bcast(made[i]) != MPI_SUCCESS) != (rank != 0))
			case_fail("a long MPI_Bcast is the root's error, or not the others'");
		MPI_Comm_set_errhandler(MPI_COMM_WORLD, counts);
		long_bcast(made[i]);
		if (handled != (rank ? i + 1 : 0))
			case_fail("MPI_COMM_WORLD's handler was called %d times", handled);
		MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
		MPI_Comm_free(&made[i]);
	}
	MPI_Errhandler_free(&counts);
}

/* An operation of MPICH's that is not in the standard: its result is one int, of any type. */
static void extension(void)
{
#ifdef MPIX_EQUAL
	int values[ELEMENTS], equal[2] = { -1, -1 };

	for (int i = 0; i < ELEMENTS; i++)
		values[i] = i;
	MPI_Allreduce(values, equal, ELEMENTS, MPI_INT, MPIX_EQUAL, MPI_COMM_WORLD);
	if (equal[0] != 1 || equal[1] != -1)
		case_fail("MPIX_EQUAL: %d, %d", equal[0], equal[1]);
#endif
}

int main(int argc, char **argv)
{
	struct case_call first = { .collective = CASE_ALLREDUCE, .bytes = 8 };
	const char *directory = getenv("TMPDIR");
	char path[512];

	/* With threads our locks are taken, and while they are nothing of the MPI's may be called.
	 */
	(getenv("OC_TEST_THREADS") ? case_begin_threads : case_begin)(&argc, &argv, &rank, &ranks);
	snprintf(path, sizeof(path), "%s/onecopy-corners", directory ? directory : "/tmp");
	first_from_inside(path);
	case_run(MPI_COMM_WORLD, &first);
	nested_types();
	started_after_free();
	ends(path);
	write_beside(path);
	ordered();
	handed_back();
	called_back();
	intercommunicator();
	extension();
	/* Before MPI_COMM_WORLD was given a handler, which duplicates have, too. */
	without_a_handler();
	refused();
	return case_end("corners: all as it should be on %d ranks\n", ranks);
}
