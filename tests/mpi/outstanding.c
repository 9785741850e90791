/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Everything outstanding at once: 100 collectives on 10 communicators beside messages between all
 * neighbors, while the ranks compute, one after the other sleeps, or somebody tests; types,
 * operations and communicators freed under them; waited for in another order on each rank.
 */
#include "checked.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COMMS = 10, CALLS = 100, MESSAGES = 8, INTS = 40000, ROUNDS = 4 };

static int rank, ranks;
static uint64_t state;

/* Alike on all ranks. */
static unsigned int pick(unsigned int below)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (unsigned int)(state >> 33) % below;
}

static struct checked_spec next_spec(void)
{
	struct checked_spec spec = {
		.collective = (enum case_collective)pick(CASE_COLLECTIVES),
		.elements = pick(3) ? 10 + (int)pick(300) : 60000 / ranks,
		.root = (int)pick((unsigned int)ranks),
		.layout = (int)pick(7),
		.differ = pick(3) == 0,
		.maps = (int)pick(2),
		.shape = pick(1000),
		.salt = pick(1u << 30),
		/* A rank alone has the MPI's own calls. */
		.stock = ranks == 1,
	};

	spec.in_place = case_has_in_place(spec.collective) && pick(5) == 0;
	return spec;
}

/* ---- messages -------------------------------------------------------------------------------- */

static struct messages {
	int *out, *in;
	MPI_Request request[2 * MESSAGES];
} messages;

static int value_of(int from, int message, int i, int round)
{
	return from * 1000003 + message * 10007 + i + round;
}

static void messages_start(int round)
{
	int to = (rank + 1) % ranks, from = (rank + ranks - 1) % ranks;

	for (int m = 0; m < MESSAGES; m++) {
		int *out = messages.out + m * INTS, *in = messages.in + m * INTS;

		for (int i = 0; i < INTS; i++)
			out[i] = value_of(rank, m, i, round);
		memset(in, 0, INTS * sizeof(*in));
		MPI_Irecv(in, INTS, MPI_INT, from, m, MPI_COMM_WORLD, &messages.request[2 * m]);
		MPI_Isend(out, INTS, MPI_INT, to, m, MPI_COMM_WORLD, &messages.request[2 * m + 1]);
	}
}

static void messages_end(int round)
{
	int from = (rank + ranks - 1) % ranks;

	MPI_Waitall(2 * MESSAGES, messages.request, MPI_STATUSES_IGNORE);
	for (int m = 0; m < MESSAGES; m++) {
		for (int i = 0; i < INTS; i++) {
			int is = messages.in[m * INTS + i], should = value_of(from, m, i, round);

			if (is != should)
				case_fail("int %d of message %d is %d, not %d", i, m, is, should);
		}
	}
}

/* ---- a round --------------------------------------------------------------------------------- */

static volatile double sink;

/* What a rank does meanwhile: another thing on each, and in each round. */
static void pass_time(int round, struct checked *calls)
{
	int flag;

	switch ((rank + round) % 3) {
	case 0:
		for (int i = 0; i < 3000000; i++)
			sink = sink * 0.99 + 1;
		break;
	case 1:
		usleep(5000);
		break;
	default:
		for (int i = 0; i < 50; i++) {
			MPI_Request_get_status(calls[i].request, &flag, MPI_STATUS_IGNORE);
			usleep(50);
		}
	}
}

static void make_comms(MPI_Comm comms[COMMS])
{
	for (int c = 0; c < COMMS; c++) {
		MPI_Comm_dup(MPI_COMM_WORLD, &comms[c]);
		/* Its team is made here, so that what follows is served. */
		case_barrier(comms[c]);
	}
}

static void run_round(int round)
{
	static struct checked calls[CALLS];
	MPI_Comm comms[COMMS];
	int first = (rank * 37 + round) % CALLS;

	make_comms(comms);
	for (int i = 0; i < CALLS; i++) {
		struct checked_spec spec = next_spec();

		if (i == CALLS / 3)
			messages_start(round);
		checked_open(&calls[i], comms[pick(COMMS)], &spec);
		if (i % 2 && ranks > 1)
			checked_own_handles(&calls[i]);
		checked_begin(&calls[i], i % 5 ? FORM_NONBLOCKING : FORM_PERSISTENT);
		if (i % 2 && ranks > 1)
			checked_free_handles(&calls[i]);
		/* A blocking one between them. */
		if (i % 25 == 24)
			case_barrier(comms[i % COMMS]);
	}
	/* Those of one rank are the MPI's, and Open MPI 4.1.4 crashes where a communicator is freed
	 * under a call of its own. */
	for (int c = 0; c < COMMS && ranks > 1; c += 2)
		MPI_Comm_free(&comms[c]);
	pass_time(round, calls);
	for (int i = 0; i < CALLS; i++)
		MPI_Wait(&calls[(first + i * 3) % CALLS].request, MPI_STATUS_IGNORE);
	messages_end(round);
	for (int i = 0; i < CALLS; i++)
		checked_end(&calls[i]);
	for (int c = 0; c < COMMS; c++)
		if (comms[c] != MPI_COMM_NULL)
			MPI_Comm_free(&comms[c]);
}

int main(int argc, char **argv)
{
	case_begin(&argc, &argv, &rank, &ranks);
	case_keep_memory();
	layouts_make();
	messages.out = malloc((size_t)MESSAGES * INTS * sizeof(int));
	messages.in = malloc((size_t)MESSAGES * INTS * sizeof(int));
	for (int round = 0; round < ROUNDS; round++)
		run_round(round);
	free(messages.out);
	free(messages.in);
	return case_end(
		"outstanding: %d rounds of %d calls on %d communicators and %d messages, %d "
		"ranks, every byte right\n",
		ROUNDS, CALLS, COMMS, MESSAGES, ranks);
}
