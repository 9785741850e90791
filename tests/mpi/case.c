/* SPDX-License-Identifier: BSD-3-Clause */
#include "case.h"

#include "checked.h"
#include "data.h"
#include "form.h"

#include <malloc.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NAME(X, ID, name, ...) #name,
const char *const case_names[CASE_FUNCTIONS] = { OC_FUNCTION_ROWS(NAME, ) };

static int world_rank, world_size;
/* Calls of this rank that onecopy must serve, and then those that it can serve. */
static unsigned long served[2 * CASE_FUNCTIONS];
static int counting = 1;
static uint64_t checksum;

void case_fail(const char *format, ...)
{
	char text[1024];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	fprintf(stderr, "WRONG: rank %d of %d: %s\n", world_rank, world_size, text);
	fflush(stderr);
	MPI_Abort(MPI_COMM_WORLD, 1);
	abort();
}

double case_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

void case_info_key(char *key, size_t bytes, enum case_collective collective)
{
	static const char *const keys[OC_COLLECTIVES] = OCI_INFO_KEYS;

	snprintf(key, bytes, "%s", keys[case_of(collective)]);
}

enum case_collective case_parse(const char *name, size_t length)
{
	for (int i = 0; i < CASE_FUNCTIONS; i++)
		if (strlen(case_names[i]) == length && !memcmp(case_names[i], name, length))
			return (enum case_collective)i;
	case_fail("no collective is called %.*s", (int)length, name);
}

static void tell_ranks(int *rank, int *ranks)
{
	MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
	MPI_Comm_size(MPI_COMM_WORLD, &world_size);
	if (rank)
		*rank = world_rank;
	if (ranks)
		*ranks = world_size;
}

void case_begin_threads(int *argc, char ***argv, int *rank, int *ranks)
{
	int provided;

	MPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, &provided);
	tell_ranks(rank, ranks);
	if (provided != MPI_THREAD_MULTIPLE)
		case_fail("this test needs MPI_THREAD_MULTIPLE");
}

void case_begin(int *argc, char ***argv, int *rank, int *ranks)
{
	MPI_Init(argc, argv);
	tell_ranks(rank, ranks);
}

void case_keep_memory(void)
{
	mallopt(M_MMAP_THRESHOLD, 32 << 20);
	mallopt(M_TRIM_THRESHOLD, 1 << 30);
}

int case_end(const char *format, ...)
{
	va_list arguments;

	case_report();
	va_start(arguments, format);
	if (!world_rank)
		vprintf(format, arguments);
	va_end(arguments);
	MPI_Finalize();
	return 0;
}

int case_has_in_place(enum case_collective collective)
{
	return oci_has_in_place(case_of(collective));
}

int case_has_root(enum case_collective collective)
{
	return oci_is_rooted(case_of(collective));
}

static int has_blocks(enum case_collective collective)
{
	return oci_sends_each(case_of(collective)) || oci_receives_each(case_of(collective));
}

size_t case_buffer_bytes(const struct case_call *call, int ranks)
{
	return call->bytes * (has_blocks(call->collective) ? (size_t)ranks : 1);
}

void case_count(enum case_collective collective, int must)
{
	/* Threads count, too. */
	if (counting)
		__atomic_fetch_add(&served[collective + (must ? 0 : CASE_FUNCTIONS)], 1,
				   __ATOMIC_RELAXED);
}

void case_add_checksum(const void *bytes, size_t length)
{
	if (counting)
		checksum = data_hash(checksum, bytes, length);
}

/* Plain numbers by turns, whatever number of bytes they make up, and ints of other layouts. */
static struct checked_spec spec_of(const struct case_call *call)
{
	enum { ELEMENT = LAYOUT_INTS * 4 };
	int kind = call->kind % CASE_KINDS;
	struct checked_spec spec = { .collective = call->collective,
				     .root = call->root,
				     .in_place = call->in_place,
				     .shape = (unsigned int)call->salt,
				     .salt = call->salt };

	if (kind < PLAINS) {
		if (call->bytes % (size_t)layout_plain[kind].extent)
			kind = PLAIN_BYTES;
		spec.plain = 1 + kind;
		spec.elements = (int)(call->bytes / (size_t)layout_plain[kind].extent);
		return spec;
	}
	spec.elements = (int)((call->bytes + (call->bytes < ELEMENT ? ELEMENT - 1 : 0)) / ELEMENT);
	spec.layout = kind == PLAINS ? 1 : (int)(call->salt % 15);
	spec.differ = kind != PLAINS;
	spec.maps = kind == PLAINS || call->salt % 2;
	return spec;
}

int case_run(MPI_Comm comm, const struct case_call *call)
{
	struct checked_spec spec;
	struct checked checked;
	int err;

	if (!layout_count)
		layouts_make();
	spec = spec_of(call);
	checked_open(&checked, comm, &spec);
	err = checked_call(&checked);
	if (err == MPI_SUCCESS)
		checked_verify(&checked);
	checked_close(&checked);
	return err;
}

void case_barrier(MPI_Comm comm)
{
	checked_run(comm, &(struct checked_spec){ .collective = CASE_BARRIER }, FORM_BLOCKING);
}

void case_stop_counting(void)
{
	counting = 0;
}

void case_start_counting(void)
{
	counting = 1;
	memset(served, 0, sizeof(served));
}

/* Of all functions that are one collective to onecopy. */
static unsigned long add_functions(const unsigned long *of, enum oc_collective collective)
{
	unsigned long sum = 0;

	for (int f = 0; f < CASE_FUNCTIONS; f++)
		sum += case_of((enum case_collective)f) == collective ? of[f] : 0;
	return sum;
}

unsigned long case_counted(enum case_collective collective, int must)
{
	return add_functions(served + (must ? 0 : CASE_FUNCTIONS), case_of(collective));
}

void case_report(void)
{
	enum { COUNTS = 2 * CASE_FUNCTIONS };
	unsigned long sum[COUNTS + 1], other[COUNTS + 1];

	memcpy(sum, served, sizeof(served));
	sum[COUNTS] = checksum;
	if (world_rank) {
		MPI_Send(sum, COUNTS + 1, MPI_UNSIGNED_LONG, 0, 77, MPI_COMM_WORLD);
		return;
	}
	for (int r = 1; r < world_size; r++) {
		MPI_Recv(other, COUNTS + 1, MPI_UNSIGNED_LONG, r, 77, MPI_COMM_WORLD,
			 MPI_STATUS_IGNORE);
		for (int i = 0; i < COUNTS; i++)
			sum[i] += other[i];
		sum[COUNTS] = data_hash(sum[COUNTS], &other[COUNTS], sizeof(other[0]));
	}
	for (int i = 0; i < 2; i++)
		for (int c = 0; c < OC_COLLECTIVES; c++)
			printf("%s %s %lu\n", i ? "besides" : "expect",
			       oci_collective_name((enum oc_collective)c),
			       add_functions(sum + (size_t)i * CASE_FUNCTIONS,
					     (enum oc_collective)c));
	printf("checksum %lx\n", sum[COUNTS]);
	fflush(stdout);
}
