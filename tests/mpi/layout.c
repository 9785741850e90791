/* SPDX-License-Identifier: BSD-3-Clause */
#include "layout.h"

#include "case.h"

#include <stdint.h>
#include <string.h>

struct layout layouts[LAYOUT_MOST], layout_plain[PLAINS];
int layout_count;

void layout_compose(unsigned int *a, unsigned int *b, unsigned int c, unsigned int d)
{
	*b = c * *b + d;
	*a = c * *a;
}

static unsigned int *int_at(void *origin, const struct layout *layout, int element, int k)
{
	/* Through an integer: with a negative lower bound it lies before the origin. */
	return (unsigned int *)((uintptr_t)origin + (uintptr_t)((intptr_t)element * layout->extent +
								layout->offset[k]));
}

static void add_ints(const struct layout *layout, void *in, void *inout, int length)
{
	/* Of plain ints a piece may begin anywhere. */
	if (layout->per_element != 1) {
		for (int i = 0; i < length; i++)
			((unsigned int *)inout)[i] += ((unsigned int *)in)[i];
		return;
	}
	for (int i = 0; i < length; i++)
		for (int k = 0; k < LAYOUT_INTS; k++)
			*int_at(inout, layout, i, k) += *int_at(in, layout, i, k);
}

/* MPI: `in` is of the lower ranks. */
static void compose_maps(const struct layout *layout, void *in, void *inout, int length)
{
	for (int i = 0; i < length; i++) {
		for (int k = 0; k < LAYOUT_INTS; k += 2) {
			unsigned int a = *int_at(in, layout, i, k);
			unsigned int b = *int_at(in, layout, i, k + 1);
			unsigned int *c = int_at(inout, layout, i, k);
			unsigned int *d = int_at(inout, layout, i, k + 1);

			layout_compose(&a, &b, *c, *d);
			*c = a;
			*d = b;
		}
	}
}

/*
 * A user's operation of its own for each layout, since what it is given tells nothing else: the
 * handle of the type may be that of a duplicate.
 */
#define OPERATIONS(n)                                                                \
	static void sum_##n(void *in, void *inout, int *length, MPI_Datatype *type)  \
	{                                                                            \
		(void)type;                                                          \
		add_ints(&layouts[n], in, inout, *length);                           \
	}                                                                            \
	static void maps_##n(void *in, void *inout, int *length, MPI_Datatype *type) \
	{                                                                            \
		(void)type;                                                          \
		compose_maps(&layouts[n], in, inout, *length);                       \
	}
OPERATIONS(0)
OPERATIONS(1)
OPERATIONS(2)
OPERATIONS(3)
OPERATIONS(4)
OPERATIONS(5)
OPERATIONS(6)
OPERATIONS(7)
OPERATIONS(8)
OPERATIONS(9)
OPERATIONS(10)

static MPI_User_function *const sums[] = { sum_0, sum_1, sum_2, sum_3, sum_4, sum_5,
					   sum_6, sum_7, sum_8, sum_9, sum_10 };
static MPI_User_function *const maps[] = { maps_0, maps_1, maps_2, maps_3, maps_4, maps_5,
					   maps_6, maps_7, maps_8, maps_9, maps_10 };

static struct layout *add(const char *name, MPI_Datatype type, int per_element, int extent)
{
	struct layout *layout = &layouts[layout_count];

	if (layout_count >= (int)(sizeof(sums) / sizeof(sums[0])))
		case_fail("layout '%s' has no operation of its own", name);
	layout->name = name;
	layout->type = type;
	layout->per_element = per_element;
	layout->extent = extent;
	layout->maps = MPI_OP_NULL;
	layout->sum_function = sums[layout_count];
	layout->maps_function = maps[layout_count];
	MPI_Op_create(sums[layout_count], 1, &layout->sum);
	if (type != MPI_INT) {
		MPI_Type_commit(&layout->type);
		MPI_Op_create(maps[layout_count], 0, &layout->maps);
	}
	layout_count++;
	return layout;
}

/* Blocks of ints at byte offsets, in the order of the type map. */
static void place(struct layout *layout, int blocks, const int *lengths, const MPI_Aint *offsets)
{
	int k = 0;

	for (int block = 0; block < blocks; block++)
		for (int i = 0; i < lengths[block]; i++)
			layout->offset[k++] = (int)offsets[block] + 4 * i;
	if (k != LAYOUT_INTS)
		case_fail("layout '%s' has not %d ints", layout->name, LAYOUT_INTS);
}

static MPI_Datatype resized(MPI_Datatype type, MPI_Aint lower, MPI_Aint extent)
{
	MPI_Datatype result;

	MPI_Type_create_resized(type, lower, extent, &result);
	MPI_Type_free(&type);
	return result;
}

