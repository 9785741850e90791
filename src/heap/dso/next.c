/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whose malloc this process has.
 *
 * A program may have one of its own: in itself, linked (-ljemalloc), or preloaded in front of ours
 * or behind it. Blocks of two allocators must never meet: jemalloc exports no reallocarray(), and
 * free() of a block of jemalloc's mallocx() is jemalloc's affair. So either the whole family is
 * ours, or each of our functions is nothing but a way to the next one of its name, as if we were
 * not there. It is ours where the next malloc is the C library's and nobody is in front of us, and
 * the program is no launcher of MPIs: that fork()s for each rank, which would copy its heap before
 * the rank's program begins.
 */
#include "dso.h"
#include "os/object.h"

#include <gnu/libc-version.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

void *heap_next[HEAP_FUNCTIONS];

#define NAME(kind, name) #name,
static const char *const names[] = { HEAP_FAMILY(NAME) };

enum { UNKNOWN, OURS, THEIRS };
static atomic_int whose;

struct search {
	const char *name;
	void *function;
	void *in_front; /* that of the first one before us */
	bool behind;	/* the objects that come now are searched after us */
	bool in_libc;
};

/* Objects come in the order in which the dynamic linker searches them. mimalloc is there for us;
 * whoever has it as malloc finds it in front of us, or has the same. */
static int look_into(struct dl_phdr_info *info, size_t bytes, void *argument)
{
	struct search *search = argument;
	struct oci_object object;

	(void)bytes;
	if (oci_object_holds(info, (uintptr_t)heap_next)) {
		search->behind = true;
		return 0;
	}
	if (search->behind && oci_object_holds(info, (uintptr_t)mi_malloc))
		return 0;
	object = oci_object_read(info);
	search->function = oci_object_function(info, &object, search->name);
	if (!search->behind) {
		if (!search->in_front)
			search->in_front = search->function;
		search->function = NULL;
		return 0;
	}
	search->in_libc = oci_object_holds(info, (uintptr_t)gnu_get_libc_version);
	return search->function != NULL;
}

static struct search find(const char *name)
{
	struct search search = { .name = name };

	dl_iterate_phdr(look_into, &search);
	return search;
}

void *heap_find_next(const char *name)
{
	return find(name).function;
}

void *heap_find_other(const char *name)
{
	struct search search = find(name);

	return search.function && search.in_front ? search.in_front : search.function;
}

/* By the name under which the kernel started it: the C library's own comes later. */
static bool is_launcher(void)
{
	static const char *const begins[] = { "mpirun",	 "mpiexec", "orterun", "orted",
					      "prterun", "prted",   "hydra_",  "srun" };
	const char *path = (const char *)getauxval(AT_EXECFN);
	const char *slash = path ? strrchr(path, '/') : NULL;
	const char *name = slash ? slash + 1 : path;

	for (size_t i = 0; name && i < sizeof(begins) / sizeof(begins[0]); i++)
		if (!strncmp(name, begins[i], strlen(begins[i])))
			return true;
	return false;
}

/* Threads that do so at the same time find the same. */
static OC_COLD int decide(void)
{
	struct search next = find("malloc");

	/* The name's address would not do: in a program at a fixed address that asks for it, as
	 * Debian's python3 does, it is a jump of the program's for everybody. */
	if (!next.in_front && (!next.function || next.in_libc) && !is_launcher())
		return OURS;
	for (int i = 0; i < HEAP_FUNCTIONS; i++)
		heap_next[i] = heap_find_next(names[i]);
	/* Newer C libraries have none to link with. */
	if (!heap_next[HEAP_cfree])
		heap_next[HEAP_cfree] = heap_next[HEAP_free];
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
