/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What no layout of table.c has: absolute addresses in types, and the predefined pairs with the
 * operations on them.
 */
#include "checked.h"

#include <dlfcn.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static long checks;
static int rank, size;
static MPI_Comm comm; /* the ranks in reverse order */

/* What rank `from` gives at int k. */
static int value(int from, int to, int k)
{
	return (int)((unsigned int)from * 1000003u + (unsigned int)to * 10007u + (unsigned int)k +
		     1u);
}

/* Absolute addresses, with any collective and layout. */
static void test_all_at_bottom(int elements, int root, int number)
{
	for (int c = CASE_BCAST; c < CASE_COLLECTIVES; c++) {
		for (int in_place = 0; in_place <= case_has_in_place((enum case_collective)c);
		     in_place++) {
			struct checked_spec spec = {
				.collective = (enum case_collective)c,
				.elements = elements,
				.root = root,
				.in_place = in_place,
				.layout = number,
				.differ = 1,
				.shape = (unsigned int)number,
				.salt = (uint64_t)number,
				.bottom = 1,
			};

			if (checked_is_reduction(spec.collective))
				continue;
			checked_run(comm, &spec, FORM_BLOCKING);
			checks++;
		}
	}
}

/* ---- pairs ---------------------------------------------------------------------------------- */

/* The predefined pairs differ in size, in gaps and in the kind of their value. */
struct pair_kind {
	const char *name;
	MPI_Datatype type;
	size_t bytes;
	void (*set)(void *at, int value, int index);
	bool (*is)(const void *at, int value, int index);
};

#define PAIR_KIND(kind, value_type)                                              \
	struct kind {                                                            \
		value_type value;                                                \
		int index;                                                       \
	};                                                                       \
	static void set_##kind(void *at, int value, int index)                   \
	{                                                                        \
		((struct kind *)at)->value = (value_type)value;                  \
		((struct kind *)at)->index = index;                              \
	}                                                                        \
	static bool is_##kind(const void *at, int value, int index)              \
	{                                                                        \
		const struct kind *pair = at;                                    \
		return pair->value == (value_type)value && pair->index == index; \
	}

PAIR_KIND(short_int, short)
PAIR_KIND(two_int, int)
PAIR_KIND(float_int, float)
PAIR_KIND(double_int, double)
PAIR_KIND(long_int, long)
PAIR_KIND(long_double_int, long double)

static int pair_value(int r, int i)
{
	return (r * 7 + i * 3) % (size + 2);
}

/* The lowest rank that has the largest (sign 1) or smallest (sign -1) value. */
static int best_rank(int i, int sign)
{
	int best = 0;

	for (int r = 1; r < size; r++)
		if (sign * pair_value(r, i) > sign * pair_value(best, i))
			best = r;
	return best;
}

static void check_pairs(const struct pair_kind *kind, const char *pairs, int elements, int sign)
{
	for (int i = 0; i < elements; i++) {
		int best = best_rank(i, sign);

		if (!kind->is(pairs + (size_t)i * kind->bytes, pair_value(best, i), best))
			case_fail("%s of %s: pair %d of %d is wrong",
				  sign > 0 ? "Allreduce MPI_MAXLOC" : "Reduce MPI_MINLOC",
				  kind->name, i, elements);
	}
	checks++;
}

#define KIND(kind, type)                                                \
	{                                                               \
#type, type, sizeof(struct kind), set_##kind, is_##kind \
	}

static void test_pairs(int elements, int root)
{
	const struct pair_kind kinds[] = {
		KIND(short_int, MPI_SHORT_INT), KIND(two_int, MPI_2INT),
		KIND(float_int, MPI_FLOAT_INT), KIND(double_int, MPI_DOUBLE_INT),
		KIND(long_int, MPI_LONG_INT),	KIND(long_double_int, MPI_LONG_DOUBLE_INT),
	};

	for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
		const struct pair_kind *kind = &kinds[k];
		char *mine = calloc((size_t)elements + 1, kind->bytes);
		char *all = calloc((size_t)elements + 1, kind->bytes);

		for (int i = 0; i < elements; i++)
			kind->set(mine + (size_t)i * kind->bytes, pair_value(rank, i), rank);
		MPI_Allreduce(mine, all, elements, kind->type, MPI_MAXLOC, comm);
		check_pairs(kind, all, elements, 1);
		memcpy(all, mine, (size_t)elements * kind->bytes);
		MPI_Reduce(rank == root ? MPI_IN_PLACE : mine, all, elements, kind->type,
			   MPI_MINLOC, root, comm);
		if (rank == root)
			check_pairs(kind, all, elements, -1);
		free(mine);
		free(all);
	}
}

/* Every other int of a rank's blocks. */
enum { FEW_INTS = 1 << 10, PACKED_INTS = 64 << 10, PACKED_CALLS = 20, PACKED_RANKS = 8 };