static MPI_Datatype contiguous(void)
{
	MPI_Datatype type;

	MPI_Type_contiguous(LAYOUT_INTS, MPI_INT, &type);
	return type;
}

static MPI_Datatype blocks_of(int blocks, const int *lengths, const MPI_Aint *offsets)
{
	MPI_Datatype type;

	MPI_Type_create_hindexed(blocks, lengths, offsets, MPI_INT, &type);
	return type;
}

static MPI_Datatype vector(void)
{
	MPI_Datatype type;

	MPI_Type_vector(3, 2, 4, MPI_INT, &type);
	return type;
}

static struct layout plain(const char *name, MPI_Datatype type, int bytes, MPI_Op op)
{
	return (struct layout){ .name = name,
				.type = type,
				.per_element = 1,
				.extent = bytes,
				.plain = 1,
				.sum = op,
				.maps = MPI_OP_NULL };
}

static void plains_make(void)
{
	layout_plain[PLAIN_BYTES] = plain("bytes", MPI_BYTE, 1, MPI_BXOR);
	layout_plain[PLAIN_INTS] = plain("plain ints", MPI_INT, 4, MPI_SUM);
	layout_plain[PLAIN_DOUBLES] = plain("doubles", MPI_DOUBLE, 8, MPI_SUM);
	layout_plain[PLAIN_INTS_MOST] = plain("ints, maximum", MPI_INT, 4, MPI_MAX);
	layout_plain[PLAIN_DOUBLES_MOST] = plain("doubles, maximum", MPI_DOUBLE, 8, MPI_MAX);
}

void layouts_make(void)
{
	static const int six = 6, ones[6] = { 1, 1, 1, 1, 1, 1 };
	static const MPI_Aint zero = 0, shifted = 16;
	static const int twos[3] = { 2, 2, 2 };
	static const MPI_Aint strided[3] = { 0, 16, 32 };
	static const int unordered_lengths[3] = { 2, 3, 1 };
	static const MPI_Aint unordered[3] = { 28, 0, 16 };
	static const int split_lengths[2] = { 2, 4 };
	static const MPI_Aint negative[2] = { -16, 4 };
	const MPI_Datatype types[3] = { MPI_INT, MPI_INT, MPI_INT };
	MPI_Aint column[6];
	MPI_Datatype type;

	plains_make();
	place(add("ints", MPI_INT, LAYOUT_INTS, 24), 1, &six, &zero);
	place(add("contiguous", contiguous(), 1, 24), 1, &six, &zero);
	place(add("vector", vector(), 1, 40), 3, twos, strided);
	place(add("resized vector", resized(vector(), 0, 64), 1, 64), 3, twos, strided);
	place(add("contiguous with a gap", resized(contiguous(), 0, 36), 1, 36), 1, &six, &zero);
	place(add("contiguous, lower bound -8", resized(contiguous(), -8, 40), 1, 40), 1, &six,
	      &zero);
	type = blocks_of(3, unordered_lengths, unordered);
	place(add("out of order", type, 1, 36), 3, unordered_lengths, unordered);
	MPI_Type_create_struct(3, unordered_lengths, unordered, types, &type);
	place(add("struct", resized(type, 0, 44), 1, 44), 3, unordered_lengths, unordered);
	type = blocks_of(2, split_lengths, negative);
	place(add("negative lower bound", type, 1, 36), 2, split_lengths, negative);
	place(add("dense at 16", blocks_of(1, &six, &shifted), 1, 24), 1, &six, &shifted);
	for (int row = 0; row < 6; row++)
		column[row] = row * LAYOUT_COLUMN;
	type = resized(blocks_of(6, ones, column), 0, 4);
	place(add("column", type, 1, 4), 6, ones, column);
}

void layouts_free(void)
{
	for (int i = 0; i < layout_count; i++) {
		MPI_Op_free(&layouts[i].sum);
		if (layouts[i].maps != MPI_OP_NULL)
			MPI_Op_free(&layouts[i].maps);
		if (layouts[i].type != MPI_INT)
			MPI_Type_free(&layouts[i].type);
	}
}

const struct layout *layout_choose(int number, int elements)
{
	int index = number % layout_count;

	if (layouts[index].extent == 4 && elements > LAYOUT_COLUMN / 4)
		index = 2;
	return &layouts[index];
}

size_t layout_bytes(const struct layout *layout, int elements)
{
	return (size_t)elements * (size_t)layout->extent +
	       (layout->extent == 4 ? 6 * LAYOUT_COLUMN : 64);
}

void layout_put(unsigned char *at, const struct layout *layout, int k, int value)
{
	ptrdiff_t place =
		(ptrdiff_t)(k / LAYOUT_INTS) * layout->extent + layout->offset[k % LAYOUT_INTS];

	memcpy(at + place, &value, sizeof(value));
}
