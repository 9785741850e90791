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

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#define OCI_ARENA_ABI 4
#define OCI_ARENA_SYMBOL "onecopy_arena_1"
#define OCI_ARENA_FIRST ((size_t)2 << 20)

#define OCI_ARENA_PAGE ((size_t)4096)
/* The name of its file, as a link in /proc/PID/fd has it. */
#define OCI_ARENA_NAME "onecopy-heap"
#define OCI_ARENA_LINK "/memfd:" OCI_ARENA_NAME " (deleted)"

/* How the file begins. Written before anybody can know of it, but for what is atomic. */
struct oci_arena_front {
	uint8_t nonce[16];
	uint32_t abi;  /* OCI_ARENA_ABI */
	int32_t pid;   /* whose it is; a child made without fork() has the same front */
	uint64_t base; /* as in struct oci_arena */
	uint64_t bytes;
	/*
	 * Held by the process's main thread from the start, and robust: when that thread ends, or
	 * becomes another program, the kernel takes its number out of the first word, before
	 * anybody can be told of it. So that word is `pid` as long as process_vm_readv() finds this
	 * memory behind the number, and no longer. The word is not `pid` where another thread made
	 * the arena.
	 */
	pthread_mutex_t owner;
	/* Not 0: pages of the arena may be something else by now, as the program has mapped over
	 * them or unmapped them. Atomic; set before that is done. */
	uint32_t foreign;
	/* Atomic words: bit N of them is set while page N of the arena can be read and written by
	 * its process. Cleared before that ends. One page after `front`, as many as it takes. */
	uint64_t open[] __attribute__((aligned(4096)));
};

/* Of a whole arena: the front and its bits. */
static inline size_t oci_arena_front_bytes(uint64_t bytes)
{
	return sizeof(struct oci_arena_front) + bytes / OCI_ARENA_PAGE / 8;
}

/* Is the process that has this arena still there, with this memory? */
static inline bool oci_arena_lives(const struct oci_arena_front *front)
{
	enum { THREAD = 0x3fffffff, DIED = 0x40000000 }; /* FUTEX_TID_MASK, FUTEX_OWNER_DIED */
	/* Acquire: pairs with what the kernel does at the thread's end, whose stores are there. */
	uint32_t word = __atomic_load_n((const uint32_t *)&front->owner, __ATOMIC_ACQUIRE);

	return (word & THREAD) == (uint32_t)front->pid && !(word & DIED);
}

/* Are these bytes, of which there is one at least, within the arena and open? */
static inline bool oci_arena_is_open(const struct oci_arena_front *front, uint64_t address,
				     size_t bytes)
{
	uint64_t offset = address - front->base, first, last;

	/* Relaxed, here and below: what the owner opened it did before the message that the caller
	 * has from it, which orders this. */
	if (offset >= front->bytes || bytes > front->bytes - offset ||
	    __atomic_load_n(&front->foreign, __ATOMIC_RELAXED))
		return false;
	first = offset / OCI_ARENA_PAGE;
	last = (offset + bytes - 1) / OCI_ARENA_PAGE;
	for (uint64_t word = first / 64; word <= last / 64; word++) {
		uint64_t wanted = ~0ull;

		if (word == first / 64)
			wanted &= ~0ull << first % 64;
		if (word == last / 64)
			wanted &= ~0ull >> (63 - last % 64);
		if (wanted & ~__atomic_load_n(&front->open[word], __ATOMIC_RELAXED))
			return false;
	}
	return true;
}

/*
 * What process_vm_readv() and process_vm_writev() of the program ask before they ask the kernel.
 * Thread safe.
 */
enum oci_vm_miss {
	OCI_VM_FORM,	/* flags, many pieces, or pieces that are empty */
	OCI_VM_OWN,	/* the caller's own memory is not known to be there */
	OCI_VM_NO_HEAP, /* the other process has no heap that could be mapped here */
	OCI_VM_OUTSIDE, /* its memory is not in its heap */
	OCI_VM_MISSES
};
#define OCI_VM_PIECES 16
struct oci_vm_server {
	/*
	 * Copies between the pieces, none of which is empty, of this process (all can be read, and
	 * to pull, written) and of process pid. Moves all bytes, which are as many as the shorter
	 * list has: their number. Or none, and -1 - why. Never changes errno.
	 */
	ssize_t (*copy)(pid_t pid, bool push, const struct iovec *local, unsigned int locals,
			const struct iovec *remote, unsigned int remotes);
	/* The kernel has moved so many bytes instead. */
	void (*passed)(enum oci_vm_miss why, size_t bytes);
};

/* Bytes of an arena, for statistics. */
struct oci_arena_counts {
	uint64_t used;	     /* backed by pages now */
	uint64_t most;	     /* and at most so far */
	uint64_t given_back; /* to the system, by holes in the file */
	uint64_t large;	     /* that were backed with large pages before they were touched */
};

struct oci_arena {
	uint32_t abi;	  /* OCI_ARENA_ABI */
	int32_t mimalloc; /* its version: 209 is 2.0.9 */
	int32_t fd;	  /* of the memfd; -1: there is none, `why` says why */
	uint8_t *base;	  /* where it is mapped here, NULL without one */
	uint64_t bytes;	  /* mapped and reserved, never more is used */
	uint8_t nonce[16];
	const char *why; /* a sentence with cause and remedy; "" */
	/* Thread safe. NULL when the arena is exhausted: the caller uses private memory. `align` is
	 * a power of two. */
	void *(*alloc)(size_t bytes, size_t align);
	void (*free)(void *memory);
	/* Thread safe. Other threads that allocate meanwhile make it a little less exact. */
	struct oci_arena_counts (*counts)(void);
	/* Preloaded: asks `server`, which lives for ever, from now on. */
	void (*serve)(const struct oci_vm_server *server);
};

/* Type of OCI_ARENA_SYMBOL. Makes the arena at the first call; never NULL. Thread safe. */
typedef const struct oci_arena *oci_arena_fn(void);

#endif
