/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sums of numbers of mixed magnitude, whose last bits depend on the order of the additions: the
 * same bits on all ranks of an Allreduce, in every repetition whoever comes late, and on another
 * communicator. The checksum is for comparing runs.
 */
#include "case.h"
#include "data.h"

#include <math.h>
#include <stdio.h>
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

static void same(size_t bytes, int repeat, const char *what)
{
	if (memcmp(first, out, bytes))
		case_fail("%s of %zu bytes, repetition %d: other bits", what, bytes, repeat);
}

static void one_size(MPI_Comm comms[2], MPI_Datatype type, size_t bytes)
{
	int is_double = type == MPI_DOUBLE, count = (int)(bytes / (is_double ? 8 : 4));

	fill(is_double, (size_t)count);
	for (int all = 0; all < 2; all++)
		for (int i = 0; i < REPEATS; i++, calls++) {
			usleep((useconds_t)(rand() % MOST_DELAY_US));
			if (all)
				MPI_Allreduce(in, out, count, type, MPI_SUM, comms[i & 1]);
			else
				MPI_Reduce(in, out, count, type, MPI_SUM, 0, comms[i & 1]);
			if (!i) {
				memcpy(first, out, bytes);
				if (all)
					MPI_Bcast(first, (int)bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
			}
			if (all || !rank)
				same(bytes, i, all ? "Allreduce" : "Reduce");
		}
	checksum = data_hash(checksum, out, bytes);
}

int main(int argc, char **argv)
{
	MPI_Comm comms[2] = { MPI_COMM_WORLD };

	case_begin(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]);
	srand((unsigned int)getpid());
	for (size_t bytes = 4; bytes <= MOST_BYTES; bytes *= 2) {
		one_size(comms, MPI_FLOAT, bytes);
		if (bytes >= 8)
			one_size(comms, MPI_DOUBLE, bytes);
	}
	MPI_Comm_free(&comms[1]);
	if (!rank)
		printf("expect barrier 0\nexpect bcast 0\nexpect scatter 0\nexpect gather 0\n"
		       "expect allgather 0\nexpect alltoall 0\nexpect reduce %d\n"
		       "expect allreduce %d\nchecksum %lx\n"
		       "reproducible: %d reductions with equal bits\n",
		       calls / 2 * ranks, calls / 2 * ranks, (unsigned long)checksum, calls);
	MPI_Finalize();
	return 0;
}
