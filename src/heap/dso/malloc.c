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

#define LIKELY(x) __builtin_expect(!!(x), 1)

void *oc_heap_malloc(size_t bytes);

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

/* The name that no other library has: arena.c compares it with what `malloc` is bound to. */
void *oc_heap_malloc(size_t bytes)
{
	prepare();
	return given(mi_malloc(bytes));
}

OC_EXPORT void *malloc(size_t bytes) __attribute__((alias("oc_heap_malloc")));

OC_EXPORT void free(void *memory)
{
	mi_free(memory);
}

OC_EXPORT void *calloc(size_t count, size_t bytes)
{
	prepare();
	return given(mi_calloc(count, bytes));
}

/* As the C library, where mimalloc would give a block of no bytes: programs count on either. */
static inline bool frees(void *memory, size_t bytes)
{
	if (bytes || !memory)
		return false;
	mi_free(memory);
	return true;
}

OC_EXPORT void *realloc(void *memory, size_t bytes)
{
	prepare();
	return frees(memory, bytes) ? NULL : given(mi_realloc(memory, bytes));
}

OC_EXPORT void *reallocarray(void *memory, size_t count, size_t bytes)
{
	size_t all;

	prepare();
	if (__builtin_mul_overflow(count, bytes, &all))
		return given(NULL);
	return frees(memory, all) ? NULL : given(mi_realloc(memory, all));
}

OC_EXPORT int posix_memalign(void **memory, size_t align, size_t bytes)
{
	prepare();
	return mi_posix_memalign(memory, align, bytes);
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
	return given(mi_memalign(power, bytes));
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
