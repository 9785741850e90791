// SPDX-License-Identifier: BSD-3-Clause
/*
 * refused [team]: calls that are the MPI's, between nonblocking collectives that are under way:
 * each has to come to the MPI in its place, or the members' calls do not match. Rank 0 has another
 * option than the others, so the teams are refused and all calls are the MPI's. With the word
 * `team` all have the same options, and the nonblocking collectives are served.
 */
#include "checked.h"

#include <stdlib.h>
#include <string.h>

static int rank, ranks, calls;
static MPI_Comm comm; /* all are neighbors */
static MPI_Comm made = MPI_COMM_NULL;

static void create(MPI_Request *request)
{
	MPI_Group group;

	(void)request;
	MPI_Comm_group(comm, &group);
	MPI_Comm_create(comm, group, &made);
	MPI_Group_free(&group);
}

static void split(MPI_Request *request)
{
	(void)request;
	MPI_Comm_split(comm, 0, rank, &made);
}

static void duplicate(MPI_Request *request)
{
	(void)request;
	MPI_Comm_dup(comm, &made);
}

static void idup(MPI_Request *request)
{
	MPI_Comm_idup(comm, &made, request);
#ifndef MPICH_VERSION
	/* Open MPI 4.1.4 by itself mixes up its messages with those of the next call. */
	MPI_Wait(request, MPI_STATUS_IGNORE);
#endif
}

static void cart(MPI_Request *request)
{
	int no = 0;

	(void)request;
	MPI_Cart_create(comm, 1, &ranks, &no, 0, &made);
}

/* Open MPI 4.1 does not have it. */
#ifdef MPICH_VERSION
static void idup_with_info(MPI_Request *request)
{
	MPI_Info info;

	MPI_Info_create(&info);
	MPI_Info_set(info, "onecopy_bcast", "knomial:2");
	MPI_Comm_idup_with_info(comm, info, &made, request);
	MPI_Info_free(&info);
}
#endif

struct kind {
	void (*make)(MPI_Request *request); /* a communicator; NULL: it is a collective */
	const char *name;
	enum form form;
	enum case_collective function;
	int large;
};

/* Those that may wait for the others. Of persistent collectives the MPI's own are right in some.
 */
static const struct kind kinds[] = {
	{ NULL, "", FORM_PERSISTENT, CASE_neighbor_allgather, 0 },
	{ NULL, "", FORM_PERSISTENT, CASE_neighbor_alltoallw, 0 },
	{ NULL, "", FORM_PERSISTENT, CASE_allgather, 0 },
	{ NULL, "", FORM_BLOCKING, CASE_neighbor_allgather, 0 },
	{ NULL, "", FORM_BLOCKING, CASE_neighbor_alltoallv, 0 },
	{ split, "comm_split", FORM_BLOCKING, 0, 0 },
	{ duplicate, "comm_dup", FORM_BLOCKING, 0, 0 },
	{ create, "comm_create", FORM_BLOCKING, 0, 0 },
	{ cart, "cart_create", FORM_BLOCKING, 0, 0 },
#ifdef MPICH_VERSION
	{ idup, "comm_idup", FORM_NONBLOCKING, 0, 0 },
	{ idup_with_info, "comm_idup_with_info", FORM_NONBLOCKING, 0, 0 },
	{ NULL, "", FORM_PERSISTENT, CASE_neighbor_alltoallv, 1 },
	{ NULL, "", FORM_PERSISTENT, CASE_allgather, 1 },
	{ NULL, "", FORM_BLOCKING, CASE_allgather, 1 },
	{ NULL, "", FORM_BLOCKING, CASE_neighbor_alltoallw, 1 },
#else
	{ idup, "comm_idup", FORM_BLOCKING, 0, 0 },
#endif
};

static void tell_others(void)
{
	for (int r = 1; r < ranks; r++)
		MPI_Send(NULL, 0, MPI_BYTE, r, 1, MPI_COMM_WORLD);
}

