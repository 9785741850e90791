/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests of collectives in every function that waits or tests, beside point-to-point requests in
 * the same array; many outstanding at once; types, operations and communicators freed while calls
 * are pending, and handles that come back as something else.
 */
#include "checked.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COLLECTIVE_REQUESTS = 6, REQUESTS = COLLECTIVE_REQUESTS + 2, MANY = 40, MESSAGE = 50000 };

static int rank, ranks;
static MPI_Comm comm; /* used before, so that its nonblocking calls are served */
static uint64_t salt;

static enum case_collective next_collective(void)
{
	return (enum case_collective)(salt % CASE_COLLECTIVES);
}

static struct checked_spec next_spec(void)
{
	enum case_collective collective = next_collective();
	struct checked_spec spec = {
		.collective = collective,
		.elements = salt % 4 ? 10 + (int)(salt % 50) : 9000 / ranks,
		.root = (int)(salt % (unsigned int)ranks),
		.in_place = case_has_in_place(collective) && salt % 5 == 0,
		.layout = (int)(salt % 7),
		.differ = salt % 3 == 0,
		.maps = (int)(salt % 2),
		.shape = (unsigned int)salt,
		.salt = salt,
	};

	salt++;
	return spec;
}

/* ---- every way to complete ------------------------------------------------------------------ */

struct mix {
	struct checked call[COLLECTIVE_REQUESTS];
	MPI_Request request[REQUESTS];
	int *out, *in; /* a ring of messages */
	int done[REQUESTS];
};

static void mix_start(struct mix *mix, int persistent)
{
	int to = (rank + 1) % ranks, from = (rank + ranks - 1) % ranks;

	memset(mix->done, 0, sizeof(mix->done));
	for (int i = 0; i < MESSAGE; i++)
		mix->out[i] = rank * 7 + i + (int)salt;
	for (int i = 0; i < COLLECTIVE_REQUESTS; i++) {
		struct checked_spec spec = next_spec();

		checked_open(&mix->call[i], comm, &spec);
		checked_begin(&mix->call[i],
			      persistent && i % 2 ? FORM_PERSISTENT : FORM_NONBLOCKING);
	}
	/* In between the collectives' requests, not behind them. */
	MPI_Irecv(mix->in, MESSAGE, MPI_INT, from, 9, MPI_COMM_WORLD, &mix->request[2]);
	MPI_Isend(mix->out, MESSAGE, MPI_INT, to, 9, MPI_COMM_WORLD, &mix->request[5]);
	for (int i = 0, at = 0; i < COLLECTIVE_REQUESTS; i++, at++) {
		if (at == 2 || at == 5)
			at++;
		mix->request[at] = mix->call[i].request;
	}
}

static void mix_check(struct mix *mix, const char *how)
{
	int from = (rank + ranks - 1) % ranks, at = 0;
	int first = (int)(mix->call[0].spec.salt);

	for (int i = 0; i < COLLECTIVE_REQUESTS; i++, at++) {
		if (at == 2 || at == 5)
			at++;
		checked_verify(&mix->call[i]);
		/* A persistent one is inactive now, and still there. */
		if (mix->request[at] != MPI_REQUEST_NULL) {
			int flag = 0;

			MPI_Test(&mix->request[at], &flag, MPI_STATUS_IGNORE);
			if (!flag)
				case_fail("%s: an inactive request is not complete", how);
			MPI_Request_free(&mix->request[at]);
		}
		checked_close(&mix->call[i]);
	}
	for (int i = 0; i < MESSAGE; i += 97)
		if (mix->in[i] != from * 7 + i + first)
			case_fail("%s: int %d of a message is %d, not %d", how, i, mix->in[i],
				  from * 7 + i + first);
}

static void by_wait(struct mix *mix)
{
	for (int i = REQUESTS - 1; i >= 0; i--)
		MPI_Wait(&mix->request[i], MPI_STATUS_IGNORE);
}

static void by_test(struct mix *mix)
{
	for (int i = 0, flag = 0; i < REQUESTS; i++, flag = 0)
		while (!flag)
			MPI_Test(&mix->request[i], &flag, MPI_STATUS_IGNORE);
}

static void by_waitall(struct mix *mix)
{
	MPI_Status status[REQUESTS];

	MPI_Waitall(REQUESTS, mix->request, status);
}

static void by_testall(struct mix *mix)
{
	int flag = 0;

	while (!flag)
		MPI_Testall(REQUESTS, mix->request, &flag, MPI_STATUSES_IGNORE);
}

static void note(struct mix *mix, int index, const char *how)
{
	if (index < 0 || index >= REQUESTS || mix->done[index])
		case_fail("%s gave index %d, which it may not", how, index);
	mix->done[index] = 1;
}