static void exchange_packed(int *from, int *to, const int *counts, const int *places,
			    const MPI_Datatype *types, int calls)
{
	for (int call = 0; call < calls; call++) {
		MPI_Alltoallw(from, counts, places, types, to, counts, places, types, comm);
		case_count(CASE_ALLTOALLW, size > 1);
	}
}

/* One of `type`, which spans so many ints, to and from each rank. */
static void one_each(int *counts, int *places, MPI_Datatype *types, MPI_Datatype type, int ints)
{
	for (int i = 0; i < size; i++) {
		counts[i] = 1;
		places[i] = i * ints * (int)sizeof(int);
		types[i] = type;
	}
}

/* How many times MPICH was asked what a type is made of, where behind.c counts that. */
static long contents_asked(void)
{
	void *counter = dlsym(RTLD_DEFAULT, "oc_test_contents_asked");

	return counter ? ((long (*)(void))counter)() : 0;
}

/* So many ints each way in pieces that go as a list, that are packed by one, and that the MPI
 * packs; of all, every other. The list of those that are packed is made once; of larger messages it
 * is first asked each time whether they go as a list. */
static void test_pieces(int length, int all)
{
	int pieces = all / length, ints = 2 * pieces * length;
	int counts[PACKED_RANKS], places[PACKED_RANKS];
	int *from = malloc((size_t)(size * ints) * sizeof(int));
	int *to = calloc((size_t)(size * ints), sizeof(int));
	MPI_Datatype sparse, types[PACKED_RANKS];
	long asked;

	MPI_Type_vector(pieces, length, 2 * length, MPI_INT, &sparse);
	MPI_Type_commit(&sparse);
	one_each(counts, places, types, sparse, ints);
	for (int i = 0; i < size * ints; i++)
		from[i] = value(rank, i / ints, i % ints);
	exchange_packed(from, to, counts, places, types, 1);
	asked = contents_asked();
	exchange_packed(from, to, counts, places, types, 1);
	if (all == FEW_INTS && contents_asked() > asked)
		case_fail("the list of pieces of %d ints is made anew in each call", length);
	for (int i = 0; i < size * ints; i++)
		if (to[i] != (i % ints / length % 2 ? 0 : value(i / ints, rank, i % ints)))
			case_fail("an Alltoallw of every other %d ints is wrong", length);
	MPI_Type_free(&sparse);
	free(from);
	free(to);
}

/* Memory of packed copies stays with the process, which would fault in every page of it again. */
static void test_copies_are_kept(void)
{
	int ints = 2 * PACKED_INTS, counts[PACKED_RANKS], places[PACKED_RANKS];
	int *from = malloc((size_t)(size * ints) * sizeof(int));
	int *to = calloc((size_t)(size * ints), sizeof(int));
	MPI_Datatype sparse, types[PACKED_RANKS];
	struct rusage before, after;

	/* As malloc begins: what it gave back before would otherwise have taught it to keep more.
	 */
	mallopt(M_MMAP_THRESHOLD, 128 << 10);
	MPI_Type_vector(PACKED_INTS, 1, 2, MPI_INT, &sparse);
	MPI_Type_commit(&sparse);
	one_each(counts, places, types, sparse, ints);
	for (int i = 0; i < size * ints; i++)
		from[i] = rank * size + i / ints;
	exchange_packed(from, to, counts, places, types, 4);
	getrusage(RUSAGE_SELF, &before);
	exchange_packed(from, to, counts, places, types, PACKED_CALLS);
	getrusage(RUSAGE_SELF, &after);
	for (int i = 0; i < size * ints; i++)
		if (to[i] != (i % 2 ? 0 : i / ints * size + rank))
			case_fail("an Alltoallw of every other int is wrong");
	/* Two copies of a call are 128 pages and more. */
	if (!getenv("OC_TEST_STOCK") && after.ru_minflt - before.ru_minflt > PACKED_CALLS * 16)
		case_fail("packed copies are faulted in anew in each call");
	MPI_Type_free(&sparse);
	free(from);
	free(to);
}

int main(int argc, char **argv)
{
	static const int counts[] = { 0, 1, 2, 5, 170, 9000 };
	int number = 0;

	case_begin(&argc, &argv, &rank, &size);
	layouts_make();
	MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comm);
	MPI_Comm_rank(comm, &rank);
	for (int root = 0; root < size; root++) {
		for (int i = 0; i < 6; i++) {
			test_pairs(counts[i], root);
			for (int turn = 0; turn < (counts[i] > 100 ? 2 : layout_count); turn++)
				test_all_at_bottom(counts[i], root, number++);
		}
	}
	for (int length = 1; length <= 1024 && size <= PACKED_RANKS; length *= 4)
		test_pieces(length, PACKED_INTS);
	if (size <= PACKED_RANKS)
		test_pieces(64, FEW_INTS);
	if (size <= PACKED_RANKS)
		test_copies_are_kept();
	MPI_Comm_free(&comm);
	layouts_free();
	if (!rank)
		printf("contents %ld\n", contents_asked());
	return case_end("datatypes: %ld buffers right\n", checks);
}
