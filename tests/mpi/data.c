/* SPDX-License-Identifier: BSD-3-Clause */
#include "data.h"

#include <string.h>

enum { INT_SUM, INT_MAX_OP, DOUBLE_SUM, DOUBLE_MAX, AFFINE };

/* x -> a * x + b modulo 2^32: composition is associative, exact, and does not commute. */
struct affine {
	uint32_t a, b;
};

static struct data_operand operands[DATA_OPERANDS];

/* splitmix64's output function. */
static uint64_t mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

uint64_t data_seed(uint64_t call, int rank, int block)
{
	return mix(call * 0x9e3779b97f4a7c15u + ((uint64_t)(unsigned int)rank << 32) +
		   (uint64_t)(unsigned int)block + 1);
}

void data_fill(void *buffer, size_t bytes, uint64_t seed)
{
	char *at = buffer;
	size_t i = 0;

	for (; i + 8 <= bytes; i += 8) {
		uint64_t word = mix(seed + i);

		memcpy(at + i, &word, 8);
	}
	if (i < bytes) {
		uint64_t word = mix(seed + i);

		memcpy(at + i, &word, bytes - i);
	}
}

ptrdiff_t data_check(const void *buffer, size_t bytes, uint64_t seed)
{
	const char *at = buffer;
	size_t i = 0;

	for (; i + 8 <= bytes; i += 8) {
		uint64_t word;

		memcpy(&word, at + i, 8);
		if (word != mix(seed + i))
			break;
	}
	for (; i < bytes; i++) {
		uint64_t word = mix(seed + i / 8 * 8);

		if (at[i] != ((char *)&word)[i % 8])
			return (ptrdiff_t)i;
	}
	return -1;
}

static uint64_t hash_word(uint64_t hash, uint64_t word)
{
	hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
	return hash ^ hash >> 29;
}

uint64_t data_hash(uint64_t hash, const void *buffer, size_t bytes)
{
	const char *at = buffer;
	uint64_t lane[4] = { hash, 1, 2, 3 }; /* so that the next need not wait for the last */
	size_t i = 0;

	for (; i + 32 <= bytes; i += 32) {
		uint64_t words[4];

		memcpy(words, at + i, 32);
		for (int k = 0; k < 4; k++)
			lane[k] = hash_word(lane[k], words[k]);
	}
	for (; i < bytes; i += 8) {
		uint64_t word = 0;

		memcpy(&word, at + i, bytes - i < 8 ? bytes - i : 8);
		lane[0] = hash_word(lane[0], word);
	}
	for (int k = 1; k < 4; k++)
		lane[0] = hash_word(lane[0], lane[k]);
	return lane[0];
}

static struct affine compose(struct affine left, struct affine right)
{
	return (struct affine){ left.a * right.a, left.a * right.b + left.b };
}

static void affine_op(void *in, void *inout, int *length, MPI_Datatype *type)
{
	struct affine *left = in, *right = inout;

	(void)type;
	for (int i = 0; i < *length; i++)
		right[i] = compose(left[i], right[i]);
}

static void create_operands(void)
{
	MPI_Datatype pair;
	MPI_Op op;

	MPI_Type_contiguous(2, MPI_UINT32_T, &pair);
	MPI_Type_commit(&pair);
	MPI_Op_create(affine_op, 0, &op);
	operands[INT_SUM] = (struct data_operand){ "int sum", MPI_INT, MPI_SUM, 4 };
	operands[INT_MAX_OP] = (struct data_operand){ "int max", MPI_INT, MPI_MAX, 4 };
	operands[DOUBLE_SUM] = (struct data_operand){ "double sum", MPI_DOUBLE, MPI_SUM, 8 };
	operands[DOUBLE_MAX] = (struct data_operand){ "double max", MPI_DOUBLE, MPI_MAX, 8 };
	operands[AFFINE] = (struct data_operand){ "affine", pair, op, sizeof(struct affine) };
}

const struct data_operand *data_operand(int index)
{
	if (!operands[0].name)
		create_operands();
	return &operands[index];
}

/* 20 bits: sums over any number of ranks that we start are exact in an int and in a double. */
static int32_t small(uint64_t call, int rank, size_t i)
{
	return (int32_t)(mix(data_seed(call, rank, 7) + i) & 0xfffff);
}

static struct affine affine_of(uint64_t call, int rank, size_t i)
{
	uint64_t word = mix(data_seed(call, rank, 7) + i);

	return (struct affine){ (uint32_t)word, (uint32_t)(word >> 32) };
}

void data_fill_operand(void *buffer, size_t count, int index, uint64_t call, int rank)
{
	for (size_t i = 0; i < count; i++) {
		if (index == AFFINE)
			((struct affine *)buffer)[i] = affine_of(call, rank, i);
		else if (index == DOUBLE_SUM || index == DOUBLE_MAX)
			((double *)buffer)[i] = small(call, rank, i);
		else
			((int32_t *)buffer)[i] = small(call, rank, i);
	}
}

static int affine_is_right(struct affine got, uint64_t call, size_t i, int ranks)
{
	struct affine expected = affine_of(call, 0, i);

	for (int r = 1; r < ranks; r++)
		expected = compose(expected, affine_of(call, r, i));
	return got.a == expected.a && got.b == expected.b;
}

static int32_t combine_small(uint64_t call, size_t i, int ranks, int is_sum)
{
	int32_t result = small(call, 0, i);

	for (int r = 1; r < ranks; r++) {
		int32_t next = small(call, r, i);

		if (is_sum)
			result += next;
		else if (next > result)
			result = next;
	}
	return result;
}

ptrdiff_t data_check_result(const void *buffer, size_t count, int index, uint64_t call, int ranks)
{
	int is_sum = index == INT_SUM || index == DOUBLE_SUM;

	for (size_t i = 0; i < count; i++) {
		int right;

		if (index == AFFINE)
			right = affine_is_right(((const struct affine *)buffer)[i], call, i, ranks);
		else if (index == DOUBLE_SUM || index == DOUBLE_MAX)
			right = ((const double *)buffer)[i] ==
				combine_small(call, i, ranks, is_sum);
		else
			right = ((const int32_t *)buffer)[i] ==
				combine_small(call, i, ranks, is_sum);
		if (!right)
			return (ptrdiff_t)i;
	}
	return -1;
}
