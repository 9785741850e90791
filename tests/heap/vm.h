/* SPDX-License-Identifier: BSD-3-Clause */
/* The other process of vm.c: this program again, which does what it is told through a pipe. */
#ifndef HEAP_VM_H
#define HEAP_VM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

enum { VM_BYTES = 64 << 10, VM_LARGE_BYTES = 144 << 20 };

/* Kinds of memory, VM_BYTES each: of malloc, static, a mapping; and from VM_HOLED on those in which
 * pages are forbidden or missing: of malloc, of a mapping. VM_END: the end of the arena. */
enum { VM_HEAP, VM_DATA, VM_MAPPING, VM_HOLED, VM_HOLED_MAPPING, VM_PLACES, VM_END = VM_PLACES };

/* What it does with VM_HEAP. Those below VM_LARGE answer 0, those from VM_FORK on a process. */
enum vm_action {
	VM_DONTNEED,	/* madvise(): all of it */
	VM_REWRITE,	/* another pattern */
	VM_FREE_ALL,	/* free() */
	VM_FORBID,	/* mprotect(), its third page: nothing */
	VM_READ_ONLY,	/* reading alone */
	VM_ALLOW,	/* all */
	VM_UNMAP,	/* munmap(), its third page */
	VM_MAP_OVER,	/* private memory with other bytes in place of it */
	VM_ATTACH_OVER, /* a segment of System V's */
	VM_REAP,	/* ends its child */
	VM_OPEN_OURS,	/* has our heap's file open, at a lower number than its own */
	VM_HIDE,	/* only who may trace all reads its memory from now on */
	VM_EXEC,	/* becomes another program: this one, with places of its own */
	VM_LARGE,	/* where VM_LARGE_BYTES of malloc are */
	VM_FORK,	/* a child, whose copy has other bytes */
	VM_FORK_RAW,	/* by the system call */
	VM_VFORK,	/* a child that shares all of its memory */
};

struct vm_peer {
	pid_t pid;
	uint8_t value; /* of its pattern */
	uint64_t place[VM_PLACES + 1];
	int to, from;
};

/* NULL: it cannot be. */
struct vm_peer *vm_peer_start(void);
struct vm_peer *vm_peer_start_without_heap(void);
/* With that number. */
struct vm_peer *vm_peer_start_as(pid_t pid);
/* The answer. */
int64_t vm_peer_do(struct vm_peer *peer, enum vm_action action);
void vm_peer_end(struct vm_peer *peer);
/* By a signal; `zombie`: the caller reaps it. */
void vm_peer_kill(struct vm_peer *peer, bool zombie);

bool vm_is_pattern(const uint8_t *bytes, uint8_t value);
/* The kinds of memory, in this process. */
void vm_places_make(uint8_t *place[VM_PLACES]);
/* The other process. */
int vm_peer_main(int argc, char **argv);

#endif
