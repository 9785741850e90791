/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_Alloc_mem: memory that the other ranks can map, where this is onecopy's to give; right bytes,
 * all of it given back, and the MPI's own errors.
 */
#include "case.h"
#include "support/process.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 1 << 20, ROUNDS = 20, MANY = 300 };

static int rank, ranks;

static uint8_t byte_of(int from, int to, int round, size_t at)
{
	return (uint8_t)(from * 31 + to * 57 + round * 7 + (int)(at % 251));
}

static uint8_t *get(MPI_Aint bytes)
{
	uint8_t *memory = NULL;

	if (MPI_Alloc_mem(bytes, MPI_INFO_NULL, &memory) != MPI_SUCCESS || !memory)
		case_fail("MPI_Alloc_mem gave no %ld bytes", (long)bytes);
	return memory;
}

static void check(const uint8_t *memory, int from, int to, int round, const char *what)
{
	for (size_t at = 0; at < BLOCK; at++)
		if (memory[at] != byte_of(from, to, round, at))
			case_fail("%s, round %d: byte %zu from rank %d is %d", what, round, at,
				  from, memory[at]);
}

/* The blocks are other ones in each round, at addresses that were used before. */
static void collectives(int round)
{
	uint8_t *whole = get((MPI_Aint)BLOCK * ranks), *parts = get((MPI_Aint)BLOCK * ranks);
	int root = round % ranks;

	for (size_t at = 0; at < BLOCK; at++)
		whole[at] = rank == root ? byte_of(root, 0, round, at) : 0;
	MPI_Bcast(whole, BLOCK, MPI_BYTE, root, MPI_COMM_WORLD);
	case_count(CASE_BCAST, 1);
	check(whole, root, 0, round, "Bcast");
	for (int to = 0; to < ranks; to++)
		for (size_t at = 0; at < BLOCK; at++)
			parts[(size_t)to * BLOCK + at] = byte_of(rank, to, round, at);
	memset(whole, 0, (size_t)BLOCK * (size_t)ranks);
	MPI_Alltoall(parts, BLOCK, MPI_BYTE, whole, BLOCK, MPI_BYTE, MPI_COMM_WORLD);
	case_count(CASE_ALLTOALL, 1);
	for (int from = 0; from < ranks; from++)
		check(whole + (size_t)from * BLOCK, from, rank, round, "Alltoall");
	if (MPI_Free_mem(parts) != MPI_SUCCESS || MPI_Free_mem(whole) != MPI_SUCCESS)
		case_fail("MPI_Free_mem failed");
}

/* Small ones and large ones side by side, freed in another order. */
static void apart(void)
{
	uint8_t *memory[MANY];

	for (int i = 0; i < MANY; i++) {
		memory[i] = get(1 + i * 997);
		memset(memory[i], i, 1 + (size_t)i * 997);
	}
	for (int k = 0; k < MANY; k++) {
		int i = k * 7 % MANY; /* each once: MANY is no multiple of 7 */

		for (size_t at = 0; at <= (size_t)i * 997; at++)
			if (memory[i][at] != (uint8_t)i)
				case_fail("block %d was written by others", i);
		MPI_Free_mem(memory[i]);
	}
}

static int class_of(int error)
{
	int class = MPI_SUCCESS;

	MPI_Error_class(error, &class);
	return class;
}

/* Of the alignment that is asked for, whoever gives it; and a key that nobody knows. */
static void with_info(void)
{
	static const char *const alignments[] = { "16", "64", "4096" };
	uint8_t *memory;
	MPI_Info info;

	for (int i = 0; i < 4; i++) {
		MPI_Info_create(&info);
		if (i < 3)
			MPI_Info_set(info, "mpi_minimum_memory_alignment", alignments[i]);
		else
			MPI_Info_set(info, "a_key_of_nobody", "1");
		memory = NULL;
		if (MPI_Alloc_mem(BLOCK, info, &memory) != MPI_SUCCESS || !memory)
			case_fail("MPI_Alloc_mem with info %d gave nothing", i);
		MPI_Info_free(&info);
		memset(memory, 1, BLOCK);
#ifdef MPICH_VERSION /* Open MPI 4.1 is of MPI 3.1, which has no such key */
		if (i < 3 && (uintptr_t)memory % (uintptr_t)atol(alignments[i]))
			case_fail("%p is not aligned to %s", (void *)memory, alignments[i]);
#endif
		MPI_Free_mem(memory);
	}
}

static void errors(void)
{
	void *memory = &memory;
	int error;

	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	error = MPI_Alloc_mem(-1, MPI_INFO_NULL, &memory);
	if (class_of(error) != MPI_ERR_ARG)
		case_fail("-1 bytes: class %d", class_of(error));
#ifndef MPICH_VERSION /* 4.0.2 by itself says MPI_SUCCESS, and gives address 16 */
	error = MPI_Alloc_mem((MPI_Aint)1 << 60, MPI_INFO_NULL, &memory);
	if (class_of(error) != MPI_ERR_NO_MEM)
		case_fail("2^60 bytes: class %d", class_of(error));
#endif
	error = MPI_Alloc_mem(0, MPI_INFO_NULL, &memory);
	if (error != MPI_SUCCESS || MPI_Free_mem(memory) != MPI_SUCCESS)
		case_fail("0 bytes: an error");
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

int main(int argc, char **argv)
{
	unsigned int fds = 0, mappings = 0;

	case_begin(&argc, &argv, &rank, &ranks);
	for (int round = 0; round < ROUNDS; round++) {
		/* What is made once is there after the first few. */
		if (round == 5) {
			fds = oct_descriptors();
			mappings = oct_mappings();
		}
		collectives(round);
	}
	if (oct_descriptors() > fds || oct_mappings() > mappings + 8)
		case_fail("%u descriptors became %u, %u mappings %u", fds, oct_descriptors(),
			  mappings, oct_mappings());
	apart();
	with_info();
	errors();
	collectives(ROUNDS);
	return case_end("alloc: %d rounds on %d ranks, every byte right\n", ROUNDS + 1, ranks);
}
