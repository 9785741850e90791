/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Network libraries keep memory registered and stand in front of madvise() to hear when its pages
 * go. What the heap gives back of freed blocks must come by there, or a card reads dead pages. The
 * heap is loaded late, as by an MPI whose MPI_Alloc_mem it serves.
 */
#include "check.h"

#include <dlfcn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { BLOCKS = 17, MOST_TOLD = 4096, PAGE_BYTES = 4096 };
#define BLOCK (8 * MIB)

static struct {
	char *first;
	size_t bytes;
} told[MOST_TOLD];
static int times;

/* In front of everybody's. */
__attribute__((visibility("default"))) int madvise(void *address, size_t bytes, int advice)
{
	if (times < MOST_TOLD && (advice == MADV_DONTNEED || advice == MADV_FREE)) {
		told[times].first = address;
		told[times++].bytes = bytes;
	}
	return (int)syscall(SYS_madvise, address, bytes, advice);
}

static bool was_told(const char *page)
{
	for (int i = 0; i < times; i++)
		if (page >= told[i].first && page < told[i].first + told[i].bytes)
			return true;
	return false;
}

int main(int argc, char **argv)
{
	void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
	union {
		void *data;
		oci_arena_fn *function;
	} found = { .data = library ? dlsym(library, OCI_ARENA_SYMBOL) : NULL };
	const struct oci_arena *heap = found.data ? found.function() : NULL;
	char *block[BLOCKS];
	unsigned char resident;
	long gone = 0;

	CHECK(heap && heap->alloc);
	for (int i = 0; i < BLOCKS; i++) {
		block[i] = heap->alloc(BLOCK, 64);
		CHECK(block[i]);
		memset(block[i], i + 1, BLOCK);
	}
	for (int i = 0; i < BLOCKS; i++)
		heap->free(block[i]);
	for (int i = 0; i < BLOCKS; i++) {
		char *page =
			(char *)(((uintptr_t)block[i] + PAGE_BYTES - 1) & -(uintptr_t)PAGE_BYTES);

		for (; page + PAGE_BYTES <= block[i] + BLOCK; page += PAGE_BYTES) {
			CHECK(!mincore(page, 1, &resident));
			if (resident & 1)
				continue;
			gone++;
			CHECK(was_told(page));
		}
	}
	/* Else nothing was tested. */
	CHECK(gone * PAGE_BYTES > (long)(BLOCKS * BLOCK / 4));
	printf("holes: %ld pages of freed blocks are gone, and madvise() was told of each\n", gone);
	return 0;
}
