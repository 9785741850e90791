/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Preloaded with the heap, in front of it or behind: wrapper.c. It hears of the program's calls,
 * and of memory that free() gives back, as it would without the heap; and the heap hears of them,
 * too.
 */
#include "check.h"
#include "wrapper.h"

#include <string.h>

enum { PAGE_BYTES = 4096 };

static void own_mappings(void)
{
	struct heard before = wrapper_heard(NULL), after;
	char *place = mmap(NULL, 2 * PAGE_BYTES, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(place != MAP_FAILED);
	place[0] = 1;
	CHECK(!mprotect(place, 2 * PAGE_BYTES, PROT_READ));
	place = mremap(place, 2 * PAGE_BYTES, 64 * PAGE_BYTES, MREMAP_MAYMOVE);
	CHECK(place != MAP_FAILED && place[0] == 1);
	CHECK(!madvise(place, PAGE_BYTES, MADV_DONTNEED) && !place[0]);
	CHECK(!munmap(place, 64 * PAGE_BYTES));
	after = wrapper_heard(place);
	CHECK(after.mmap == before.mmap + 1 && after.mprotect == before.mprotect + 1);
	CHECK(after.mremap == before.mremap + 1 && after.madvise == before.madvise + 1);
	CHECK(after.munmap == before.munmap + 1 && after.page);
}

/* A block so large goes back at once. */
static void freed_and_closed(void)
{
	const struct oci_arena_front *front = (const void *)arena()->base;
	char *block = malloc(64 * MIB);
	char *page = (char *)(((uintptr_t)block + MIB) & ~(uintptr_t)(PAGE_BYTES - 1));

	CHECK(block && in_arena(block, 64 * MIB));
	memset(block, 1, 64 * MIB);
	CHECK(!wrapper_heard(page).page);
	CHECK(oci_arena_is_open(front, (uintptr_t)page, PAGE_BYTES));
	/* No peer may copy by the arena what the program itself cannot read. */
	CHECK(!mprotect(page, PAGE_BYTES, PROT_NONE));
	CHECK(!oci_arena_is_open(front, (uintptr_t)page, PAGE_BYTES));
	CHECK(!mprotect(page, PAGE_BYTES, PROT_READ | PROT_WRITE));
	free(block);
	CHECK(wrapper_heard(page).page);
}

int main(void)
{
	/* There is an arena from the first block on. */
	free(malloc(1));
	own_mappings();
	freed_and_closed();
	return 0;
}
