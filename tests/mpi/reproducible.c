/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sums of numbers of mixed magnitude, whose last bits depend on the order of the additions: the
 * same bits on all ranks of an Allreduce, in every repetition whoever comes late, on another
 * communicator, and in the nonblocking form. The checksum is for comparing runs.
 */
#include "checked.h"
#include "data.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_BYTES = 1 << 20, REPEATS = 4, MOST_DELAY_US = 300 };

static double in[MOST_BYTES / 8], out[MOST_BYTES / 8], first[MOST_BYTES / 8];
static int rank, ranks, calls;
static uint64_t checksum;

/* Between 1e-8 and 1e8, of both signs. */
static double number(size_t i)
{
	double x = (double)((i * 2654435761u + (unsigned int)rank * 40503u) % 100003) / 100003;

	return (i & 1 ? -1 : 1) * (0.5 + x) * pow(10, (double)((i + (size_t)rank * 5) % 17) - 8);
}

static void fill(int is_double, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (is_double)
			in[i] = number(i);
		else
			((float *)in)[i] = (float)number(i);
	}
}

static const enum case_collective reductions[] = {
	CASE_REDUCE,	     CASE_ALLREDUCE, CASE_REDUCE_SCATTER_BLOCK,
	CASE_REDUCE_SCATTER, CASE_SCAN,	     CASE_EXSCAN
};

static void run(enum case_collective collective, MPI_Comm comm, MPI_Datatype type, int count,
		enum form form)
{
	int counts[CHECKED_RANKS];
	struct arguments a = { .collective = collective,
			       .send = in,
			       .recv = out,
			       .recv_count = count,
			       .recv_type = type,
			       .recv_counts = counts,
			       .op = MPI_SUM,
			       .comm = comm };
	MPI_Request request;

	if (collective == CASE_REDUCE_SCATTER_BLOCK)
		a.recv_count = count / ranks;
	for (int r = 0; r < ranks; r++)
		counts[r] = count / ranks + (r == ranks - 1 ? count % ranks : 0);
	form_begin(&a, form, &request);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	case_count(collective,
		   ranks > 1 && (collective != CASE_REDUCE_SCATTER_BLOCK || count / ranks));
	calls++;
}

/* Each time the ranks come in another order; the last two calls are nonblocking. */
static void one_reduction(enum case_collective collective, MPI_Comm comms[2], MPI_Datatype type,
			  size_t bytes, int count)
{
	for (int i = 0; i < REPEATS; i++) {
		memset(out, 0, bytes);
		usleep((useconds_t)(rand() % MOST_DELAY_US));
		run(collective, comms[i & 1], type, count,
		    i < REPEATS - 2 ? FORM_BLOCKING : FORM_NONBLOCKING);
		if (!i) {
			memcpy(first, out, bytes);
			/* All ranks of an Allreduce have the same. */
			if (collective == CASE_ALLREDUCE)
				MPI_Bcast(first, (int)bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
		}
		if (memcmp(first, out, bytes))
			case_fail("%s of %zu bytes, repetition %d: other bits",
				  case_names[collective], bytes, i);
	}
	checksum = data_hash(checksum, out, bytes);
}

static void one_size(MPI_Comm comms[2], MPI_Datatype type, size_t bytes)
{
	int is_double = type == MPI_DOUBLE, count = (int)(bytes / (is_double ? 8 : 4));

	fill(is_double, (size_t)count);
	for (size_t i = 0; i < sizeof(reductions) / sizeof(reductions[0]); i++)
		one_reduction(reductions[i], comms, type, bytes, count);
}

int main(int argc, char **argv)
{
	MPI_Comm comms[2] = { MPI_COMM_WORLD };

	case_begin(&argc, &argv, &rank, &ranks);
	MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]);
	srand((unsigned int)getpid());
	for (int i = 0; i < 2; i++)
		MPI_Barrier(comms[i]); /* so that the nonblocking ones are served, too */
	for (size_t bytes = 4; bytes <= MOST_BYTES; bytes *= 4) {
		one_size(comms, MPI_FLOAT, bytes);
		if (bytes >= 8)
			one_size(comms, MPI_DOUBLE, bytes);
	}
	MPI_Comm_free(&comms[1]);
	case_add_checksum(&checksum, sizeof(checksum));
	return case_end("reproducible: %d reductions with equal bits\n", calls);
}
