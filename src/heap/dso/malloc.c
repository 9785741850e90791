/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * malloc and its family, when the library is preloaded: mimalloc's, once the arena is there.
 *
 * Whatever mimalloc cannot place in the arena (it is full, or the alignment is beyond a segment's)
 * it takes from the system, so nothing fails that would not have failed without us. Where the
 * program has a malloc of its own (next.c), each function goes on to the next of its name.
 */
#include "dso.h"
#include "raw.h"

#include "base/clock.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#define LIKELY(x) __builtin_expect(!!(x), 1)

void *oc_heap_malloc(size_t bytes);
static void *first_malloc(size_t bytes);
static void first_free(void *memory);

/*
 * Programs that allocate all the time do so in 20 ns: each instruction here is seen. So once it is
 * known whose malloc there is, malloc and free are a jump to it, and errno comes from mimalloc's
 * handler of errors.
 */
static void *(*_Atomic allocate)(size_t bytes) = first_malloc;
static void (*_Atomic release)(void *memory) = first_free;
static atomic_bool serving; /* malloc is ours, and the arena is there */

/* What a function of ours does where malloc is not: the next one of its name, by its type. */
#define NEXT(name, type) ((type)heap_next[HEAP_##name])
typedef void *one_size(size_t bytes);
typedef void *two_sizes(size_t count, size_t bytes);
typedef void *resizing(void *memory, size_t bytes);
typedef void freeing(void *memory);
typedef int aligning(void **memory, size_t align, size_t bytes);

static void no_memory(int error, void *unused)
{
	(void)unused;
	if (error == ENOMEM || error == EOVERFLOW)
		errno = ENOMEM;
}

/* While a fork() is under way. As heap_lock_soon() waits, and why. */
static atomic_bool paused;

static void wait_for_fork(void)
{
	uint64_t begun = oci_clock_ns();

	/* Acquire: pairs with the release in switch_to(). */
	while (atomic_load_explicit(&paused, memory_order_acquire) && !heap_is_locked_here() &&
	       oci_clock_ns() - begun < HEAP_WAIT_NS)
		heap_wait_a_turn();
}

static void *paused_malloc(size_t bytes)
{
	wait_for_fork();
	return mi_malloc(bytes);
}

/*
 * What is freed meanwhile: to the child it is in use, and would not be if its copy were made behind
 * mi_free(). Private memory, made by the first fork() and kept.
 */
enum { DEFERRED = 1 << 20 };
static void *_Atomic *deferred;
static atomic_size_t deferred_count;
static atomic_bool deferring;

/* Who takes it out of its place frees it. */
static void free_deferred(void *_Atomic *place)
{
	void *memory = atomic_exchange(place, NULL);

	if (memory)
		mi_free(memory);
}

/* Sequentially consistent, all: either this sees that the pause is over, or heap_pause(), behind
 * that, what is in its place. */
static void deferred_free(void *memory)
{
	while (memory) {
		size_t at = deferred ? atomic_fetch_add(&deferred_count, 1) : DEFERRED;

		if (at >= DEFERRED) {
			wait_for_fork();
			mi_free(memory);
			return;
		}
		/* Else of who was given the place by an earlier fork(), and comes late. */
		memory = atomic_exchange(&deferred[at], memory);
		if (!atomic_load(&deferring))
			free_deferred(&deferred[at]);
	}
}

bool heap_defer(void *memory)
{
	if (!atomic_load(&deferring))
		return false;
	deferred_free(memory);
	return true;
}

static void begin_to_defer(void)
{
	if (!deferred)
		deferred = raw_mmap(NULL, DEFERRED * sizeof(*deferred), PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
	if (deferred == MAP_FAILED)
		deferred = NULL;
	atomic_store(&deferred_count, 0);
}

static void end_to_defer(void)
{
	size_t count = atomic_load(&deferred_count);

	for (size_t at = 0; deferred && at < count && at < DEFERRED; at++)
		free_deferred(&deferred[at]);
}

/* Release, all: the last ones find mimalloc as the fork has left it. */
static void switch_to(bool pause)
{
	atomic_store_explicit(&paused, pause, memory_order_release);
	atomic_store_explicit(&allocate, pause ? paused_malloc : mi_malloc, memory_order_release);
	atomic_store_explicit(&release, pause ? deferred_free : mi_free, memory_order_release);
	atomic_store_explicit(&serving, !pause, memory_order_release);
}

void heap_pause(bool is)
{
	static bool was_serving;

	if (is) {
		was_serving = atomic_load_explicit(&serving, memory_order_acquire);
		begin_to_defer();
	}
	atomic_store(&deferring, is);
	if (was_serving)
		switch_to(is);
	if (!is)
		end_to_defer();
}

static OC_COLD bool settle(void)
{
	/* Acquire: pairs with the release in switch_to(). */
	if (atomic_load_explicit(&paused, memory_order_acquire)) {
		wait_for_fork();
		return true;
	}
	if (!heap_replaces_malloc()) {
		/* Release: pairs with the acquire of whoever jumps there. */
		atomic_store_explicit(&allocate, NEXT(malloc, one_size *), memory_order_release);
		atomic_store_explicit(&release, NEXT(free, freeing *), memory_order_release);
		return false;
	}
	heap_make();
	/* Acquire: pairs with the release in heap_make(). Still not ready: inside of that. */
	if (atomic_load_explicit(&heap_ready, memory_order_acquire)) {
		mi_register_error(no_memory, NULL);
		/* Release: pairs with the acquire in ours(), and of whoever jumps there. */
		atomic_store_explicit(&allocate, mi_malloc, memory_order_release);
		atomic_store_explicit(&release, mi_free, memory_order_release);
		atomic_store_explicit(&serving, true, memory_order_release);
	}
	return true;
}

static inline bool ours(void)
{
	/* Acquire: pairs with the release in settle(). */
	return LIKELY(atomic_load_explicit(&serving, memory_order_acquire)) || settle();
}

static inline void let_go(void *memory)
{
	/* Acquire: pairs with the releases in settle(), so the arena is seen with it, and in
	 * switch_to(). */
	atomic_load_explicit(&release, memory_order_acquire)(memory);
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

static void *first_malloc(size_t bytes)
{
	return ours() ? given(mi_malloc(bytes)) : NEXT(malloc, one_size *)(bytes);
}

static void first_free(void *memory)
{
	if (ours())
		mi_free(memory);
	else
		NEXT(free, freeing *)(memory);
}

/* The name that no other library has: next.c compares it with what `malloc` is bound to. */
void *oc_heap_malloc(size_t bytes)
{
	if (!LIKELY(bytes < HEAP_LARGE) && ours())
		return backed(given(mi_malloc(bytes)), bytes);
	/* Acquire: pairs with the release in settle(), so the arena is seen with it. */
	return atomic_load_explicit(&allocate, memory_order_acquire)(bytes);
}

OC_EXPORT void *malloc(size_t bytes) __attribute__((alias("oc_heap_malloc")));

OC_EXPORT void free(void *memory)
{
	let_go(memory);
}

/* As mi_realloc(), but that the new place is backed before it is filled, and the old one freed as
 * by free(). */
static void *resize_block(void *memory, size_t bytes)
{
	size_t old = mi_usable_size(memory);
	void *other;

	/* Relaxed: who misses that a fork() has begun is as one who came before it. */
	if ((bytes < HEAP_LARGE || bytes <= old) &&
	    !atomic_load_explicit(&paused, memory_order_relaxed))
		return given(mi_realloc(memory, bytes));
	other = backed(given(mi_malloc(bytes)), bytes);
	if (!other)
		return NULL;
	if (memory)
		memcpy(other, memory, old < bytes ? old : bytes);
	let_go(memory);
	return other;
}

/* As the C library, where mimalloc would give a block of no bytes: programs count on either. */
static inline void *resize(void *memory, size_t bytes)
{
	if (bytes || !memory)
		return resize_block(memory, bytes);
	let_go(memory);
	return NULL;
}

static inline void *align_to(size_t align, size_t bytes)
{
	size_t power = sizeof(void *);

	if (align > SIZE_MAX / 2 + 1) {
		errno = EINVAL;
		return NULL;
	}
	/* As the C library: no alignment is an error, the next power of two serves. */
	while (power < align)
		power *= 2;
	return backed(given(mi_memalign(power, heap_aligned_bytes(power, bytes))), bytes);
}

OC_EXPORT void *reallocarray(void *memory, size_t count, size_t bytes)
{
	size_t all;

	if (!ours())
		return NEXT(reallocarray, void *(*)(void *, size_t, size_t))(memory, count, bytes);
	if (__builtin_mul_overflow(count, bytes, &all))
		return given(NULL);
	return resize(memory, all);
}

OC_EXPORT size_t malloc_usable_size(void *memory)
{
	if (!ours())
		return NEXT(malloc_usable_size, size_t(*)(void *))(memory);
	return mi_usable_size(memory);
}

/* The C library's would trim its own heap, which is empty. */
OC_EXPORT int malloc_trim(size_t pad)
{
	if (!ours())
		return NEXT(malloc_trim, int (*)(size_t))(pad);
	mi_collect(true);
	return 1;
}

/* What HEAP_FAMILY() has of each kind. */
#define OWN(name)
#define CALLOC(name)                                                                    \
	OC_EXPORT void *name(size_t count, size_t bytes)                                \
	{                                                                               \
		return ours() ? backed(given(mi_calloc(count, bytes)), count * bytes) : \
				NEXT(name, two_sizes *)(count, bytes);                  \
	}
#define REALLOC(name)                                                                          \
	OC_EXPORT void *name(void *memory, size_t bytes)                                       \
	{                                                                                      \
		return ours() ? resize(memory, bytes) : NEXT(name, resizing *)(memory, bytes); \
	}
#define FREE(name)                                     \
	OC_EXPORT void name(void *memory)              \
	{                                              \
		if (ours())                            \
			let_go(memory);                \
		else                                   \
			NEXT(name, freeing *)(memory); \
	}
#define MEMALIGN(name)                                                                          \
	OC_EXPORT void *name(size_t align, size_t bytes)                                        \
	{                                                                                       \
		return ours() ? align_to(align, bytes) : NEXT(name, two_sizes *)(align, bytes); \
	}
#define POSIX_MEMALIGN(name)                                                                \
	OC_EXPORT int name(void **memory, size_t align, size_t bytes)                       \
	{                                                                                   \
		int error;                                                                  \
                                                                                            \
		if (!ours())                                                                \
			return NEXT(name, aligning *)(memory, align, bytes);                \
		error = mi_posix_memalign(memory, align, heap_aligned_bytes(align, bytes)); \
		if (!error)                                                                 \
			backed(*memory, bytes);                                             \
		return error;                                                               \
	}
#define OF_ONE_SIZE(name, made_by)                                                     \
	OC_EXPORT void *name(size_t bytes)                                             \
	{                                                                              \
		return ours() ? given(made_by(bytes)) : NEXT(name, one_size *)(bytes); \
	}

#define MALLOC(name) OF_ONE_SIZE(name, mi_malloc)
#define VALLOC(name) OF_ONE_SIZE(name, mi_valloc)
#define PVALLOC(name) OF_ONE_SIZE(name, mi_pvalloc)

#define DEFINE(kind, name) kind(name)
HEAP_FAMILY(DEFINE)
