/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the files of libonecopy-heap.so share.
 *
 * Everything here runs inside malloc: nothing may call malloc, stdio or the dynamic linker, and
 * errno is the caller's.
 */
#ifndef OC_HEAP_DSO_DSO_H
#define OC_HEAP_DSO_DSO_H

#include "heap/arena.h"
#include "os/object.h"

#include <mimalloc.h>
#include <stdatomic.h>
#include <stdbool.h>

#define OC_EXPORT __attribute__((visibility("default")))
#define OC_COLD __attribute__((cold, noinline))

/* What to ask mimalloc for, where so many bytes are to be aligned so. Of 256, 512 and 1024 bytes
 * mimalloc 2.0 takes any block of its own to be aligned to its size, which it is not. */
static inline size_t heap_aligned_bytes(size_t align, size_t bytes)
{
	return align > 128 && bytes <= 1024 ? bytes | 1 : bytes;
}

/*
 * Where the arena is now; base is NULL while there is none. Written under the lock of arena.c, or
 * in a child of fork() that has one thread; read at any time by madvise(), whose caller got the
 * address from the arena and so comes after the write.
 */
struct heap_place {
	_Atomic(uint8_t *) base;
	_Atomic(size_t) bytes;
	_Atomic(size_t) open; /* nothing from here to the range was ever used: it is PROT_NONE */
};
extern struct heap_place heap_place;

/* The end of the arena that mimalloc takes parts of by mmap(), see range.c. */
struct heap_range {
	atomic_size_t begin; /* from base on; the whole of the arena: there is none */
	atomic_size_t open;  /* nothing from here on was ever used */
	bool serves_all;     /* set once it is: all mmap() of mimalloc, not heap_range_alloc()'s */
};
extern struct heap_range heap_range;

static inline bool heap_has(const void *address, size_t bytes)
{
	const uint8_t *base = atomic_load_explicit(&heap_place.base, memory_order_relaxed);
	size_t whole = atomic_load_explicit(&heap_place.bytes, memory_order_relaxed);
	size_t offset = (size_t)((const uint8_t *)address - base);

	return base && offset < whole && bytes <= whole - offset;
}

/* ---- arena.c --------------------------------------------------------------------------------- */

/* Set once the arena was made, or found to be impossible. */
extern atomic_bool heap_ready;
/* Makes the arena at the first call. Returns at once inside of itself, where memory is private. */
void heap_make(void);
/* Of the arena. false: this thread has it already. */
bool heap_lock(void);
void heap_unlock(void);
/* For what malloc() calls: a thread that waits there may hold what a fork() by another thread waits
 * for (the C library's locks of streams). */
enum heap_lock_soon { HEAP_LOCKED, HEAP_LOCKED_BEFORE, HEAP_NOT_LOCKED };
enum heap_lock_soon heap_lock_soon(void);
#define HEAP_WAIT_NS 100000000u /* of one wait, about; a malloc() may have some */
/* Until the next look. */
void heap_wait_a_turn(void);
/* Does this thread have it? */
bool heap_is_locked_here(void);
/* Whether descriptor fd is still the arena's file: a program may close what it did not open. */
bool heap_is_file(int fd);
int heap_fd(void);
uint64_t heap_used(void);
/* In the child of fork(), whose memory is private by now, */
void heap_forget(void);
/* or in a file of its own, which is the arena's from now on. */
void heap_adopt(int fd);

/* ---- next.c ---------------------------------------------------------------------------------- */

/* malloc is ours in this process: the library was preloaded, and the program has none. */
bool heap_replaces_malloc(void);

/*
 * The family, by kind and name: what malloc.c makes a function of each kind by, or OWN. The names
 * with __libc_ are the C library's other names of the same functions: a block of one family must
 * never reach the free() of the other.
 */
#define HEAP_FAMILY(X)                      \
	X(OWN, malloc)                      \
	X(OWN, free)                        \
	X(OWN, reallocarray)                \
	X(OWN, malloc_usable_size)          \
	X(OWN, malloc_trim)                 \
	X(MALLOC, __libc_malloc)            \
	X(CALLOC, calloc)                   \
	X(CALLOC, __libc_calloc)            \
	X(REALLOC, realloc)                 \
	X(REALLOC, __libc_realloc)          \
	X(FREE, cfree)                      \
	X(FREE, __libc_free)                \
	X(MEMALIGN, memalign)               \
	X(MEMALIGN, aligned_alloc)          \
	X(MEMALIGN, __libc_memalign)        \
	X(POSIX_MEMALIGN, posix_memalign)   \
	X(POSIX_MEMALIGN, __posix_memalign) \
	X(VALLOC, valloc)                   \
	X(VALLOC, __libc_valloc)            \
	X(PVALLOC, pvalloc)                 \
	X(PVALLOC, __libc_pvalloc)

#define HEAP_NUMBER(kind, name) HEAP_##name,
enum heap_function { HEAP_FAMILY(HEAP_NUMBER) HEAP_FUNCTIONS };
#undef HEAP_NUMBER
/* Where malloc is not ours: who has these names behind us. */
extern void *heap_next[HEAP_FUNCTIONS];
/* Who has a name of ours behind us, or NULL. */
void *heap_find_next(const char *name);
/* Who would have it if we were not there, in front of us or behind, or NULL: nobody behind. */
void *heap_find_other(const char *name);

/* ---- fork.c ---------------------------------------------------------------------------------- */

