/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Under the shared heap: Bcasts of memory of malloc and of static memory, and a large block that
 * comes and goes. What the statistics say of it is the driver's to look at.
 */
#include "case.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 1 << 20, LARGE = 64 << 20, HEAP_CALLS = 5, STATIC_CALLS = 3 };

static uint8_t fixed[BLOCK];

static void bcasts(uint8_t *memory, int rank, int calls)
{
	for (int call = 0; call < calls; call++) {
		memset(memory, rank ? 0xff : call + 1, BLOCK);
		MPI_Bcast(memory, BLOCK, MPI_BYTE, 0, MPI_COMM_WORLD);
		case_count(CASE_BCAST, 1);
		for (size_t at = 0; at < BLOCK; at++)
			if (memory[at] != call + 1)
				case_fail("byte %zu of Bcast %d is %d", at, call, memory[at]);
	}
}

int main(int argc, char **argv)
{
	volatile uint8_t *large;
	uint8_t *memory;
	int rank;

	case_begin(&argc, &argv, &rank, NULL);
	memory = malloc(BLOCK);
	large = malloc(LARGE);
	if (!memory || !large)
		case_fail("no memory");
	for (size_t at = 0; at < LARGE; at += 4096)
		large[at] = 1;
	free((void *)large);
	bcasts(memory, rank, HEAP_CALLS);
	bcasts(fixed, rank, STATIC_CALLS);
	free(memory);
	return case_end("heap: %d Bcasts\n", HEAP_CALLS + STATIC_CALLS);
}
