/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Derived datatypes, MPI_IN_PLACE, MPI_BOTTOM and operations through the blocking collectives, on
 * several communicators. Ranks of one call use different layouts of the same signature.
 */
#include "checked.h"

#include <malloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define MARGIN 256 /* bytes before and after a buffer that nobody may touch */
#define INTS LAYOUT_INTS
#define GUARD 0xa5

static int world_rank;
static long checks;

static int rank, size;
static MPI_Comm comm;
static const char *comm_name;

static void fail(const char *what)
{
	fprintf(stderr, "datatypes: rank %d of %d in %s: %s\n", rank, size, comm_name, what);
	MPI_Abort(MPI_COMM_WORLD, 1);
	exit(1);
}

/* What rank `from` gives at int k. */
static int value(int from, int to, int k)
{
	return (int)((unsigned int)from * 1000003u + (unsigned int)to * 10007u + (unsigned int)k +
		     1u);
}

static MPI_Datatype blocks_of(int blocks, const int *lengths, const MPI_Aint *offsets)
{
	MPI_Datatype type;

	MPI_Type_create_hindexed(blocks, lengths, offsets, MPI_INT, &type);
	return type;
}

static MPI_Datatype resized(MPI_Datatype type, MPI_Aint lower, MPI_Aint extent)
{
	MPI_Datatype result;

	MPI_Type_create_resized(type, lower, extent, &result);
	MPI_Type_free(&type);
	return result;
}

/* Absolute addresses: a block in one array and a block in another. */
static void test_bottom(int root)
{
	static int near[4], far[4], all[33 * INTS];
	int lengths[2] = { 4, 2 };
	MPI_Aint at[2], base;
	MPI_Datatype type;

	MPI_Get_address(near, &at[0]);
	MPI_Get_address(far, &at[1]);
	type = blocks_of(2, lengths, at);
	MPI_Type_commit(&type);
	memset(far, 0, sizeof(far));
	for (int k = 0; k < 4; k++)
		near[k] = value(rank, 0, k);
	for (int k = 4; k < INTS; k++)
		far[k - 4] = value(rank, 0, k);
	MPI_Bcast(MPI_BOTTOM, 1, type, root, comm);
	for (int k = 0; k < INTS; k++)
		if ((k < 4 ? near[k] : far[k - 4]) != value(root, 0, k))
			fail("Bcast at MPI_BOTTOM: a wrong int");
	if (far[2] || far[3])
		fail("Bcast at MPI_BOTTOM wrote beyond its last block");
	near[0] = rank;
	MPI_Allgather(MPI_BOTTOM, 1, type, all, INTS, MPI_INT, comm);
	for (int from = 0; from < size; from++)
		if (all[from * INTS] != from || all[from * INTS + 1] != value(root, 0, 1) ||
		    all[from * INTS + 5] != value(root, 0, 5))
			fail("Allgather from MPI_BOTTOM: a wrong int");
	MPI_Type_free(&type);
	/* A single dense block at an absolute address. */
	MPI_Get_address(all, &base);
	lengths[0] = INTS;
	type = blocks_of(1, lengths, &base);
	MPI_Type_commit(&type);
	for (int k = 0; k < INTS; k++)
		all[k] = value(rank, 1, k);
	MPI_Bcast(MPI_BOTTOM, 1, type, root, comm);
	for (int k = 0; k < INTS; k++)
		if (all[k] != value(root, 1, k))
			fail("Bcast of a dense block at MPI_BOTTOM: a wrong int");
	MPI_Type_free(&type);
	checks += 3;
}