/* Once, before the first arena. */
void heap_watch_forks(void);
/* What fork() runs, and what is around a _Fork(), which runs nothing. */
void heap_before_fork(void);
void heap_after_fork_in_parent(void);
void heap_after_fork_in_child(void);

/* ---- malloc.c -------------------------------------------------------------------------------- */

/* With the arena locked: malloc() of other threads waits, or no longer; and what is freed is freed
 * when that is over. */
void heap_pause(bool is);
/* Of a block that is to be freed: it will be then. false: by the caller. */
bool heap_defer(void *memory);

/* ---- stack.c --------------------------------------------------------------------------------- */

/* Before the first arena: fork() may not search for what it calls. */
void heap_find_forks(void);

/* ---- hide.c ---------------------------------------------------------------------------------- */

/* Before a fork, with the arena locked: the child will have a hole in the arena's place, and call
 * `copy` when something touches it. false: it will have the parent's pages. */
bool heap_hide(void (*copy)(void));
/* Whether what the C library keeps of this thread lies in the arena: its stack was given to
 * pthread_attr_setstack(). */
bool heap_has_thread(void);
/* With the arena locked: whether such a thread can be hidden. */
bool heap_can_hide_thread(void);
/* Afterwards, in the parent, and in the child, which has its copy. */
void heap_show(bool child);

/* ---- pages.c --------------------------------------------------------------------------------- */

/* Gives the pages of the arena inside [address, address + bytes) back to the system: 0 or -1.
 */
int heap_punch(void *address, size_t bytes);
struct oci_arena_counts heap_counts(void);
/* In the child of fork(): what the parent did is not counted. */
void heap_count_anew(void);
void heap_count_large(size_t bytes);

/* A multiple of which mimalloc asks for. */
#define HEAP_GRAIN ((size_t)64 << 10)
/* With the arena locked, when it is made: nothing of it has been used yet, but for its front. */
void heap_begin_pages(size_t front, size_t bytes);
/* Can the grain at this offset have been used, when this process, or the fork() that made it, began
 * to ask? */
bool heap_has_used(size_t at);
/* Pages of the arena can be read and written from now on: 0, or -1 and errno. */
int heap_open_pages(void *address, size_t bytes);
/* What mimalloc calls for madvise(), and for mprotect(), by which it begins to use memory. */
int heap_madvise(void *address, size_t bytes, int advice);
/* What all other objects that are loaded when the arena is made call for madvise(). */
int heap_madvise_of_others(void *address, size_t bytes, int advice);
int heap_mprotect(void *address, size_t bytes, int protection);

/* ---- open.c --------------------------------------------------------------------------------- */

/* Nobody can shorten the file under those who have it mapped. */
void heap_seal(int fd);
/* Of a new arena: nothing of it is open. */
void heap_write_front(uint8_t *base, uint64_t bytes, const uint8_t nonce[16]);
/* That the arena stays: this thread's end is the process's, as peers see it. */
void heap_own_front(uint8_t *base);
/* That pages of the arena can be read and written from now on is told in the file. */
void heap_opened(void *address, size_t bytes);
/* And that they cannot. */
void heap_closed(void *address, size_t bytes);
/* Once, before the first arena: what changes mappings is ours from then on. */
void heap_watch_pages(void);
/* munmap() and madvise() of whoever is behind us: who keeps memory registered with a network has
 * its hooks there. By the system call before there is an arena. */
int heap_unmap_next(void *address, size_t bytes);
int heap_advise_next(void *address, size_t bytes, int advice);
/* Is this memory of ours certainly there, to be read and written? Only memory of the arena, the
 * program's own data and the stack of its main thread from `frame` on are known at all. */
bool heap_is_there(const void *address, size_t bytes, const void *frame);

/* ---- vm.c ------------------------------------------------------------------------------------ */

void heap_serve(const struct oci_vm_server *server);

/* ---- bind.c ---------------------------------------------------------------------------------- */

/* Once: mimalloc's madvise() is heap_madvise(), and its mprotect() heap_mprotect(). false: not
 * both. *range: its mmap() and munmap() are heap_mmap() and heap_munmap(), too. */
bool heap_bind(bool *range);
enum { HEAP_CALLS_MOST = 8 };
/* In all objects that are loaded, but mimalloc and ours; not in the one that holds others[i] the
 * call calls[i], which goes on there. */
void heap_bind_all(const struct oci_object_call *calls, void *const *others);

/* ---- range.c --------------------------------------------------------------------------------- */

/* With the arena locked, when it is made: the range are the bytes [begin, end) of it. false: it is
 * empty. */
bool heap_range_make(size_t begin, size_t end);
/* Of the range, closed: so many bytes, a multiple of 64 KiB. Or NULL. */
void *heap_range_take(size_t bytes);
/* A block that mimalloc has to ask the system for; perhaps it lies in the range. Or NULL. */
void *heap_range_alloc(size_t bytes, size_t align);
/* What mimalloc calls for mmap() and munmap(). */
void *heap_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset);
int heap_munmap(void *address, size_t bytes);

/* ---- huge.c ---------------------------------------------------------------------------------- */

/* Blocks of as many bytes may have large pages. */
#define HEAP_LARGE ((size_t)4 << 20)

/* When the arena is made, on whatever stack that is: what the memory group of the process has left,
 * of which blocks are backed. */
void heap_note_group(void);
/* A block of the arena that is about to be used: backed now, if it is large. */
void heap_back(void *address, size_t bytes);
/* The same for memory that mimalloc begins to use, if that is a segment or a second MiB of one. */
void heap_back_segment(void *address, size_t bytes);

#endif
