/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every byte of a collective: sizes around every threshold, every root, with and without
 * MPI_IN_PLACE, types and operations in turn.
 *
 * bytes [COLLECTIVE[=ALGORITHM[@BYTES]]]...: these, or all of them; each algorithm on a
 * communicator of its own, with buffers of so many bytes at most. OC_TEST_BYTES: larger buffers are
 * left out.
 */
#include "case.h"

#include <stdlib.h>
#include <string.h>

static const size_t sizes[] = { 0,    1,    4,	   47,	  48,	  496,	   497,
				1000, 4096, 65536, 65537, 300000, 1048579, 2097152 };

/* Eight ranks with larger ones would spend their time in the expectation, not in onecopy; with the
 * largest sizes, too, which more than five leave out. */
static unsigned long largest = 3 << 20;
enum { FEW_RANKS = 5, LARGEST_OF_MANY = 300000 };

/* Both forms, with each root, up to here; beyond, for the sake of time, in turn from root to root,
 * and of many roots every third. */
enum { BOTH_FORMS = 65537, MANY_ROOTS = 4 };

static unsigned long calls;

static void run_size(MPI_Comm comm, enum case_collective collective, size_t bytes, int ranks)
{
	int roots = case_has_root(collective) ? ranks : 1;
	int forms = case_has_in_place(collective) ? 2 : 1;
	int step = bytes > BOTH_FORMS && roots > MANY_ROOTS ? 3 : 1;

	for (int root = 0; root < roots; root += step) {
		for (int in_place = 0; in_place < forms; in_place++) {
			struct case_call call = { .collective = collective,
						  .bytes = bytes,
						  .root = root,
						  .in_place = in_place,
						  .kind = (int)(calls % CASE_KINDS),
						  .salt = calls };

			if (roots > 1 && bytes > BOTH_FORMS && in_place != root % forms)
				continue;
			case_run(comm, &call);
			calls++;
		}
	}
}

static void run_sizes(MPI_Comm comm, enum case_collective collective, unsigned long most, int ranks)
{
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct case_call call = { .collective = collective, .bytes = sizes[i] };

		if (ranks > FEW_RANKS && sizes[i] > LARGEST_OF_MANY)
			break;
		if (case_buffer_bytes(&call, ranks) <= (most < largest ? most : largest))
			run_size(comm, collective, sizes[i], ranks);
	}
}

static void run_word(const char *word, int ranks)
{
	struct case_forced forced;

	if (!strchr(word, '=')) {
		run_sizes(MPI_COMM_WORLD, case_parse(word, strlen(word)), largest, ranks);
		return;
	}
	case_force(word, &forced);
	run_sizes(forced.comm, forced.collective, forced.most, ranks);
	case_forced_end(&forced);
}

int main(int argc, char **argv)
{
	const char *bytes = getenv("OC_TEST_BYTES");
	int ranks, rank;
	char *end;

	case_begin(&argc, &argv, &rank, &ranks);
	if (bytes) {
		largest = strtoul(bytes, &end, 10);
		if (!largest || *end)
			case_fail("OC_TEST_BYTES is a number of bytes, not '%s'", bytes);
	}
	case_keep_memory();
	for (int i = 1; i < argc; i++)
		run_word(argv[i], ranks);
	for (int i = 0; i < CASE_COLLECTIVES && argc == 1; i++)
		run_sizes(MPI_COMM_WORLD, (enum case_collective)i, largest, ranks);
	return case_end("bytes: %lu calls on %d ranks, every byte right\n", calls, ranks);
}
