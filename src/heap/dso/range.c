/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What mimalloc takes from the system by mmap(), beside the pieces of the arena that it was given:
 * a part of the arena, too, the range.
 *
 * mimalloc 3 has no piece for a block of more than 32 MiB, nor for one that is aligned to more than
 * 64 KiB: it asks the system for each, and gives it back when it is freed. It asks for further
 * pieces of its own, too. So its mmap() and munmap() are bound to ours (bind.c). mimalloc 2 places
 * blocks of all sizes in its pieces, gets all of the arena as such, and leaves nothing for a range.
 *
 * A bit for each 64 KiB, which is what mimalloc's requests are multiples of: first fit. Where there
 * is no room, or another thread's fork() takes long, the system's mmap() answers, as without us;
 * what mimalloc places there then is private.
 */
#include "dso.h"
#include "raw.h"

#include <errno.h>
#include <string.h>

#define GRAIN HEAP_GRAIN
#define HUGE ((size_t)2 << 20)
#define BITS 64

struct heap_range heap_range;

/* Under the lock of arena.c. */
static uint64_t *taken; /* a bit for each grain of the range */
static size_t taken_bytes;
static size_t grains; /* as long as the arena is there, the same */

/* Set by the thread whose block is to come from here, where malloc is not ours. Initial-exec: to
 * allocate a thread's block for it would be malloc inside of malloc. */
static __thread bool asked __attribute__((tls_model("initial-exec")));

bool heap_range_make(size_t begin, size_t end)
{
	if (taken)
		raw_munmap(taken, taken_bytes);
	taken = NULL;
	grains = (end - begin) / GRAIN;
	if (grains) {
		taken_bytes = (grains + BITS - 1) / BITS * sizeof(*taken);
		taken = raw_mmap(NULL, taken_bytes, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS, -1);
		if (taken == MAP_FAILED) {
			taken = NULL;
			grains = 0;
		}
	}
	heap_range.serves_all = false;
	atomic_store_explicit(&heap_range.begin, begin, memory_order_relaxed);
	atomic_store_explicit(&heap_range.open, begin, memory_order_relaxed);
	return grains > 0;
}

/* The last grain of [from, to) that is taken, or `to`. */
static size_t last_taken(size_t from, size_t to)
{
	for (size_t end = to; end > from;) {
		size_t word = (end - 1) / BITS, low = word * BITS;
		uint64_t bits = taken[word] & (~0ull >> (BITS - 1 - (end - 1) % BITS));

		if (low < from)
			bits &= ~0ull << (from - low);
		if (bits)
			return low + BITS - 1 - (size_t)__builtin_clzll(bits);
		end = low;
	}
	return to;
}

static void set_taken(size_t from, size_t to, bool is)
{
	while (from < to) {
		size_t count = BITS - from % BITS;
		uint64_t bits;

		if (count > to - from)
			count = to - from;
		bits = (~0ull >> (BITS - count)) << from % BITS;
		taken[from / BITS] = is ? taken[from / BITS] | bits : taken[from / BITS] & ~bits;
		from += count;
	}
}

/* Where so many grains are free, from an address that is a multiple of `align` on; or `grains`. */
static size_t find_free(uintptr_t base, size_t count, size_t align)
{
	size_t at = 0;

	while (at < grains) {
		uintptr_t address = (base + at * GRAIN + align - 1) & ~(align - 1);
		size_t used;

		at = (address - base) / GRAIN;
		if (at >= grains || count > grains - at)
			break;
		used = last_taken(at, at + count);
		if (used == at + count)
			return at;
		at = used + 1;
	}
	return grains;
}

static uintptr_t range_base(void)
{
	return (uintptr_t)atomic_load_explicit(&heap_place.base, memory_order_relaxed) +
	       atomic_load_explicit(&heap_range.begin, memory_order_relaxed);
}

/* Is this memory of the range? */
static bool range_has(const void *address, size_t bytes)
{
	return heap_has(address, bytes) && (uintptr_t)address >= range_base();
}

void *heap_range_take(size_t bytes)
{
	size_t count = bytes / GRAIN, at;
	uint8_t *memory = NULL;
	enum heap_lock_soon lock = heap_lock_soon();

	if (lock != HEAP_NOT_LOCKED && taken &&
	    atomic_load_explicit(&heap_place.base, memory_order_relaxed)) {
		/* What may have large pages begins at one. */
		at = find_free(range_base(), count, bytes >= HEAP_LARGE ? HUGE : GRAIN);
		if (at < grains) {
			set_taken(at, at + count, true);
			memory = (uint8_t *)(range_base() + at * GRAIN);
		}
	}
	if (lock == HEAP_LOCKED)
		heap_unlock();
	return memory;
}

static void give_up(uint8_t *address, size_t bytes)
{
	/* Whole grains: of others mimalloc gives up no part. */
	size_t from = ((uintptr_t)address - range_base() + GRAIN - 1) / GRAIN;
	size_t to = ((uintptr_t)address - range_base() + bytes) / GRAIN;
	enum heap_lock_soon lock = heap_lock_soon();

	/* Otherwise these addresses are not used again; their pages are gone. */
	if (lock != HEAP_NOT_LOCKED && taken && from < to)
		set_taken(from, to, false);
	if (lock == HEAP_LOCKED)
		heap_unlock();
}

void *heap_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
	bool ours = (heap_range.serves_all || asked) && bytes % GRAIN == 0 && bytes &&
		    flags & MAP_ANONYMOUS && !(flags & (MAP_FIXED | MAP_HUGETLB)) && !offset;
	void *memory = ours ? heap_range_take(bytes) : NULL;

	if (memory && protection != PROT_NONE && heap_open_pages(memory, bytes)) {
		give_up(memory, bytes);
		memory = NULL;
	}
	return memory ? memory : raw_mmap_errno(at, bytes, protection, flags, fd);
}

/* As the kernel's, it leaves zeros to whoever gets the memory next. */
int heap_munmap(void *address, size_t bytes)
{
	int error = errno;

	if (!range_has(address, bytes))
		return heap_unmap_next(address, bytes);
	/* Of pages that are locked or were never open the kernel makes no hole. */
	if (heap_punch(address, bytes) && !raw_mprotect(address, bytes, PROT_READ | PROT_WRITE)) {
		raw_call(SYS_munlock, (long)address, (long)bytes, 0, 0, 0, 0);
		if (heap_punch(address, bytes))
			memset(address, 0, bytes);
	}
	heap_closed(address, bytes);
	raw_mprotect(address, bytes, PROT_NONE);
	give_up(address, bytes);
	errno = error;
	return 0;
}

void *heap_range_alloc(size_t bytes, size_t align)
{
	void *memory;

	if (!grains)
		return NULL;
	asked = true;
	memory = mi_malloc_aligned(bytes, align);
	asked = false;
	return memory;
}
