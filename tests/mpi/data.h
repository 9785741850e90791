/* SPDX-License-Identifier: BSD-3-Clause */
/* What the bytes of a test are: pure functions of a seed and a place. */
#ifndef ONECOPY_TESTS_DATA_H
#define ONECOPY_TESTS_DATA_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

uint64_t data_seed(uint64_t call, int rank, int block);
void data_fill(void *buffer, size_t bytes, uint64_t seed);
/* Offset of the first wrong byte, or -1. */
ptrdiff_t data_check(const void *buffer, size_t bytes, uint64_t seed);
uint64_t data_hash(uint64_t hash, const void *buffer, size_t bytes);

/* An operand and its operation in Reduce and Allreduce. */
struct data_operand {
	const char *name;
	MPI_Datatype type;
	MPI_Op op;
	size_t bytes; /* of an element */
};
enum { DATA_OPERANDS = 5 };
/* The last one is a user-defined operation that does not commute, on a contiguous derived type. */
const struct data_operand *data_operand(int index);

void data_fill_operand(void *buffer, size_t count, int index, uint64_t call, int rank);
/* Index of the first element that is not the combination of all ranks' in rank order, or -1. */
ptrdiff_t data_check_result(const void *buffer, size_t count, int index, uint64_t call, int ranks);

#endif
