/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that peers can map: the arena's, or malloc's where there is none. */
#include <onecopy/onecopy.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "api/engine.h"
#include "base/log.h"
#include "copy/map.h"
#include "heap/heap.h"
#include "team/arena.h"

/* A cache line, so that blocks of two threads never share one. */
#define ALIGN 64

/*
 * Where arenas of this process are or were: a child of fork() still has blocks of its parent's,
 * which are the heap's to free, beside an arena of its own. Never shrinks; one entry but for such
 * children.
 */
struct range {
	const uint8_t *base;
	uint64_t bytes;
	struct range *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of writers of `ranges` */
static _Atomic(struct range *) ranges;

/* The heap's, once it was asked for; where the arena is may change in a child of fork(). */
static _Atomic(const struct oci_arena *) found;

void oci_memory_fork_child(void)
{
	pthread_mutex_init(&lock, NULL);
	oci_arena_self_fork_child();
}

static bool is_known(const void *memory)
{
	/* Acquire: pairs with the release in remember(). */
	struct range *range = atomic_load_explicit(&ranges, memory_order_acquire);

	for (; range; range = range->next)
		if ((uint64_t)((const uint8_t *)memory - range->base) < range->bytes)
			return true;
	return false;
}

static bool remember(const struct oci_arena *arena)
{
	struct range *range;
	bool known;

	pthread_mutex_lock(&lock);
	known = is_known(arena->base);
	range = known ? NULL : malloc(sizeof(*range));
	if (range) {
		*range = (struct range){ arena->base, arena->bytes, ranges };
		/* Release: whoever sees the range sees what it says (acquire in is_known). */
		atomic_store_explicit(&ranges, range, memory_order_release);
	}
	pthread_mutex_unlock(&lock);
	/* The peers of teams that are there learn of it, too. */
	oci_map_publish();
	return known || range;
}

static void say_private(const char *why)
{
	static atomic_bool said;

	if (!atomic_exchange_explicit(&said, true, memory_order_relaxed))
		oci_info("oc_alloc gives memory that other ranks cannot map: %s", why);
}

/* NULL: the heap is not there. */
static const struct oci_arena *arena_of_heap(void)
{
	/* Acquire: pairs with the release below. */
	const struct oci_arena *arena = atomic_load_explicit(&found, memory_order_acquire);

	/* Asking the heap takes a system call, and is needed for the first block alone: what is
	 * known was made before, by the acquire in is_known(). */
	if (arena && arena->base && is_known(arena->base))
		return arena;
	/* A child must not take this arena for its own. */
	oci_engine_watch_forks();
	arena = oci_arena_self(true);
	if (arena && arena->base && !is_known(arena->base) && !remember(arena))
		return NULL;
	/* Release: the heap is loaded. */
	atomic_store_explicit(&found, arena, memory_order_release);
	return arena;
}

void *oc_alloc(size_t bytes)
{
	const struct oci_arena *arena = arena_of_heap();
	void *memory = NULL;

	if (!bytes)
		bytes = 1;
	if (arena && arena->base)
		memory = arena->alloc(bytes, ALIGN);
	if (memory)
		return memory;
	if (arena)
		say_private(arena->base ? "the shared heap is exhausted; raise ONECOPY_HEAP_BYTES" :
					  arena->why);
	return posix_memalign(&memory, ALIGN, bytes) ? NULL : memory;
}

int oc_is_shared(const void *memory)
{
	return memory && oci_arena_holds((uintptr_t)memory);
}

void oc_free(void *memory)
{
	/* Relaxed: it was there before the block was, and is the same for ever. */
	if (memory && is_known(memory))
		atomic_load_explicit(&found, memory_order_relaxed)->free(memory);
	else
		free(memory);
}
