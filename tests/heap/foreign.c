/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * oc_heap_foreign [arena]: a program whose malloc is another library's, whoever is preloaded beside
 * it. Each function of the family, and blocks that one gives and another takes; and where jemalloc
 * is, its own interface. With `arena`, malloc must be the shared heap's, else it must not be.
 */
#include "check.h"

#include <dlfcn.h>
#include <malloc.h>
#include <string.h>
#include <wchar.h>

/* gcc knows what these do, and would leave out what is not used. */
static void *volatile kept;

static void *used(void *memory, size_t bytes)
{
	kept = memory;
	CHECK(kept);
	memset(kept, 1, bytes);
	CHECK(malloc_usable_size(kept) >= bytes);
	return kept;
}

static void *symbol(const char *name)
{
	return dlsym(RTLD_DEFAULT, name);
}

static void every_function(size_t bytes)
{
	void *memory = NULL;

	free(used(malloc(bytes), bytes));
	free(used(calloc(bytes, 2), bytes));
	free(used(reallocarray(NULL, bytes, 2), bytes));
	free(used(reallocarray(malloc(bytes), bytes, 2), bytes));
	free(used(realloc(malloc(bytes), 3 * bytes), bytes));
	free(used(realloc(reallocarray(NULL, 10, bytes), bytes), bytes));
	free(used(memalign(64, bytes), bytes));
	free(used(aligned_alloc(64, 64 * bytes), bytes));
	free(used(valloc(bytes), bytes));
	CHECK(!posix_memalign(&memory, 128, bytes));
	free(used(memory, bytes));
	free(used(realloc(valloc(bytes), 2 * bytes), bytes));
	free(strdup("of the C library"));
	free(wcsdup(L"wide"));
	malloc_trim(0);
}

/* Blocks of their own kinds, which their own free() takes. */
static void own_interface(size_t bytes)
{
	union {
		void *data;
		void *(*function)(size_t bytes, int flags);
	} mallocx = { symbol("mallocx") };
	union {
		void *data;
		void *(*function)(size_t bytes);
	} tc_malloc = { symbol("tc_malloc") }, libc_malloc = { symbol("__libc_malloc") };
	union {
		void *data;
		void (*function)(void *memory);
	} libc_free = { symbol("__libc_free") };

	if (mallocx.data)
		free(used(mallocx.function(bytes, 0), bytes));
	if (tc_malloc.data)
		free(used(tc_malloc.function(bytes), bytes));
	if (libc_malloc.data && libc_free.data) {
		kept = libc_malloc.function(bytes);
		CHECK(kept);
		memset(kept, 1, bytes);
		libc_free.function(kept);
	}
}

int main(int argc, char **argv)
{
	void *memory;

	(void)argv;
	for (size_t bytes = 10; bytes < 20 * MIB; bytes *= 9) {
		every_function(bytes);
		own_interface(bytes);
	}
	/* What asks for shared memory still gets it. */
	memory = arena()->alloc(MIB, 64);
	CHECK(memory && in_arena(memory, MIB));
	memset(memory, 1, MIB);
	arena()->free(memory);
	kept = malloc(100);
	CHECK(in_arena(kept, 100) == (argc > 1));
	free(kept);
	return 0;
}
