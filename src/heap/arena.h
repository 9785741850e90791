/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The shared arena of a process: memory that peers can map, because it is one memfd.
 *
 * libonecopy-heap.so makes it and gives it out; it is a library of its own, since it replaces
 * malloc. The engine finds it in the process by OCI_ARENA_SYMBOL (dlsym), or loads it when somebody
 * asks for shared memory (oc_alloc). It is told to nobody by the heap: the engine publishes it.
 *
 * Base and bytes never change while the process lives; a child of fork(2) has none until it makes
 * its own, or has a file of its own, with another nonce, at the same place from the start. The file
 * is as long as the arena from the start and never shrinks, so a mapping of it never faults; what
 * is freed is punched out and reads as zeros. Bytes [0, OCI_ARENA_FIRST) are a header, which begins
 * with the nonce.
 */
#ifndef OC_HEAP_ARENA_H
#define OC_HEAP_ARENA_H

#include <stddef.h>
#include <stdint.h>

#define OCI_ARENA_ABI 2
#define OCI_ARENA_SYMBOL "onecopy_arena_1"
#define OCI_ARENA_FIRST ((size_t)2 << 20)

/* Bytes of an arena, for statistics. */
struct oci_arena_counts {
	uint64_t used;	     /* backed by pages now */
	uint64_t most;	     /* and at most so far */
	uint64_t given_back; /* to the system, by holes in the file */
	uint64_t large;	     /* that were backed with large pages before they were touched */
};

struct oci_arena {
	uint32_t abi;	/* OCI_ARENA_ABI */
	int32_t fd;	/* of the memfd; -1: there is none, `why` says why */
	uint8_t *base;	/* where it is mapped here, NULL without one */
	uint64_t bytes; /* mapped and reserved, never more is used */
	uint8_t nonce[16];
	const char *why; /* a sentence with cause and remedy; "" */
	/* Thread safe. NULL when the arena is exhausted: the caller uses private memory. `align` is
	 * a power of two. */
	void *(*alloc)(size_t bytes, size_t align);
	void (*free)(void *memory);
	/* Thread safe. Other threads that allocate meanwhile make it a little less exact. */
	struct oci_arena_counts (*counts)(void);
};

/* Type of OCI_ARENA_SYMBOL. Makes the arena at the first call; never NULL. Thread safe. */
typedef const struct oci_arena *oci_arena_fn(void);

#endif
