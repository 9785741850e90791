/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pages of the arena given back, and pages about to be used.
 *
 * MADV_DONTNEED on a shared file lowers the process's RSS and frees nothing: the file keeps the
 * pages, and the next read finds the old bytes. For memory that came from malloc, a program (and
 * mimalloc) means "free it, zeros when I come back", and that is a hole in the file. So madvise()
 * is ours where we are preloaded, and also by address, see bind.c, in mimalloc and all else.
 *
 * Memory that mimalloc has not begun to use cannot be accessed: mlockall() would fill it.
 */
#include "dso.h"
#include "raw.h"

#include <errno.h>

#define PAGE ((uintptr_t)4096)

#ifndef MADV_DONTNEED_LOCKED
#define MADV_DONTNEED_LOCKED 24
#endif

/* Relaxed, all of them: each is a number by itself, for statistics alone. */
static _Atomic(uint64_t) most, given_back, large;

/* Bytes in use now. They become fewer by our holes alone, so the most is seen before each. */
static uint64_t look(void)
{
	uint64_t now = heap_used(), seen = atomic_load_explicit(&most, memory_order_relaxed);

	while (now > seen && !atomic_compare_exchange_weak_explicit(
				     &most, &seen, now, memory_order_relaxed, memory_order_relaxed))
		;
	return now;
}

struct oci_arena_counts heap_counts(void)
{
	struct oci_arena_counts counts = { .used = look() };

	counts.most = atomic_load_explicit(&most, memory_order_relaxed);
	counts.given_back = atomic_load_explicit(&given_back, memory_order_relaxed);
	counts.large = atomic_load_explicit(&large, memory_order_relaxed);
	return counts;
}

void heap_count_anew(void)
{
	atomic_store_explicit(&most, 0, memory_order_relaxed);
	atomic_store_explicit(&given_back, 0, memory_order_relaxed);
	atomic_store_explicit(&large, 0, memory_order_relaxed);
}

void heap_count_large(size_t bytes)
{
	atomic_fetch_add_explicit(&large, bytes, memory_order_relaxed);
}

/* 0 or -errno. The address, never the descriptor: that number may be another file's by now. Whoever
 * keeps memory registered hears of what goes as it would without us; of shared memory that takes
 * away no byte, so that the hole is ours to make. */
static int make_hole(void *address, size_t bytes)
{
	uint64_t before = look(), after;
	int error;

	heap_advise_next(address, bytes, MADV_DONTNEED);
	error = raw_madvise(address, bytes, MADV_REMOVE) ? -errno : 0;
	after = heap_used();
	if (after < before)
		atomic_fetch_add_explicit(&given_back, before - after, memory_order_relaxed);
	return error;
}

OC_EXPORT int madvise(void *address, size_t bytes, int advice);

/* By the one that has the name. Initial-exec: to allocate a thread's block for it would be malloc
 * inside of free. */
static __thread bool made_hole __attribute__((tls_model("initial-exec")));

OC_EXPORT int madvise(void *address, size_t bytes, int advice)
{
	switch (advice) {
	case MADV_DONTNEED:
	case MADV_FREE:
	case MADV_DONTNEED_LOCKED:
		/* Locked pages cannot be punched: those calls fail as they would have, or drop the
		 * mapping as DONTNEED does. */
		made_hole = heap_has(address, bytes) && !make_hole(address, bytes);
		if (made_hole)
			return 0;
		break;
	default:
		break;
	}
	return heap_advise_next(address, bytes, advice);
}

/*
 * By the name, as libraries that keep memory registered stand in front of it to hear of what goes;
 * errno is left alone, as free() leaves it. `hole`: whether there is one now.
 */
static int advise(void *address, size_t bytes, int advice, bool *hole)
{
	int (*volatile by_name)(void *, size_t, int) = madvise;
	int result, error = errno;

	made_hole = false;
	result = by_name(address, bytes, advice);
	*hole = made_hole;
	if (!*hole && (advice == MADV_DONTNEED || advice == MADV_FREE) && heap_has(address, bytes))
		/* Either the first bytes of ours were written over, see bind.c; or there is memory
		 * in between that mimalloc has not used, where the kernel makes no hole. */
		*hole = !make_hole(address, bytes) ||
			(!raw_mprotect(address, bytes, PROT_READ | PROT_WRITE) &&
			 !make_hole(address, bytes));
	errno = error;
	return *hole ? 0 : result;
}

