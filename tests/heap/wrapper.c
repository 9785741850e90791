/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A library that a user preloads to see what is mapped, as profilers, checkpointers and network
 * libraries do: it counts the calls of each name, and remembers what madvise() was told to forget.
 */
#include "wrapper.h"

#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
enum { TOLD = 4096 };

static struct heard heard;
static struct {
	char *first;
	size_t bytes;
} told[TOLD];
static int times;

EXPORT struct heard wrapper_heard(const void *page)
{
	heard.page = false;
	for (int i = 0; i < times && i < TOLD; i++)
		heard.page |= (const char *)page >= told[i].first &&
			      (const char *)page < told[i].first + told[i].bytes;
	return heard;
}

EXPORT void *mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
	heard.mmap++;
	return (void *)syscall(SYS_mmap, at, bytes, protection, flags, fd, offset);
}

EXPORT void *mmap64(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
	return mmap(at, bytes, protection, flags, fd, offset);
}

EXPORT int munmap(void *address, size_t bytes)
{
	heard.munmap++;
	return (int)syscall(SYS_munmap, address, bytes);
}

EXPORT int mprotect(void *address, size_t bytes, int protection)
{
	heard.mprotect++;
	return (int)syscall(SYS_mprotect, address, bytes, protection);
}

EXPORT void *mremap(void *address, size_t bytes, size_t new_bytes, int flags, ...)
{
	va_list more;
	void *to;

	va_start(more, flags);
	to = va_arg(more, void *);
	va_end(more);
	heard.mremap++;
	return (void *)syscall(SYS_mremap, address, bytes, new_bytes, flags, to);
}

EXPORT int madvise(void *address, size_t bytes, int advice)
{
	heard.madvise++;
	if (times < TOLD && (advice == MADV_DONTNEED || advice == MADV_FREE)) {
		told[times].first = address;
		told[times++].bytes = bytes;
	}
	return (int)syscall(SYS_madvise, address, bytes, advice);
}
