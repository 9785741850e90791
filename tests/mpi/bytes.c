/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every byte of the eight collectives: sizes around every threshold, every root, with and without
 * MPI_IN_PLACE, types and operations in turn.
 *
 * bytes [--max COLLECTIVE=BYTES]... [--only COLLECTIVE]...: the largest buffer of a collective (the
 * driver knows what a forced algorithm can serve); only these collectives.
 */
#include "case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const size_t sizes[] = { 0,    1,    4,	   47,	  48,	  496,	   497,
				1000, 4096, 65536, 65537, 300000, 1048579, 2097152 };

/* Eight ranks with larger ones would spend their time in the expectation, not in onecopy. */
static size_t max_bytes[CASE_COLLECTIVES];
enum { LARGEST = 3 << 20 };

/* Both forms up to here; beyond, in turn from root to root, for the sake of time. */
enum { BOTH_FORMS = 65537 };

static unsigned long run_size(enum case_collective collective, size_t bytes, int ranks)
{
	int roots = case_has_root(collective) ? ranks : 1;
	int forms = case_has_in_place(collective) ? 2 : 1;
	static unsigned long calls;
	unsigned long before = calls;

	for (int root = 0; root < roots; root++) {
		for (int in_place = 0; in_place < forms; in_place++) {
			struct case_call call = { .collective = collective,
						  .bytes = bytes,
						  .root = root,
						  .in_place = in_place,
						  .kind = (int)(calls % CASE_KINDS),
						  .salt = calls };

			if (roots > 1 && bytes > BOTH_FORMS && in_place != root % forms)
				continue;
			case_run(MPI_COMM_WORLD, &call);
			calls++;
		}
	}
	return calls - before;
}

static unsigned long run_sizes(enum case_collective collective, int ranks)
{
	unsigned long calls = 0;

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct case_call call = { .collective = collective, .bytes = sizes[i] };

		if (case_buffer_bytes(&call, ranks) <= max_bytes[collective])
			calls += run_size(collective, sizes[i], ranks);
	}
	return calls;
}

int main(int argc, char **argv)
{
	int selected = 0, ranks, rank;
	unsigned long calls = 0;

	case_begin(&argc, &argv);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	for (int i = 0; i < CASE_COLLECTIVES; i++)
		max_bytes[i] = LARGEST;
	for (int i = 1; i + 1 < argc; i += 2) {
		const char *value = argv[i + 1];
		size_t length = strcspn(value, "=");
		enum case_collective collective = case_parse(value, length);

		if (!strcmp(argv[i], "--only"))
			selected |= 1 << collective;
		else if (!strcmp(argv[i], "--max") && value[length])
			max_bytes[collective] = strtoul(value + length + 1, NULL, 10);
		else
			case_fail("%s %s is no option", argv[i], value);
	}
	for (int i = 0; i < CASE_COLLECTIVES; i++)
		if (!selected || selected & 1 << i)
			calls += run_sizes((enum case_collective)i, ranks);
	case_report();
	if (!rank)
		printf("bytes: %lu calls on %d ranks, every byte right\n", calls, ranks);
	MPI_Finalize();
	return 0;
}
