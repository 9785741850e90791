/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Each predefined operation on numbers, of each type that it takes, gives the bits that the MPI's
 * own function gives: with numbers that overflow, zeros of both signs, infinities and NaNs, in any
 * count, aligned and not. 2 ranks; MPI_Reduce_local() is the MPI's own. Not of 1 and 2 bytes: there
 * Open MPI 4.1.4 saturates in vectors and wraps in the rest, so its bits depend on where a piece
 * ends.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 5000, MOST_BYTES = 16 * MOST };

struct number {
	const char *name;
	MPI_Datatype type;
	int floats; /* of how many bytes, 0: integers */
};

struct operation {
	const char *name;
	MPI_Op op;
	int integers; /* alone */
};

static unsigned char in[2][MOST_BYTES + 1], out[MOST_BYTES + 1], expected[2][MOST_BYTES + 1];
static int rank, failed, calls;

static uint32_t mix(uint32_t x)
{
	x = (x ^ x >> 16) * 0x7feb352du;
	x = (x ^ x >> 15) * 0x846ca68bu;
	return x ^ x >> 16;
}

/* Both ranks know both inputs. NaNs are all alike: which of two is the sum is nobody's to say. */
static void fill(unsigned char *to, int whose, const struct number *n, size_t bytes)
{
	static const double special[] = { 0.0, -0.0, 1.0, -1.5, 1e300, -1e300, 3e38, 1e-310 };

	for (size_t i = 0; i < bytes; i++)
		to[i] = (unsigned char)(mix((uint32_t)(i * 2) + (uint32_t)whose) >> 9);
	for (size_t i = 0; n->floats && i < bytes / (size_t)n->floats; i++) {
		uint32_t random = mix((uint32_t)i * 2 + (uint32_t)whose + 77);
		double x = random % 16 == 8  ? __builtin_nan("") :
			   random % 16 == 9  ? __builtin_inf() :
			   random % 16 == 10 ? -__builtin_inf() :
			   random % 16 < 8   ? special[random % 8] :
					       (double)random / 1000 - 2000000;
		float f = (float)x;

		memcpy(to + i * (size_t)n->floats, n->floats == 8 ? (void *)&x : (void *)&f,
		       (size_t)n->floats);
	}
}

static void check(const struct number *n, const struct operation *o, int count, int shift)
{
	int size;

	MPI_Type_size(n->type, &size);
	for (int r = 0; r < 2; r++)
		fill(in[r] + shift, r, n, (size_t)count * (size_t)size);
	memset(out, 0x5a, sizeof(out));
	calls++;
	MPI_Allreduce(in[rank] + shift, out + shift, count, n->type, o->op, MPI_COMM_WORLD);
	/* x op y or y op x: an operation that commutes may be done either way. */
	for (int r = 0; r < 2; r++) {
		memset(expected[r], 0x5a, sizeof(expected[r]));
		memcpy(expected[r] + shift, in[r] + shift, (size_t)count * (size_t)size);
		MPI_Reduce_local(in[!r] + shift, expected[r] + shift, count, n->type, o->op);
	}
	for (size_t i = 0; i < sizeof(out) && !failed; i++) {
		if (out[i] == expected[0][i] || out[i] == expected[1][i])
			continue;
		fprintf(stderr, "rank %d: %s of %d %s, shifted by %d: byte %zu is %02x, not %02x\n",
			rank, o->name, count, n->name, shift, i, out[i], expected[0][i]);
		failed = 1;
	}
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);

	const struct number numbers[] = {
		{ "double", MPI_DOUBLE, 8 },
		{ "float", MPI_FLOAT, 4 },
		{ "int", MPI_INT, 0 },
		{ "long", MPI_LONG, 0 },
		{ "long long", MPI_LONG_LONG, 0 },
		{ "unsigned", MPI_UNSIGNED, 0 },
		{ "unsigned long", MPI_UNSIGNED_LONG, 0 },
		{ "unsigned long long", MPI_UNSIGNED_LONG_LONG, 0 },
		{ "int32", MPI_INT32_T, 0 },
		{ "int64", MPI_INT64_T, 0 },
		{ "uint32", MPI_UINT32_T, 0 },
		{ "uint64", MPI_UINT64_T, 0 },
		{ "integer of Fortran", MPI_INTEGER, 0 },
		{ "real", MPI_REAL, 4 },
		{ "double precision", MPI_DOUBLE_PRECISION, 8 },
	};
	const struct operation operations[] = {
		{ "sum", MPI_SUM, 0 },	   { "product", MPI_PROD, 0 }, { "maximum", MPI_MAX, 0 },
		{ "minimum", MPI_MIN, 0 }, { "and", MPI_BAND, 1 },     { "or", MPI_BOR, 1 },
		{ "xor", MPI_BXOR, 1 },
	};
	static const int counts[] = { 1, 2, 3, 5, 8, 31, 100, 1027, MOST };
	int all = 0;

	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	for (size_t n = 0; n < sizeof(numbers) / sizeof(numbers[0]); n++) {
		for (size_t o = 0; o < sizeof(operations) / sizeof(operations[0]); o++) {
			if (operations[o].integers && numbers[n].floats)
				continue;
			for (size_t c = 0; c < 2 * sizeof(counts) / sizeof(counts[0]); c++)
				check(&numbers[n], &operations[o], counts[c / 2], c & 1);
		}
	}
	MPI_Allreduce(&failed, &all, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
	if (!rank && !all)
		printf("expect allreduce %d\nevery result has the MPI's bits\n", 2 * (calls + 1));
	MPI_Finalize();
	return all;
}
