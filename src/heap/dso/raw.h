/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls of the kernel that nobody is in front of.
 *
 * UCX writes a jump over the first bytes of mmap(), munmap(), mremap() and madvise() (libucm's
 * "bistro" hooks), profilers have an open() and a close() of their own, and all of them keep lists
 * in memory of malloc. Around a fork that memory may be missing, and what is wanted of the kernel
 * is how it comes back. As the C library's otherwise: -1 and errno. x86-64's struct stat is the
 * kernel's.
 *
 * raw_call() gives -errno and leaves errno alone, and so does raw_mmap(): errno is memory of the
 * thread, which may lie in what a child of fork() has to map first.
 */
#ifndef OC_HEAP_DSO_RAW_H
#define OC_HEAP_DSO_RAW_H

#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static inline long raw_call(long number, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return result;
}

/* A sentence on standard error. */
static inline void raw_say(const char *text)
{
	size_t bytes = 0;

	while (text[bytes])
		bytes++;
	raw_call(SYS_write, STDERR_FILENO, (long)text, (long)bytes, 0, 0, 0);
}

static inline void *raw_mmap(void *at, size_t bytes, int protection, int flags, int fd)
{
	long result = raw_call(SYS_mmap, (long)at, (long)bytes, protection, flags, fd, 0);

	return result < 0 && result > -4096 ? MAP_FAILED : (void *)result;
}

/* The same, with errno. */
static inline void *raw_mmap_errno(void *at, size_t bytes, int protection, int flags, int fd)
{
	return (void *)syscall(SYS_mmap, at, bytes, protection, flags, fd, 0);
}

static inline int raw_munmap(void *at, size_t bytes)
{
	return (int)syscall(SYS_munmap, at, bytes);
}

/* A second mapping of what lies at `at`, which is shared. */
static inline void *raw_map_again(void *at, size_t bytes)
{
	return (void *)syscall(SYS_mremap, at, 0, bytes, MREMAP_MAYMOVE);
}

static inline int raw_mprotect(void *at, size_t bytes, int protection)
{
	return (int)syscall(SYS_mprotect, at, bytes, protection);
}

static inline int raw_madvise(void *at, size_t bytes, int advice)
{
	return (int)syscall(SYS_madvise, at, bytes, advice);
}

static inline int raw_fstat(int fd, struct stat *status)
{
	return (int)syscall(SYS_fstat, fd, status);
}

static inline ssize_t raw_pread(int fd, void *to, size_t bytes, size_t from)
{
	return syscall(SYS_pread64, fd, to, bytes, from);
}

static inline off_t raw_lseek(int fd, off_t offset, int whence)
{
	return syscall(SYS_lseek, fd, offset, whence);
}

static inline int raw_close(int fd)
{
	return (int)syscall(SYS_close, fd);
}

#endif
