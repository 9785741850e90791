/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datatypes of the constructors with large counts (MPI_Type_vector_c and its like), as they are and
 * as the element of a classic type, dense and with gaps, small and large. Ranks of one call use
 * different constructors of one layout.
 */
#include "case.h"
#include "large.h"

#include <stdlib.h>

enum { MOST_BLOCKS = 64, SPARE = -7, WAYS = 12 };

/* `blocks` blocks of `length` ints, `apart` ints from one to the next. */
struct shape {
	int blocks, length, apart;
};

static int rank, ranks;

static void take(MPI_Datatype *type, MPI_Datatype made)
{
	if (*type != MPI_DATATYPE_NULL)
		MPI_Type_free(type);
	*type = made;
}

/* One way to make it, by a number. */
static MPI_Datatype make(const struct shape *s, unsigned int way)
{
	MPI_Count lengths[MOST_BLOCKS], elements[MOST_BLOCKS], bytes[MOST_BLOCKS];
	MPI_Count sizes[2] = { s->blocks, s->apart }, subsizes[2] = { s->blocks, s->length };
	MPI_Count starts[2] = { 0, 0 }, n = s->blocks, stride = s->apart * (MPI_Count)sizeof(int);
	MPI_Datatype types[MOST_BLOCKS], type = MPI_DATATYPE_NULL, block, made;
	MPI_Aint lower, extent;

	for (int i = 0; i < s->blocks; i++) {
		lengths[i] = s->length;
		elements[i] = i * s->apart;
		bytes[i] = i * stride;
		types[i] = MPI_INT;
	}
	switch (way % WAYS) {
	case 0:
		MPI_Type_vector_c(n, s->length, s->apart, MPI_INT, &type);
		break;
	case 1:
		MPI_Type_create_hvector_c(n, s->length, stride, MPI_INT, &type);
		break;
	case 2:
		MPI_Type_indexed_c(n, lengths, elements, MPI_INT, &type);
		break;
	case 3:
		MPI_Type_create_hindexed_c(n, lengths, bytes, MPI_INT, &type);
		break;
	case 4:
		MPI_Type_create_indexed_block_c(n, s->length, elements, MPI_INT, &type);
		break;
	case 5:
		MPI_Type_create_hindexed_block_c(n, s->length, bytes, MPI_INT, &type);
		break;
	case 6:
		MPI_Type_create_struct_c(n, lengths, bytes, types, &type);
		break;
	case 7:
		MPI_Type_create_subarray_c(2, sizes, subsizes, starts, MPI_ORDER_C, MPI_INT, &type);
		break;
	case 8: /* a classic vector of blocks with large counts */
		MPI_Type_contiguous_c(s->length, MPI_INT, &block);
		MPI_Type_create_hvector(s->blocks, 1, stride, block, &type);
		MPI_Type_free(&block);
		break;
	case 9: /* elements that are stretched to what lies between them */
		MPI_Type_contiguous_c(s->length, MPI_INT, &block);
		MPI_Type_create_resized_c(block, 0, stride, &made);
		MPI_Type_contiguous(s->blocks, made, &type);
		MPI_Type_free(&block);
		MPI_Type_free(&made);
		break;
	case 10: /* blocks that lie side by side as one */
		if (s->length == s->apart) {
			MPI_Type_contiguous_c(n * s->length, MPI_INT, &type);
			break;
		}
		/* fallthrough */
	default:
		MPI_Type_vector(s->blocks, s->length, s->apart, MPI_INT, &made);
		MPI_Type_dup(made, &type);
		MPI_Type_free(&made);
	}
	/* Of one extent, whichever way it was made. */
	MPI_Type_get_extent(type, &lower, &extent);
	if (extent != n * stride) {
		MPI_Type_create_resized_c(type, 0, n * stride, &made);
		take(&type, made);
	}
	MPI_Type_commit(&type);
	return type;
}

static void fill(int *values, const struct shape *s, int count, int from)
{
	for (int b = 0; b < s->blocks * count; b++)
		for (int i = 0; i < s->apart; i++)
			values[b * s->apart + i] =
				from < 0 || i >= s->length ? SPARE : from * 1000003 + b * 1009 + i;
}

static void check(const int *values, const int *wanted, int count, const char *what,
		  unsigned int way)
{
	for (int i = 0; i < count; i++)
		if (values[i] != wanted[i])
			case_fail("%s of types made in way %u: int %d is %d, not %d", what, way, i,
				  values[i], wanted[i]);
}

static void move(const struct shape *s, unsigned int way)
{
	int one = s->blocks * s->apart, all = one * ranks, root = (int)way % ranks;
	int *mine = malloc((size_t)one * sizeof(int)), *got = malloc((size_t)all * sizeof(int));
	int *wanted = malloc((size_t)all * sizeof(int));
	MPI_Datatype sent = make(s, way + (unsigned int)rank), got_as = make(s, way);

	if (!mine || !got || !wanted)
		case_fail("no memory");
	for (int r = 0; r < ranks; r++)
		fill(wanted + r * one, s, 1, r);
	fill(mine, s, 1, rank == root ? root : -1);
	MPI_Bcast(mine, 1, sent, root, MPI_COMM_WORLD);
	check(mine, wanted + root * one, one, "MPI_Bcast", way);
	fill(mine, s, 1, rank);
	fill(got, s, ranks, -1);
	MPI_Allgather(mine, 1, sent, got, 1, got_as, MPI_COMM_WORLD);
	check(got, wanted, all, "MPI_Allgather", way);
	fill(got, s, ranks, -1);
	MPI_Gather(mine, 1, sent, got, 1, got_as, root, MPI_COMM_WORLD);
	if (rank == root)
		check(got, wanted, all, "MPI_Gather", way);
	case_count(CASE_BCAST, 1);
	case_count(CASE_ALLGATHER, 1);
	case_count(CASE_GATHER, 1);
	MPI_Type_free(&sent);
	MPI_Type_free(&got_as);
	free(mine);
	free(got);
	free(wanted);
}

int large_types(void)
{
	static const struct shape shapes[] = {
		{ 1, 4, 4 },	    { 4, 3, 3 },	{ 3, 2, 5 },
		{ 16, 1024, 1024 }, { 16, 1024, 1500 }, { 64, 40, 300 },
	};
	int moved = 0;

	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	for (size_t s = 0; s < sizeof(shapes) / sizeof(shapes[0]); s++)
		for (unsigned int way = 0; way < WAYS; way++, moved++)
			move(&shapes[s], way);
	return moved;
}
