/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * table COLLECTIVE=ALGORITHM[@BYTES]...: each algorithm forced on a communicator of its own, and
 * its collective called with every layout, in every form, with and without MPI_IN_PLACE, with
 * blocks from nothing to what is copied singly; BYTES is the largest buffer that it serves.
 * All functions that are one collective to onecopy, such as Alltoallw and Alltoallv, have its
 * algorithms.
 *
 * The nonblocking and persistent calls of a size are all outstanding at once.
 */
#include "checked.h"

#include <stdlib.h>

/* One element is 24 bytes. */
static const int sizes[] = { 1, 40, 9000 };
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]), MOST_CALLS = 2 * LAYOUT_MOST, FEW_RANKS = 3 };

static MPI_Comm comm;
static int rank, ranks;
static unsigned long calls;

static struct checked_spec spec_of(enum case_collective collective, int elements, int number,
				   int in_place)
{
	return (struct checked_spec){
		.collective = collective,
		.elements = elements,
		.root = (number + elements) % ranks,
		.in_place = in_place,
		.layout = number,
		.differ = number % 3 == 1,
		.maps = number % 2,
		.shape = (unsigned int)(number + elements),
		.salt = calls,
	};
}

/* The large ones are for how pieces are found, not for each layout's peculiarities. Many ranks have
 * every fifth, as fewer have all: spec_of() goes by twos and threes. */
static int next_layout(int number, int elements)
{
	if (ranks > FEW_RANKS)
		return number + 5;
	return number + (elements > 1000 ? 3 : 1);
}

static void run_blocking(enum case_collective collective, int elements)
{
	for (int n = 0; n < layout_count; n = next_layout(n, elements)) {
		for (int in_place = 0; in_place <= case_has_in_place(collective); in_place++) {
			struct checked_spec spec = spec_of(collective, elements, n, in_place);

			checked_run(comm, &spec, FORM_BLOCKING);
			calls++;
		}
	}
}

static int open_all(struct checked *call, enum case_collective collective, int elements, int offset)
{
	int count = 0;

	for (int n = 0; n < layout_count; n = next_layout(n, elements)) {
		struct checked_spec spec = spec_of(collective, elements, n + offset,
						   case_has_in_place(collective) && n % 2);

		checked_open(&call[count++], comm, &spec);
		calls++;
	}
	return count;
}

static void run_nonblocking(enum case_collective collective, int elements)
{
	static struct checked call[MOST_CALLS];
	MPI_Request request[MOST_CALLS];
	int count = open_all(call, collective, elements, 1);

	for (int i = 0; i < count; i++) {
		checked_own_handles(&call[i]);
		checked_start(&call[i]);
		request[i] = call[i].request;
		checked_free_handles(&call[i]);
	}
	if (MPI_Waitall(count, request, MPI_STATUSES_IGNORE) != MPI_SUCCESS)
		case_fail("%s: MPI_Waitall failed", case_names[collective]);
	for (int i = 0; i < count; i++) {
		checked_verify(&call[i]);
		checked_close(&call[i]);
	}
}

static void run_persistent(enum case_collective collective, int elements)
{
	enum { STARTS = 3 };
	static struct checked call[MOST_CALLS];
	MPI_Request request[MOST_CALLS];
	int count = open_all(call, collective, elements, 2);

	for (int i = 0; i < count; i++) {
		checked_init(&call[i]);
		request[i] = call[i].request;
	}
	for (int start = 0; start < STARTS; start++) {
		if (start)
			for (int i = 0; i < count; i++)
				checked_fill(&call[i], ++calls);
		for (int i = 0; i < count; i++)
			checked_count(&call[i]);
		if (MPI_Startall(count, request) != MPI_SUCCESS ||
		    MPI_Waitall(count, request, MPI_STATUSES_IGNORE) != MPI_SUCCESS)
			case_fail("%s: MPI_Startall or MPI_Waitall failed", case_names[collective]);
		for (int i = 0; i < count; i++)
			checked_verify(&call[i]);
	}
	for (int i = 0; i < count; i++) {
		MPI_Request_free(&request[i]);
		checked_close(&call[i]);
	}
}

static unsigned long buffer_bytes(enum case_collective collective, int elements)
{
	struct case_call call = { .collective = collective,
				  .bytes = (size_t)elements * LAYOUT_INTS * sizeof(int) };

	return case_buffer_bytes(&call, ranks);
}

/*
 * Of one rank they are the MPI's own: MPICH 4.0.2's Gather and Scatter move nothing, and others end
 * in an assertion of its own.
 */
static int persistent_works(void)
{
#ifdef MPICH_VERSION
	if (ranks == 1)
		return 0;
#endif
	return !getenv("OC_TEST_STOCK");
}

static void run_collective(enum case_collective collective, unsigned long most)
{
	for (int i = 0; i < SIZES; i++) {
		int elements = sizes[i];

		/* Half a megabyte a rank is large enough to be cut. */
		if (elements > 1000 && buffer_bytes(collective, 1) > 24)
			elements /= ranks;
		if (buffer_bytes(collective, elements) > most)
			continue;
		run_blocking(collective, elements);
		run_nonblocking(collective, elements);
		if (persistent_works())
			run_persistent(collective, elements);
	}
}

static void run_forced(const char *word)
{
	struct case_forced forced;

	case_force(word, &forced);
	comm = forced.comm;
	for (int f = 0; f < CASE_FUNCTIONS; f++)
		if (case_of((enum case_collective)f) == case_of(forced.collective))
			run_collective((enum case_collective)f, forced.most);
	case_forced_end(&forced);
}

int main(int argc, char **argv)
{
	case_begin(&argc, &argv, &rank, &ranks);
	case_stop_counting();
	layouts_make();
	for (int i = 1; i < argc; i++)
		run_forced(argv[i]);
	return case_end("table: %lu calls a rank on %d ranks, every byte right\n", calls, ranks);
}