/* Inside the MPI, so that it goes on with what is under way. */
static void look_around(void)
{
	int found;

	for (int i = 0; i < 100; i++)
		MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
}

/* The new communicator is one of its own, with the group of the other. */
static void check_made(const char *name)
{
	int result, value = rank ? -1 : 5;

	MPI_Comm_compare(made, comm, &result);
	MPI_Bcast(&value, 1, MPI_INT, 0, made);
	case_count(CASE_BCAST, 1);
	if (result != MPI_CONGRUENT || value != 5)
		case_fail("%s: the communicators compare as %d, a Bcast gave %d", name, result,
			  value);
	MPI_Comm_free(&made);
}

static void begin(const struct kind *kind, struct checked *call, MPI_Request *request)
{
	*request = MPI_REQUEST_NULL;
	if (kind->make) {
		kind->make(request);
		return;
	}
	checked_begin(call, kind->form);
	*request = call->request;
}

/*
 * An MPI_Ibcast is before it and one behind it; on all ranks but 0 the former is over first. A call
 * that may wait for the members has rank 0 wait for nothing but those.
 */
static void between_others(const struct kind *kind)
{
	const struct checked_spec spec = { .collective = kind->function,
					   .elements = 3,
					   .plain = 1 + PLAIN_INTS,
					   .salt = (unsigned int)calls++,
					   .stock = 1,
					   .large = kind->large };
	int before[2], after[5];
	MPI_Request request[3];
	struct checked call;

	case_all_neighbors(MPI_COMM_WORLD, MPI_INFO_NULL, &comm);
	/* The call in which its team is made or refused. */
	case_barrier(comm);
	checked_open(&call, comm, &spec);
	for (int i = 0; i < 5; i++) {
		before[i % 2] = rank ? -1 : 70 + i % 2;
		after[i] = rank ? -1 : 80 + i;
	}
	if (rank)
		MPI_Recv(NULL, 0, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Ibcast(before, 2, MPI_INT, 0, comm, &request[0]);
	if (rank)
		MPI_Wait(&request[0], MPI_STATUS_IGNORE);
	if (!rank && kind->form != FORM_NONBLOCKING)
		tell_others();
	begin(kind, &call, &request[1]);
	if (rank % 2)
		look_around();
	MPI_Ibcast(after, 5, MPI_INT, 0, comm, &request[2]);
	if (!rank && kind->form == FORM_NONBLOCKING)
		tell_others();
	MPI_Waitall(3, request, MPI_STATUSES_IGNORE);
	case_count(CASE_BCAST, 1);
	case_count(CASE_BCAST, 1);
	for (int i = 0; i < 5; i++)
		if ((i < 2 && before[i] != 70 + i) || after[i] != 80 + i)
			case_fail("call %d: an MPI_Ibcast beside it gave %d", calls,
				  i < 2 ? before[i] : after[i]);
	if (kind->make)
		check_made(kind->name);
	else
		checked_verify(&call);
	if (request[1] != MPI_REQUEST_NULL)
		MPI_Request_free(&request[1]);
	checked_close(&call);
	MPI_Comm_free(&comm);
}

int main(int argc, char **argv)
{
	const char *open_mpi = getenv("OMPI_COMM_WORLD_RANK"), *mpich = getenv("PMI_RANK");
	const char *number = open_mpi ? open_mpi : mpich;

	if (argc < 2 && number && !strcmp(number, "0"))
		setenv("ONECOPY_SEGMENT_BYTES", "64M", 1);
	case_begin(&argc, &argv, &rank, &ranks);
	for (int large = 0; large <= LARGE_COUNTS; large++)
		for (int f = CASE_BARRIER + large; f < CASE_FUNCTIONS; f++)
			between_others(&(struct kind){ NULL, "", FORM_NONBLOCKING,
						       (enum case_collective)f, large });
	for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
		between_others(&kinds[k]);
	return case_end("refused: %d calls between nonblocking ones, each in its place\n", calls);
}