static void by_waitany(struct mix *mix)
{
	MPI_Status status;
	int index;

	for (int i = 0; i < REQUESTS; i++) {
		MPI_Waitany(REQUESTS, mix->request, &index, &status);
		note(mix, index, "MPI_Waitany");
	}
	MPI_Waitany(REQUESTS, mix->request, &index, &status);
	if (index != MPI_UNDEFINED)
		case_fail("MPI_Waitany gave index %d though nothing is active", index);
}

static void by_testany(struct mix *mix)
{
	for (int i = 0, index, flag; i < REQUESTS; i += flag) {
		MPI_Testany(REQUESTS, mix->request, &index, &flag, MPI_STATUS_IGNORE);
		if (flag)
			note(mix, index, "MPI_Testany");
	}
}

static void by_some(struct mix *mix, int waits)
{
	int index[REQUESTS], count, left = REQUESTS;

	while (left) {
		if (waits)
			MPI_Waitsome(REQUESTS, mix->request, &count, index, MPI_STATUSES_IGNORE);
		else
			MPI_Testsome(REQUESTS, mix->request, &count, index, MPI_STATUSES_IGNORE);
		if (count == MPI_UNDEFINED || (waits && !count))
			case_fail("MPI_%ssome gave %d of %d", waits ? "Wait" : "Test", count, left);
		for (int i = 0; i < count; i++)
			note(mix, index[i], "MPI_Waitsome or MPI_Testsome");
		left -= count;
	}
}

static void by_waitsome(struct mix *mix)
{
	by_some(mix, 1);
}

static void by_testsome(struct mix *mix)
{
	by_some(mix, 0);
}

static void by_status(struct mix *mix)
{
	for (int i = 0, flag = 0; i < REQUESTS; i++, flag = 0) {
		while (!flag)
			MPI_Request_get_status(mix->request[i], &flag, MPI_STATUS_IGNORE);
		/* It frees nothing. */
		if (mix->request[i] == MPI_REQUEST_NULL)
			case_fail("MPI_Request_get_status freed a request");
	}
	MPI_Waitall(REQUESTS, mix->request, MPI_STATUSES_IGNORE);
}

static void complete_in_every_way(int persistent)
{
	static const struct {
		const char *name;
		void (*complete)(struct mix *mix);
	} ways[] = {
		{ "MPI_Wait", by_wait },
		{ "MPI_Test", by_test },
		{ "MPI_Waitall", by_waitall },
		{ "MPI_Testall", by_testall },
		{ "MPI_Waitany", by_waitany },
		{ "MPI_Testany", by_testany },
		{ "MPI_Waitsome", by_waitsome },
		{ "MPI_Testsome", by_testsome },
		{ "MPI_Request_get_status", by_status },
	};
	static int out[MESSAGE], in[MESSAGE];
	static struct mix mix = { .out = out, .in = in };

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		/* Rank 0 comes late, or early. */
		if (!rank && i % 2)
			usleep(2000);
		mix_start(&mix, persistent);
		ways[i].complete(&mix);
		mix_check(&mix, ways[i].name);
	}
}

/* ---- many, freed, recycled ------------------------------------------------------------------ */

/* More than there are lanes, waited for from the last to the first. */
static void many_outstanding(void)
{
	static struct checked call[MANY];

	for (int i = 0; i < MANY; i++) {
		struct checked_spec spec = next_spec();

		checked_open(&call[i], comm, &spec);
		checked_own_handles(&call[i]);
		checked_start(&call[i]);
		checked_free_handles(&call[i]);
	}
	for (int i = MANY - 1; i >= 0; i--)
		checked_end(&call[i]);
}

/*
 * MPI_Request_free() of a pending one, which MPI forbids: either it is refused, and the request
 * stays good, or the call comes to its end all the same, while others go on.
 */