int heap_madvise(void *address, size_t bytes, int advice)
{
	bool hole;

	return advise(address, bytes, advice, &hole);
}

int heap_madvise_of_others(void *address, size_t bytes, int advice)
{
	int (*volatile by_name)(void *, size_t, int) = madvise;
	int result;

	made_hole = false;
	result = by_name(address, bytes, advice);
	/* The first bytes of ours were written over: the kernel has dropped entries of a page
	 * table. */
	if (!made_hole && (advice == MADV_DONTNEED || advice == MADV_FREE) &&
	    heap_has(address, bytes) && !make_hole(address, bytes))
		return 0;
	return result;
}

int heap_punch(void *address, size_t bytes)
{
	uintptr_t first = ((uintptr_t)address + PAGE - 1) & ~(PAGE - 1);
	uintptr_t last = ((uintptr_t)address + bytes) & ~(PAGE - 1);
	bool hole = true;

	if (last > first)
		advise((void *)first, last - first, MADV_DONTNEED, &hole);
	return hole ? 0 : -1;
}

/*
 * A bit for each grain, set before it is used for the first time. Private memory, as what mimalloc
 * 2 knows of its arenas is: a child of fork() has both as they were when it was made.
 */
static _Atomic(uint64_t) *used;
static size_t used_bytes;

static void note_used(size_t from, size_t to)
{
	for (size_t grain = from / HEAP_GRAIN; used && grain * HEAP_GRAIN < to; grain++) {
		uint64_t bit = 1ull << grain % 64;

		/* Relaxed: for a child of fork() alone, whose memory the kernel takes from this
		 * one's as a whole. */
		if (!(atomic_load_explicit(&used[grain / 64], memory_order_relaxed) & bit))
			atomic_fetch_or_explicit(&used[grain / 64], bit, memory_order_relaxed);
	}
}

void heap_begin_pages(size_t front, size_t bytes)
{
	if (used)
		raw_munmap(used, used_bytes);
	used_bytes = (bytes / HEAP_GRAIN + 63) / 64 * sizeof(*used);
	used = raw_mmap(NULL, used_bytes, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
	if (used == MAP_FAILED)
		used = NULL; /* all can have been */
	note_used(0, front);
}

bool heap_has_used(size_t at)
{
	size_t grain = at / HEAP_GRAIN;

	return !used ||
	       atomic_load_explicit(&used[grain / 64], memory_order_relaxed) >> grain % 64 & 1;
}

int heap_open_pages(void *address, size_t bytes)
{
	uint8_t *base = atomic_load_explicit(&heap_place.base, memory_order_relaxed);
	size_t whole = atomic_load_explicit(&heap_place.bytes, memory_order_relaxed), end, now;
	atomic_size_t *open = &heap_place.open;

	end = (size_t)((uint8_t *)address - base) + bytes;
	/* Relaxed: read by a child of fork() alone, which has one thread. */
	if (end > atomic_load_explicit(&heap_range.begin, memory_order_relaxed))
		open = &heap_range.open;
	now = atomic_load_explicit(open, memory_order_relaxed);
	while (end > now && !atomic_compare_exchange_weak_explicit(
				    open, &now, end, memory_order_relaxed, memory_order_relaxed))
		;
	note_used(end - bytes, end);
	/* mimalloc does not look at the answer. A mapping in fewer pieces is always to be had. */
	if (raw_mprotect(address, bytes, PROT_READ | PROT_WRITE) &&
	    raw_mprotect(base, whole, PROT_READ | PROT_WRITE))
		return -1;
	heap_opened(address, bytes);
	return 0;
}

int heap_mprotect(void *address, size_t bytes, int protection)
{
	if (!heap_has(address, bytes))
		return raw_mprotect(address, bytes, protection);
	if (protection != (PROT_READ | PROT_WRITE)) {
		heap_closed(address, bytes); /* of a mimalloc that protects what is not in use */
		return raw_mprotect(address, bytes, protection);
	}
	if (heap_open_pages(address, bytes))
		return -1;
	if (heap_replaces_malloc())
		heap_back_segment(address, bytes);
	return 0;
}
