/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * malloc and its family, when the library is preloaded: mimalloc's, once the arena is there.
 *
 * Whatever mimalloc cannot place in the arena (it is full, or the alignment is beyond a segment's)
 * it takes from the system, so nothing fails that would not have failed without us. The names with
 * __libc_ are the C library's other names of the same functions: a block of one family must never
 * reach the free() of the other.
 */
#include "dso.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#define LIKELY(x) __builtin_expect(!!(x), 1)

void *oc_heap_malloc(size_t bytes);
static void *first_malloc(size_t bytes);

/*
 * Programs that allocate all the time do so in 20 ns: each instruction here is seen. So once the
 * arena is there malloc is a jump to mimalloc's, as free is, and errno comes from mimalloc's
 * handler of errors.
 */
static void *(*_Atomic allocate)(size_t bytes) = first_malloc;

static inline void prepare(void)
{
	/* Acquire: pairs with the release in heap_make(). */
	if (!LIKELY(atomic_load_explicit(&heap_ready, memory_order_acquire)))
		heap_make();
}

static inline void *given(void *memory)
{
	if (!LIKELY(memory != NULL))
		errno = ENOMEM;
	return memory;
}

/* A large block: mimalloc may have had its memory for a long time, so it does not tell us. */
static inline void *backed(void *memory, size_t bytes)
{
	if (bytes >= HEAP_LARGE && memory && heap_has(memory, bytes))
		heap_back(memory, bytes);
	return memory;
}

static void no_memory(int error, void *unused)
{
	(void)unused;
	if (error == ENOMEM || error == EOVERFLOW)
		errno = ENOMEM;
}

static void *first_malloc(size_t bytes)
{
	prepare();
	/* Acquire: as in prepare(). Still not ready: inside of heap_make(). */
	if (atomic_load_explicit(&heap_ready, memory_order_acquire)) {
		mi_register_error(no_memory, NULL);
		/* Release: pairs with the acquire in oc_heap_malloc(). */
		atomic_store_explicit(&allocate, mi_malloc, memory_order_release);
	}
	return given(mi_malloc(bytes));
}

/* The name that no other library has: arena.c compares it with what `malloc` is bound to. */
void *oc_heap_malloc(size_t bytes)
{
	if (!LIKELY(bytes < HEAP_LARGE)) {
		prepare();
		return backed(given(mi_malloc(bytes)), bytes);
	}
	/* Acquire: pairs with the release in first_malloc(), so the arena is seen with it. */
	return atomic_load_explicit(&allocate, memory_order_acquire)(bytes);
}

OC_EXPORT void *malloc(size_t bytes) __attribute__((alias("oc_heap_malloc")));

OC_EXPORT void free(void *memory)
{
	mi_free(memory);
}

OC_EXPORT void *calloc(size_t count, size_t bytes)
{
	prepare();
	return backed(given(mi_calloc(count, bytes)), count * bytes);
}

/* As the C library, where mimalloc would give a block of no bytes: programs count on either. */
static inline bool frees(void *memory, size_t bytes)
{
	if (bytes || !memory)
		return false;
	mi_free(memory);
	return true;
}

/* As mi_realloc(), but that the new place is backed before it is filled. */
static void *grow(void *memory, size_t bytes)
{
	size_t old = mi_usable_size(memory);
	void *larger;

	if (bytes < HEAP_LARGE || bytes <= old)
		return given(mi_realloc(memory, bytes));
	larger = backed(given(mi_malloc(bytes)), bytes);
	if (!larger)
		return NULL;
	if (memory)
		memcpy(larger, memory, old);
	mi_free(memory);
	return larger;
}

OC_EXPORT void *realloc(void *memory, size_t bytes)
{
	prepare();
	return frees(memory, bytes) ? NULL : grow(memory, bytes);
}

OC_EXPORT void *reallocarray(void *memory, size_t count, size_t bytes)
{
	size_t all;

	prepare();
	if (__builtin_mul_overflow(count, bytes, &all))
		return given(NULL);
	return frees(memory, all) ? NULL : grow(memory, all);
}

OC_EXPORT int posix_memalign(void **memory, size_t align, size_t bytes)
{
	int error;

	prepare();
	error = mi_posix_memalign(memory, align, bytes);
	if (!error)
		backed(*memory, bytes);
	return error;
}

OC_EXPORT void *memalign(size_t align, size_t bytes)
{
	size_t power = sizeof(void *);

	prepare();
	if (align > SIZE_MAX / 2 + 1) {
		errno = EINVAL;
		return NULL;
	}
	/* As the C library: no alignment is an error, the next power of two serves. */
	while (power < align)
		power *= 2;
	return backed(given(mi_memalign(power, bytes)), bytes);
}

OC_EXPORT void *aligned_alloc(size_t align, size_t bytes)
{
	return memalign(align, bytes);
}

OC_EXPORT void *valloc(size_t bytes)
{
	prepare();
	return given(mi_valloc(bytes));
}

OC_EXPORT void *pvalloc(size_t bytes)
{
	prepare();
	return given(mi_pvalloc(bytes));
}

OC_EXPORT size_t malloc_usable_size(void *memory)
{
	return mi_usable_size(memory);
}

/* The C library's would trim its own heap, which is empty. */
OC_EXPORT int malloc_trim(size_t pad)
{
	(void)pad;
	mi_collect(true);
	return 1;
}

OC_EXPORT void *__libc_malloc(size_t bytes) __attribute__((alias("oc_heap_malloc")));
OC_EXPORT void __libc_free(void *memory) __attribute__((alias("free")));
OC_EXPORT void cfree(void *memory) __attribute__((alias("free")));
OC_EXPORT void *__libc_calloc(size_t count, size_t bytes) __attribute__((alias("calloc")));
OC_EXPORT void *__libc_realloc(void *memory, size_t bytes) __attribute__((alias("realloc")));
OC_EXPORT void *__libc_memalign(size_t align, size_t bytes) __attribute__((alias("memalign")));
OC_EXPORT void *__libc_valloc(size_t bytes) __attribute__((alias("valloc")));
OC_EXPORT void *__libc_pvalloc(size_t bytes) __attribute__((alias("pvalloc")));
OC_EXPORT int __posix_memalign(void **memory, size_t align, size_t bytes)
	__attribute__((alias("posix_memalign")));
