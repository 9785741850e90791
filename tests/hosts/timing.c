/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * timing CELL_MS WORD...: times collectives of ranks on several hosts of one machine, whose clock
 * is one. A word is a collective, or a number of bytes, instead of the sizes below. Before each
 * call the ranks meet by messages and agree on a time, at which all of them begin: where they begin
 * as the meeting leaves them, who leaves it first waits for the others inside the call, and how
 * long depends on the call before (the last rank of a Bcast of 20 us began up to 12 us before its
 * root). A call's value is from that time until its last rank's end, a cell's the median over
 * calls. Rank 0 prints "COLLECTIVE BYTES US TX PACKETS", where TX is the bytes that all hosts sent
 * over eth0 in a call, by the kernel's counters, the meetings included, without what TCP sent
 * again, and PACKETS in how many packets the kernel handed them to the device.
 */
#include "meet.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_CALLS = 400, LEAST_CALLS = 5, MOST_RANKS = 64, MOST_AT_ONCE = 64 };

enum { MOST_SIZES = 32 };
static int sizes[MOST_SIZES] = { 8, 1024, 4096, 16384, 65536, 262144, 1048576 };
static int size_count = 7, most = 1048576;

static int is_counter;
static char *one, *other;

/* The common time, on the clock of all. It is far enough off for its message to be there. */
static double begin_together(void)
{
	enum { AHEAD_US = 200 };
	double at;

	meet();
	at = now_us() + AHEAD_US;
	for (int r = 1; r < ranks && !rank; r++)
		MPI_Send(&at, 1, MPI_DOUBLE, r, 4, MPI_COMM_WORLD);
	if (rank)
		MPI_Recv(&at, 1, MPI_DOUBLE, 0, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	while (now_us() < at)
		sched_yield();
	return at;
}

/* What TCP of this host has sent again: whole segments. */
static double segments_again(void)
{
	FILE *file = is_counter ? fopen("/proc/net/snmp", "r") : NULL;
	double segments, again = 0;
	char line[512];

	/* A line of names, a line of numbers. */
	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "Tcp: %*d %*d %*d %*d %*d %*d %*d %*d %*d %*d %*d %lf",
			   &segments) == 1)
			again = segments;
	if (file)
		fclose(file);
	return again;
}

/* Adds what this host has sent, bytes and packets, `sign` times. */
static void add_sent(double tx[2], int sign)
{
	enum { SEGMENT = 1514 };
	FILE *file = is_counter ? fopen("/proc/net/dev", "r") : NULL;
	double received, bytes, packets, again = segments_again();
	char line[512];

	while (file && fgets(line, sizeof(line), file))
		if (strstr(line, "eth0:") &&
		    sscanf(strstr(line, ":") + 1, "%lf %*f %*f %*f %*f %*f %*f %*f %lf %lf",
			   &received, &bytes, &packets) == 3) {
			tx[0] += sign * (bytes - SEGMENT * again);
			tx[1] += sign * (packets - again);
		}
	if (file)
		fclose(file);
}

static int counts[MOST_RANKS], displs[MOST_RANKS];

