/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whose malloc this process has.
 *
 * A program may have one of its own: in itself, linked (-ljemalloc), or preloaded in front of ours
 * or behind it. Blocks of two allocators must never meet: jemalloc exports no reallocarray(), and
 * free() of a block of jemalloc's mallocx() is jemalloc's affair. So either the whole family is
 * ours, or each of our functions is nothing but a way to the next one of its name, as if we were
 * not there. It is ours where the next malloc is the C library's and nobody is in front of us.
 */
#include "dso.h"
#include "object.h"

#include <gnu/libc-version.h>
#include <stdlib.h>

void *heap_next[HEAP_FUNCTIONS];

static const char *const names[HEAP_FUNCTIONS] = {
	[HEAP_MALLOC] = "malloc",
	[HEAP_CALLOC] = "calloc",
	[HEAP_REALLOC] = "realloc",
	[HEAP_REALLOCARRAY] = "reallocarray",
	[HEAP_FREE] = "free",
	[HEAP_CFREE] = "cfree",
	[HEAP_POSIX_MEMALIGN] = "posix_memalign",
	[HEAP_MEMALIGN] = "memalign",
	[HEAP_ALIGNED_ALLOC] = "aligned_alloc",
	[HEAP_VALLOC] = "valloc",
	[HEAP_PVALLOC] = "pvalloc",
	[HEAP_USABLE_SIZE] = "malloc_usable_size",
	[HEAP_TRIM] = "malloc_trim",
	[HEAP_LIBC_MALLOC] = "__libc_malloc",
	[HEAP_LIBC_CALLOC] = "__libc_calloc",
	[HEAP_LIBC_REALLOC] = "__libc_realloc",
	[HEAP_LIBC_FREE] = "__libc_free",
	[HEAP_LIBC_MEMALIGN] = "__libc_memalign",
	[HEAP_LIBC_VALLOC] = "__libc_valloc",
	[HEAP_LIBC_PVALLOC] = "__libc_pvalloc",
	[HEAP_LIBC_POSIX_MEMALIGN] = "__posix_memalign",
};

enum { UNKNOWN, OURS, THEIRS };
static atomic_int whose;

struct search {
	bool behind; /* the objects that come now are searched after us */
	bool foreign;
};

/* Objects come in the order in which the dynamic linker searches them. mimalloc is there for us;
 * whoever has it as malloc finds it in front of us, or has the same. */
static bool is_next(const struct dl_phdr_info *info, struct search *search)
{
	if (object_holds(info, (uintptr_t)heap_next)) {
		search->behind = true;
		return false;
	}
	return search->behind && !object_holds(info, (uintptr_t)mi_malloc);
}

static int find_malloc(struct dl_phdr_info *info, size_t bytes, void *argument)
{
	struct search *search = argument;
	struct object object;

	(void)bytes;
	if (!is_next(info, search))
		return 0;
	object = object_read(info);
	if (!object_function(info, &object, names[HEAP_MALLOC]))
		return 0;
	search->foreign = !object_holds(info, (uintptr_t)gnu_get_libc_version);
	return 1;
}

static int find_all(struct dl_phdr_info *info, size_t bytes, void *argument)
{
	struct object object;

	(void)bytes;
	if (!is_next(info, argument))
		return 0;
	object = object_read(info);
	for (int i = 0; i < HEAP_FUNCTIONS; i++)
		if (!heap_next[i])
			heap_next[i] = object_function(info, &object, names[i]);
	return 0;
}

struct one_name {
	struct search search;
	const char *name;
	void *function;
};

static int find_one(struct dl_phdr_info *info, size_t bytes, void *argument)
{
	struct one_name *one = argument;
	struct object object;

	(void)bytes;
	if (!is_next(info, &one->search))
		return 0;
	object = object_read(info);
	one->function = object_function(info, &object, one->name);
	return one->function != NULL;
}

void *heap_find_next(const char *name)
{
	struct one_name one = { .name = name };

	dl_iterate_phdr(find_one, &one);
	return one.function;
}

static bool is_bound_to_us(void)
{
	void *(*volatile bound)(size_t) = malloc;
	extern void *oc_heap_malloc(size_t bytes);

	return bound == oc_heap_malloc;
}

/* Threads that do so at the same time find the same. */
static OC_COLD int decide(void)
{
	struct search search = { false, false };

	dl_iterate_phdr(find_malloc, &search);
	if (is_bound_to_us() && !search.foreign)
		return OURS;
	search.behind = false;
	dl_iterate_phdr(find_all, &search);
	/* Newer C libraries have none to link with. */
	if (!heap_next[HEAP_CFREE])
		heap_next[HEAP_CFREE] = heap_next[HEAP_FREE];
	return THEIRS;
}

bool heap_replaces_malloc(void)
{
	/* Acquire: pairs with the release below, so heap_next is as it will be. */
	int now = atomic_load_explicit(&whose, memory_order_acquire);

	if (now == UNKNOWN) {
		now = decide();
		atomic_store_explicit(&whose, now, memory_order_release);
	}
	return now == OURS;
}