static void free_active(void)
{
	struct checked_spec spec = next_spec();
	struct checked call;
	int error, flag;

	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
	checked_open(&call, comm, &spec);
	checked_start(&call);
	error = MPI_Request_free(&call.request);
	if (error != MPI_SUCCESS)
		MPI_Wait(&call.request, MPI_STATUS_IGNORE);
	while (!checked_is_right(&call))
		MPI_Iprobe(MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
	MPI_Comm_set_errhandler(comm, MPI_ERRORS_ARE_FATAL);
	case_barrier(comm);
	checked_verify(&call);
	checked_close(&call);
}

/* A communicator freed while calls on it are pending. */
static void free_communicator(void)
{
	static struct checked call[4];
	MPI_Comm other;

	MPI_Comm_dup(comm, &other);
	case_barrier(other);
	for (int i = 0; i < 4; i++) {
		struct checked_spec spec = next_spec();

		checked_open(&call[i], other, &spec);
		checked_start(&call[i]);
	}
	MPI_Comm_free(&other);
	for (int i = 0; i < 4; i++)
		checked_end(&call[i]);
}

/* Each round frees its types and operation, so that the next one's handles are the same numbers. */
static void recycle_handles(void)
{
	for (int i = 0; i < 60; i++) {
		struct checked_spec spec = next_spec();
		struct checked call;

		spec.layout = i;
		checked_open(&call, comm, &spec);
		checked_own_handles(&call);
		if (i % 2) {
			checked_start(&call);
			checked_free_handles(&call);
		} else if (checked_call(&call) != MPI_SUCCESS) {
			case_fail("a call failed");
		}
		checked_end(&call);
	}
}

/*
 * More requests than a Waitall of ours looks at in one turn, some of them null, beside a
 * collective. With `cut` one message is longer than its receive: then there is a code in each
 * status, and only that one is an error.
 */
static void long_array(bool cut)
{
	enum { LONG = 150, NOTHING = 5, CUT = 77 };
	static int out[LONG], in[LONG];
	MPI_Request request[2 * LONG + 1], *receive = request + LONG;
	MPI_Status status[2 * LONG + 1], *received = status + LONG;
	int to = (rank + 1) % ranks, from = (rank + ranks - 1) % ranks, one = 1, sum, error, is;

	for (int i = 0; i < 2 * LONG + 1; i++)
		request[i] = MPI_REQUEST_NULL;
	if (!rank)
		usleep(3000);
	MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm, &request[2 * LONG]);
	case_count(CASE_ALLREDUCE, 1);
	for (int i = 0; i < LONG; i++) {
		bool cut_here = cut && i == CUT;

		out[i] = rank * LONG + i;
		if (i % NOTHING == 0)
			continue;
		MPI_Irecv(&in[i], cut_here ? 0 : 1, MPI_INT, from, i, MPI_COMM_WORLD, &receive[i]);
		MPI_Isend(&out[i], 1, MPI_INT, to, i, MPI_COMM_WORLD, &request[i]);
	}
	error = MPI_Waitall(2 * LONG + 1, request, status);
	MPI_Error_class(error, &error);
	/* Behind an error the MPIs leave requests, and say so: MPI_ERR_PENDING. */
	for (int i = 0; i < 2 * LONG + 1; i++)
		MPI_Wait(&request[i], MPI_STATUS_IGNORE);
	if (error != (cut ? MPI_ERR_IN_STATUS : MPI_SUCCESS))
		case_fail("a Waitall of %d requests returned the error %d", 2 * LONG + 1, error);
	if (sum != ranks)
		case_fail("the sum is %d, not %d", sum, ranks);
	for (int i = 0; i < LONG; i++) {
		bool cut_here = cut && i == CUT;
		int source = i % NOTHING ? from : MPI_ANY_SOURCE;

		is = MPI_SUCCESS;
		if (cut && i % NOTHING) /* MPICH leaves those of null requests alone */
			MPI_Error_class(received[i].MPI_ERROR, &is);
		if (is == MPI_ERR_PENDING)
			continue;
		if (is != (cut_here ? MPI_ERR_TRUNCATE : MPI_SUCCESS))
			case_fail("the status of receive %d has the error %d", i, is);
		if (received[i].MPI_SOURCE != source || (i % NOTHING && received[i].MPI_TAG != i))
			case_fail("receive %d came from %d with the tag %d", i,
				  received[i].MPI_SOURCE, received[i].MPI_TAG);
		if (!cut_here && i % NOTHING && in[i] != from * LONG + i)
			case_fail("receive %d got %d, not %d", i, in[i], from * LONG + i);
	}
}

static void long_arrays(void)
{
	long_array(false);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	long_array(true);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

int main(int argc, char **argv)
{
	case_begin(&argc, &argv, &rank, &ranks);
	layouts_make();
	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	case_barrier(comm);
	for (int i = 0; i < 4; i++)
		complete_in_every_way(getenv("OC_TEST_STOCK") ? 0 : i % 2);
	many_outstanding();
	/* Without peers a call may be over at once. */
	if (ranks > 1)
		free_active();
	/* Open MPI 4.1.4 by itself crashes here. */
	if (!getenv("OC_TEST_STOCK"))
		free_communicator();
	recycle_handles();
	long_arrays();
	MPI_Comm_free(&comm);
	return case_end("requests: %lu calls a rank on %d ranks, completed in nine ways\n",
			(unsigned long)salt, ranks);
}