/* "bcast"; "ibcast" is MPI_Ibcast, waited for at once; "16ibcast" are 16 of them. */
#define BOTH(name, Name, ...)                                              \
	do {                                                               \
		if (!strcmp(what, #name))                                  \
			MPI_##Name(__VA_ARGS__ MPI_COMM_WORLD);            \
		else if (!strcmp(what, "i" #name))                         \
			MPI_I##name(__VA_ARGS__ MPI_COMM_WORLD, &request); \
	} while (0)

static MPI_Request call_one(const char *what, int bytes, char *one, char *other)
{
	int doubles = bytes / 8, root = 0;
	MPI_Request request = MPI_REQUEST_NULL;

	for (int r = 0; r < ranks; r++) {
		counts[r] = strstr(what, "reduce_scatter") ? doubles : bytes;
		displs[r] = r * bytes;
	}
	BOTH(barrier, Barrier, );
	BOTH(bcast, Bcast, one, bytes, MPI_BYTE, root, );
	BOTH(reduce, Reduce, one, other, doubles, MPI_DOUBLE, MPI_SUM, root, );
	BOTH(allreduce, Allreduce, one, other, doubles, MPI_DOUBLE, MPI_SUM, );
	BOTH(gather, Gather, one, bytes, MPI_BYTE, other, bytes, MPI_BYTE, root, );
	BOTH(scatter, Scatter, other, bytes, MPI_BYTE, one, bytes, MPI_BYTE, root, );
	BOTH(allgather, Allgather, one, bytes, MPI_BYTE, other, bytes, MPI_BYTE, );
	BOTH(gatherv, Gatherv, one, bytes, MPI_BYTE, other, counts, displs, MPI_BYTE, root, );
	BOTH(scatterv, Scatterv, other, counts, displs, MPI_BYTE, one, bytes, MPI_BYTE, root, );
	BOTH(allgatherv, Allgatherv, one, bytes, MPI_BYTE, other, counts, displs, MPI_BYTE, );
	BOTH(alltoall, Alltoall, one, bytes, MPI_BYTE, other, bytes, MPI_BYTE, );
	BOTH(reduce_scatter, Reduce_scatter, one, other, counts, MPI_DOUBLE, MPI_SUM, );
	BOTH(reduce_scatter_block, Reduce_scatter_block, one, other, doubles, MPI_DOUBLE,
	     MPI_SUM, );
	BOTH(scan, Scan, one, other, doubles, MPI_DOUBLE, MPI_SUM, );
	BOTH(exscan, Exscan, one, other, doubles, MPI_DOUBLE, MPI_SUM, );
	return request;
}

static void call(const char *what, int bytes)
{
	MPI_Request requests[MOST_AT_ONCE];
	MPI_Status statuses[MOST_AT_ONCE];
	int many = atoi(what);

	what += strspn(what, "0123456789");
	many = many < 1 ? 1 : many > MOST_AT_ONCE ? MOST_AT_ONCE : many;
	for (int i = 0; i < many; i++) {
		size_t at = (size_t)i * (size_t)bytes % (size_t)most;

		requests[i] = call_one(what, bytes, one + at, other + at);
	}
	MPI_Waitall(many, requests, statuses);
}

/* To rank 0, by messages. */
static void to_root(double *values, int count, int add)
{
	double *theirs = malloc((size_t)count * sizeof(*theirs));

	if (rank) {
		MPI_Send(values, count, MPI_DOUBLE, 0, 2, MPI_COMM_WORLD);
	} else {
		for (int r = 1; r < ranks && theirs; r++) {
			MPI_Recv(theirs, count, MPI_DOUBLE, r, 2, MPI_COMM_WORLD,
				 MPI_STATUS_IGNORE);
			for (int i = 0; i < count; i++)
				values[i] = add			  ? values[i] + theirs[i] :
					    theirs[i] > values[i] ? theirs[i] :
								    values[i];
		}
	}
	free(theirs);
}

/* How many calls fit in; rank 0 says it. */
static int choose(double us, double cell_ms)
{
	int calls = (int)(cell_ms * 1e3 / us);

	calls = calls < LEAST_CALLS ? LEAST_CALLS : calls > MOST_CALLS ? MOST_CALLS : calls;
	for (int r = 1; r < ranks && !rank; r++)
		MPI_Send(&calls, 1, MPI_INT, r, 3, MPI_COMM_WORLD);
	if (rank)
		MPI_Recv(&calls, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	return calls;
}

static void run_cell(const char *what, int bytes, double cell_ms)
{
	static double us[MOST_CALLS];
	double tx[2] = { 0, 0 }, start;
	int calls;

	/* onecopy's first nonblocking calls are the MPI's, as the next blocking one makes what they
	 * want. */
	call(what, bytes);
	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = 0; i < 3; i++) {
		start = begin_together();
		call(what, bytes);
	}
	calls = choose(now_us() - start, cell_ms);
	meet();
	add_sent(tx, -1);
	for (int i = 0; i < calls; i++) {
		one[i % bytes]++;
		us[i] = -begin_together();
		call(what, bytes);
		us[i] += now_us();
	}
	meet();
	add_sent(tx, 1);
	/* Before all have looked nobody may begin what comes next. */
	meet();
	to_root(us, calls, 0);
	to_root(tx, 2, 1);
	qsort(us, (size_t)calls, sizeof(us[0]), by_value);
	if (!rank)
		printf("%s %d %.1f %.0f %.1f\n", what, bytes, us[calls / 2], tx[0] / calls,
		       tx[1] / calls);
}

static int is_size(const char *word)
{
	return !word[strspn(word, "0123456789")];
}

static void take_sizes(char **words)
{
	int count = 0;

	for (; *words; words++) {
		if (!is_size(*words))
			continue;
		if (count == MOST_SIZES) {
			fprintf(stderr, "timing: no more than %d sizes\n", MOST_SIZES);
			MPI_Abort(MPI_COMM_WORLD, 2);
		}
		sizes[count] = atoi(*words);
		if (sizes[count++] < 1) {
			fprintf(stderr, "timing: a size is 1 byte or more, not '%s'\n", *words);
			MPI_Abort(MPI_COMM_WORLD, 2);
		}
	}
	if (!count)
		return;
	size_count = count;
	most = 1;
	for (int i = 0; i < count; i++)
		most = sizes[i] > most ? sizes[i] : most;
}

int main(int argc, char **argv)
{
	double cell_ms = argc > 1 ? atof(argv[1]) : 100;
	MPI_Comm host;
	int on_host;

	MPI_Init(&argc, &argv);
	if (argc > 2)
		take_sizes(argv + 2);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
	MPI_Comm_rank(host, &on_host);
	MPI_Comm_free(&host);
	is_counter = !on_host;
	one = calloc((size_t)most, (size_t)ranks + 1);
	other = calloc((size_t)most, (size_t)ranks + 1);
	if (!one || !other || ranks > MOST_RANKS)
		MPI_Abort(MPI_COMM_WORLD, 1);
	for (int i = 2; i < argc; i++)
		for (int s = 0;
		     !is_size(argv[i]) && s < (strstr(argv[i], "barrier") ? 1 : size_count); s++)
			run_cell(argv[i], sizes[s], cell_ms);
	fflush(stdout);
	MPI_Finalize();
	free(one);
	free(other);
	return 0;
}
