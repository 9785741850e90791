/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pages of the arena given back, and pages about to be used.
 *
 * MADV_DONTNEED on a shared file lowers the process's RSS and frees nothing: the file keeps the
 * pages, and the next read finds the old bytes. For memory that came from malloc, a program (and
 * mimalloc) means "free it, zeros when I come back", and that is a hole in the file. So madvise()
 * is ours: whoever is preloaded gets mimalloc's calls as well, since they are bound by name.
 * So is mprotect(), by which mimalloc says that it begins to use memory.
 */
#include "dso.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE ((uintptr_t)4096)

#ifndef MADV_DONTNEED_LOCKED
#define MADV_DONTNEED_LOCKED 24
#endif

int heap_punch(void *address, size_t bytes)
{
	uintptr_t first = ((uintptr_t)address + PAGE - 1) & ~(PAGE - 1);
	uintptr_t last = ((uintptr_t)address + bytes) & ~(PAGE - 1);

	if (last <= first)
		return 0;
	/* The address, never the descriptor: that number may be another file's by now. */
	return syscall(SYS_madvise, first, last - first, MADV_REMOVE) ? -errno : 0;
}

OC_EXPORT int madvise(void *address, size_t bytes, int advice);

OC_EXPORT int madvise(void *address, size_t bytes, int advice)
{
	switch (advice) {
	case MADV_DONTNEED:
	case MADV_FREE:
	case MADV_DONTNEED_LOCKED:
		/* Locked pages cannot be punched: those calls fail as they would have, or drop the
		 * mapping as DONTNEED does. */
		if (heap_has(address, bytes) && !syscall(SYS_madvise, address, bytes, MADV_REMOVE))
			return 0;
		break;
	default:
		break;
	}
	return (int)syscall(SYS_madvise, address, bytes, advice);
}

OC_EXPORT int mprotect(void *address, size_t bytes, int protection);

OC_EXPORT int mprotect(void *address, size_t bytes, int protection)
{
	int result = (int)syscall(SYS_mprotect, address, bytes, protection);

	if (!result && protection == (PROT_READ | PROT_WRITE) && heap_has(address, bytes))
		heap_back(address, bytes);
	return result;
}