/* ---- reductions ----------------------------------------------------------------------------- */

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
	char text[128];

	for (int i = 0; i < elements; i++) {
		int best = best_rank(i, sign);

		if (kind->is(pairs + (size_t)i * kind->bytes, pair_value(best, i), best))
			continue;
		snprintf(text, sizeof(text), "%s of %s: pair %d of %d is wrong",
			 sign > 0 ? "Allreduce MPI_MAXLOC" : "Reduce MPI_MINLOC", kind->name, i,
			 elements);
		fail(text);
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

static int offset_of_a, offset_of_b, extent_of_map; /* of the layout that is being reduced */

/* inout = in then inout, for one int pair at the layout's places. MPI: in is of lower rank. */
static void compose_maps(void *in, void *inout, int *length, MPI_Datatype *type)
{
	(void)type;
	for (int i = 0; i < *length; i++) {
		uintptr_t from = (uintptr_t)in + (uintptr_t)(i * (intptr_t)extent_of_map);
		uintptr_t to = (uintptr_t)inout + (uintptr_t)(i * (intptr_t)extent_of_map);
		unsigned int *c = (unsigned int *)(to + (uintptr_t)(intptr_t)offset_of_a);
		unsigned int *d = (unsigned int *)(to + (uintptr_t)(intptr_t)offset_of_b);
		unsigned int a = *(unsigned int *)(from + (uintptr_t)(intptr_t)offset_of_a);
		unsigned int b = *(unsigned int *)(from + (uintptr_t)(intptr_t)offset_of_b);

		layout_compose(&a, &b, *c, *d);
		*c = a;
		*d = b;
	}
}

static unsigned int factor(int r, int i)
{
	return 2u * (unsigned int)(r * 31 + i) + 3u;
}

static void test_user_op(int elements, int root, int offset_a, int offset_b, int extent)
{
	static const int ones[2] = { 1, 1 };
	MPI_Aint at[2] = { offset_a, offset_b };
	size_t bytes = (size_t)elements * (size_t)extent + 2 * MARGIN;
	unsigned char *send = malloc(bytes), *receive = malloc(bytes);
	MPI_Datatype type = resized(blocks_of(2, ones, at), 0, extent);
	MPI_Op op;

	MPI_Type_commit(&type);
	MPI_Op_create(compose_maps, 0, &op);
	offset_of_a = offset_a;
	offset_of_b = offset_b;
	extent_of_map = extent;
	for (int form = 0; form < 3; form++) { /* Allreduce, in place, Reduce */
		memset(send, GUARD, bytes);
		memset(receive, GUARD, bytes);
		for (int i = 0; i < elements; i++) {
			unsigned char *origin = (form == 1 ? receive : send) + MARGIN + i * extent;
			unsigned int a = factor(rank, i), b = (unsigned int)rank;

			memcpy(origin + offset_a, &a, 4);
			memcpy(origin + offset_b, &b, 4);
		}
		if (form == 2)
			MPI_Reduce(send + MARGIN, receive + MARGIN, elements, type, op, root, comm);
		else
			MPI_Allreduce(form == 1 ? MPI_IN_PLACE : send + MARGIN, receive + MARGIN,
				      elements, type, op, comm);
		for (int i = 0; (form != 2 || rank == root) && i < elements; i++) {
			unsigned int a = factor(0, i), b = 0;
			unsigned char *origin = receive + MARGIN + i * extent;

			for (int r = 1; r < size; r++)
				layout_compose(&a, &b, factor(r, i), (unsigned int)r);
			if (memcmp(origin + offset_a, &a, 4) || memcmp(origin + offset_b, &b, 4))
				fail("a user's operation that does not commute: a wrong element");
			memset(origin + offset_a, GUARD, 4);
			memset(origin + offset_b, GUARD, 4);
		}
		for (size_t i = 0; (form != 2 || rank == root) && i < bytes; i++)
			if (receive[i] != GUARD)
				fail("a user's operation: bytes between the elements were written");
		checks++;
	}
	MPI_Op_free(&op);
	MPI_Type_free(&type);
	free(send);
	free(receive);
}

static void test_predefined(int elements, int root)
{
	double *mine = malloc((size_t)elements * sizeof(*mine));
	double *all = malloc((size_t)elements * sizeof(*all));

	for (int i = 0; i < elements; i++)
		all[i] = mine[i] = rank + i % 1000;
	MPI_Reduce(mine, all, elements, MPI_DOUBLE, MPI_SUM, root, comm);
	for (int i = 0; rank == root && i < elements; i++)
		if (all[i] != size * (size - 1) / 2 + size * (i % 1000))
			fail("Reduce of MPI_DOUBLE with MPI_SUM: a wrong sum");
	MPI_Allreduce(MPI_IN_PLACE, mine, elements, MPI_DOUBLE, MPI_MAX, comm);
	for (int i = 0; i < elements; i++)
		if (mine[i] != size - 1 + i % 1000)
			fail("Allreduce in place of MPI_DOUBLE with MPI_MAX: a wrong maximum");
	checks += 2;
	free(mine);
	free(all);
}

/* ---- everything on one communicator --------------------------------------------------------- */

static void test_all(int elements, int root, int number)
{
	for (int c = CASE_BCAST; c < CASE_COLLECTIVES; c++) {
		for (int in_place = 0; in_place < 2; in_place++) {
			struct checked_spec spec = {
				.collective = (enum case_collective)c,
				.elements = elements,
				.root = root,
				.in_place = in_place,
				.layout = number,
				.differ = 1,
				.maps = number % 2,
				.shape = (unsigned int)number,
				.salt = (uint64_t)number,
			};

			if (in_place && !case_has_in_place(spec.collective))
				continue;
			checked_run(comm, &spec, FORM_BLOCKING);
			spec.bottom = 1;
			if (number % 8 == 0)
				checked_run(comm, &spec, FORM_BLOCKING);
			checks++;
		}
	}
	test_predefined(elements, root);
	test_pairs(elements, root);
	test_user_op(elements, root, 0, 4, 8);	 /* dense */
	test_user_op(elements, root, 8, 0, 20);	 /* out of order, with gaps */
	test_user_op(elements, root, -8, 4, 32); /* before the origin */
	test_user_op(elements, root, 16, 20, 8); /* dense, behind the origin */
	MPI_Barrier(comm);
}

static void test_comm(MPI_Comm tested, const char *name, bool large)
{
	static const int counts[] = { 0, 1, 2, 5, 170, 9000 };
	int number = 0;

	comm = tested;
	comm_name = name;
	MPI_Comm_rank(comm, &rank);
	MPI_Comm_size(comm, &size);
	for (int root = 0; root < size; root++) {
		test_bottom(root);
		for (int i = 0; i < (large ? 6 : 4); i++)
			for (int turn = 0; turn < (counts[i] > 100 ? 2 : layout_count); turn++)
				test_all(counts[i], root, number++);
	}
}

/* Every other int of a rank's blocks. */
enum { PACKED_INTS = 64 << 10, PACKED_CALLS = 20, PACKED_RANKS = 8 };

static void exchange_packed(int *from, int *to, const int *counts, const int *places,
			    const MPI_Datatype *types, int calls)
{
	for (int call = 0; call < calls; call++) {
		MPI_Alltoallw(from, counts, places, types, to, counts, places, types, comm);
		case_count(CASE_ALLTOALLW, size > 1);
	}
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
	for (int i = 0; i < size; i++) {
		counts[i] = 1;
		places[i] = i * ints * (int)sizeof(int);
		types[i] = sparse;
	}
	for (int i = 0; i < size * ints; i++)
		from[i] = rank * size + i / ints;
	exchange_packed(from, to, counts, places, types, 4);
	getrusage(RUSAGE_SELF, &before);
	exchange_packed(from, to, counts, places, types, PACKED_CALLS);
	getrusage(RUSAGE_SELF, &after);
	for (int i = 0; i < size * ints; i++)
		if (to[i] != (i % 2 ? 0 : i / ints * size + rank))
			fail("an Alltoallw of every other int is wrong");
	/* Two copies of a call are 128 pages and more. */
	if (!getenv("OC_TEST_STOCK") && after.ru_minflt - before.ru_minflt > PACKED_CALLS * 16)
		fail("packed copies are faulted in anew in each call");
	MPI_Type_free(&sparse);
	free(from);
	free(to);
}

int main(int argc, char **argv)
{
	MPI_Comm other;

	case_begin(&argc, &argv, &world_rank, NULL);
	layouts_make();
	test_comm(MPI_COMM_WORLD, "MPI_COMM_WORLD", true);
	if (size <= PACKED_RANKS)
		test_copies_are_kept();
	MPI_Comm_dup(MPI_COMM_WORLD, &other);
	test_comm(other, "a duplicate of MPI_COMM_WORLD", false);
	MPI_Comm_free(&other);
	MPI_Comm_split(MPI_COMM_WORLD, 0, -world_rank, &other);
	test_comm(other, "MPI_COMM_WORLD in reverse order", false);
	MPI_Comm_free(&other);
	MPI_Comm_split(MPI_COMM_WORLD, world_rank % 2, world_rank, &other);
	test_comm(other, "the even or odd ranks", false);
	MPI_Comm_free(&other);
	layouts_free();
	return case_end("datatypes: %ld buffers right\n", checks);
}
