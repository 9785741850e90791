/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every system call that onecopy makes, behind a name and with -errno returned.
 *
 * Nothing here keeps state. A function that can be refused by the system leaves the sentence to
 * its caller, who knows what it was for.
 */
#ifndef OC_OS_OS_H
#define OC_OS_OS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

/* memory.c ------------------------------------------------------------------------------- */

/*
 * An anonymous shared file of `bytes`, fallocated: no room is -ENOSPC, -ENOMEM or -EFBIG (past
 * ulimit -f) here and never SIGBUS, SIGXFSZ or the OOM killer later. memfd_create first; when the
 * kernel refuses it, shm_open, unlinked at once. Returns the descriptor (O_CLOEXEC), or -errno.
 */
int oci_os_shared_file(const char *name, size_t bytes);
/* Adds room for [offset, offset + bytes): 0 or -errno. */
int oci_os_shared_file_grow(int fd, size_t offset, size_t bytes);
/*
 * Opens descriptor `fd` of process `pid` through /proc/PID/fd (needs PTRACE_MODE_READ), which has
 * to be a regular file. Returns a descriptor of our own, or -errno; -EBADF: it is something else.
 */
int oci_os_open_peer_fd(pid_t pid, int fd);
/*
 * The first descriptor of process `pid` from `least` on that is a link with these words in
 * /proc/PID/fd: its number, or -errno (-ENOENT: it has none). It may have another process's open.
 */
int oci_os_find_peer_fd(pid_t pid, const char *link, int least);
/*
 * Maps [0, bytes) shared, read-write; neither in core dumps nor in children of fork(2). NULL and
 * *error = -errno.
 */
void *oci_os_map_shared(int fd, size_t bytes, int *error);
/*
 * The same of a peer's file, of which nothing is reserved, and nothing can be accessed before
 * oci_os_open_mapped(): mlockall() would fill it. NULL and *error = -errno.
 */
void *oci_os_map_peer(int fd, size_t bytes, int *error);
/* The beginning of a peer's file, to be read alone; else as above. */
void *oci_os_map_front(int fd, size_t bytes, int *error);
/* A page of zeros that is zeros again in each child, however it is made. NULL: the kernel (before
 * 4.14) has none. */
void *oci_os_page_of_process(void);
/* Whole pages of a peer's mapping: 0 or -errno. */
int oci_os_open_mapped(void *address, size_t bytes);
/* As if each page were written to; a hint. */
void oci_os_touch(void *address, size_t bytes);
/* What RLIMIT_AS leaves to this process; SIZE_MAX: no limit, or it cannot be told. */
size_t oci_os_address_space_left(void);
int oci_os_unmap(void *address, size_t bytes);
size_t oci_os_page_bytes(void);

/* range.c: what this process may read, or read and write. ----------------------------------- */
struct oci_os_range {
	uint64_t from, to;
};
/*
 * The mappings side by side that hold these bytes: 0; -EFAULT: there are none that allow it, or
 * another -errno: /proc does not tell. Takes some 5 us, before Linux 6.11 up to some hundreds.
 */
int oci_os_range(const void *address, size_t bytes, bool write, struct oci_os_range *range);
extern bool oci_os_range_asks; /* for tests: false: as before Linux 6.11 */

/* cma.c: single copies. They return the bytes moved (may be short), or -errno. ------------- */
ssize_t oci_os_vm_read(pid_t pid, const struct iovec *local, unsigned int local_count,
		       const struct iovec *remote, unsigned int remote_count);
ssize_t oci_os_vm_write(pid_t pid, const struct iovec *local, unsigned int local_count,
			const struct iovec *remote, unsigned int remote_count);

/* kmod.c: the kernel module's device, whose header says what errors mean. ------------------- */
struct oci_os_kmod_counters { /* of all processes, since it was loaded, or now */
	uint32_t version;
	uint64_t regions_created, regions_now, regions_gone, pages_pinned_now;
	uint64_t copies, copies_by_thread, bytes, failures, maps, maps_now;
	uint64_t copies_by_engine, bytes_by_engine, engines_busy, engine_failures;
	uint64_t channels; /* of DMA engines, that it may use */
};
/* A descriptor (O_CLOEXEC), or -errno: -ENOENT, the module is not loaded; -EPROTO, it is another
 * version. */
int oci_os_kmod_open(void);
int oci_os_kmod_count(int fd, struct oci_os_kmod_counters *counters); /* 0 or -errno */
/* So many status words of the descriptor, which the kernel writes. NULL and *error. */
const uint32_t *oci_os_kmod_words(int fd, unsigned int count, int *error);
/* A region of our memory, to be read, and written; its status word. 0 and the cookie, or -errno. */
int oci_os_kmod_register(int fd, uint64_t address, size_t bytes, bool may_write, uint32_t word,
			 uint64_t *cookie);
void oci_os_kmod_unregister(int fd, uint64_t cookie);
enum oci_os_kmod_flags {
	OCI_OS_KMOD_WRITE = 1, /* to the region; else from it */
	OCI_OS_KMOD_DMA = 2,   /* by a DMA engine, if one is free */
};
/* Between `bytes` of the region, from `offset` on, and the pieces, of which there are as many.
 * Bytes moved, from the front on, or -errno. */
ssize_t oci_os_kmod_copy(int fd, uint64_t cookie, uint64_t offset, const struct iovec *local,
			 unsigned int locals, size_t bytes, unsigned int flags);

/* pipe.c: between two processes; nothing here blocks. ---------------------------------------- */
/*
 * A pipe (O_CLOEXEC, O_NONBLOCK) that holds `bytes`, or as much as the system lets this user have:
 * ends[0] for reading, ends[1] for writing. 0 or -errno (-EMFILE, -ENFILE).
 */
int oci_os_pipe(int ends[2], size_t bytes);
/* How much it holds; 0: that is no pipe. */
size_t oci_os_pipe_room(int fd);
/* Which pipe a descriptor is: 0, or -errno; -EBADF also when it is something else. */
int oci_os_pipe_inode(int fd, uint64_t *inode);
/* The reading end of a peer's pipe, through /proc/PID/fd: a descriptor of our own, or -errno. */
int oci_os_open_peer_pipe(pid_t pid, int fd);
/*
 * vmsplice: attaches the pages under the pieces; they must stay as they are until they have been
 * read at the other end. writev: copies the pieces. readv: copies out. Bytes, from the front on, or
 * -errno; -EAGAIN: full, or empty; at most IOV_MAX pieces. Reading 0 bytes: no writer is left.
 * Attaching and writing raise SIGPIPE when no reading end is open anywhere.
 */
ssize_t oci_os_pipe_attach(int fd, const struct iovec *pieces, unsigned int count);
ssize_t oci_os_pipe_write(int fd, const struct iovec *pieces, unsigned int count);
ssize_t oci_os_pipe_read(int fd, const struct iovec *pieces, unsigned int count);

/* futex.c: shared between processes, on the low half of a flag. ------------------------------ */
/* Sleeps while *word == expected, at most timeout_ns; UINT64_MAX: for ever. 0 woken, -EAGAIN,
 * -ETIMEDOUT, -EINTR. */
int oci_os_futex_wait(uint32_t *word, uint32_t expected, uint64_t timeout_ns);
void oci_os_futex_wake(uint32_t *word, int count);

/* process.c ---------------------------------------------------------------------------------- */
/* All of a small (proc, sys) file, cut at bytes - 1 and ended with a 0: its length, or -errno. */
ssize_t oci_os_read_file(const char *path, char *text, size_t bytes);
/*
 * What tells a process from a later one with its number, and from the program that it may become by
 * exec: when it started, in clock ticks since boot, as the time namespace `clock` of who looked has
 * it; and a number made of where its program and its stack lie (the kernel tells who may trace it).
 * 0: not known.
 */
struct oci_os_image {
	uint64_t start, clock, program;
};
struct oci_os_image oci_os_image(pid_t pid);
/*
 * Has the process ended, reaped or not, or become another program? True only when that is certain:
 * false also when /proc is missing or hides it. Needs no descriptor, and keeps none: the program
 * may close what is not its own. A process whose main thread has left lives while it has others.
 */
bool oci_os_process_ended(pid_t pid, const struct oci_os_image *image);
/* Parent of a process, 0 when unknown. */
pid_t oci_os_parent(pid_t pid);
bool oci_os_dumpable(void);
/* The calling process is killed when its parent ends: 0 or -errno. */
int oci_os_die_with_parent(void);
/* PR_SET_PTRACER; tracer (pid_t)-1 means any. 0 or -errno (-EINVAL: no Yama in this kernel). */
int oci_os_set_ptracer(pid_t tracer);
/* kernel.yama.ptrace_scope: 0..3, or -ENOENT when this kernel has no Yama. */
int oci_os_yama_scope(void);
/* 16 bytes from the kernel's generator; 0 or -errno. */
int oci_os_random(void *bytes, size_t count);
/* Which node this process is on, and in which PID namespace of it: read once. */
struct oci_os_node {
	int error; /* 0, or -errno: it cannot be told */
	uint8_t boot_id[16];
	uint64_t pid_namespace; /* the inode of /proc/self/ns/pid */
};
const struct oci_os_node *oci_os_node(void);
/* The first alone, at less than half the price. 0 or -errno; read once. */
int oci_os_boot_id(uint8_t id[16]);

/* cpu.c -------------------------------------------------------------------------------------- */
/* CPUs that this process may use: the affinity mask, as a count. */
unsigned int oci_os_cpus_allowed(void);
/* CPUs of the machine that are online. */
unsigned int oci_os_cpus_online(void);
/* The mask itself, of a process (0: the calling thread), as a bitmap of up to `words` 64-bit words;
 * returns the words needed, 0: the kernel does not tell. */
unsigned int oci_os_affinity(pid_t pid, uint64_t *mask, unsigned int words);
/* Binds the calling thread to one CPU: 0 or -errno. For processes of our own alone. */
int oci_os_bind(unsigned int cpu);
/* Binds the calling thread to the CPUs of a bitmap: 0 or -errno. For threads of our own alone. */
int oci_os_bind_to(const uint64_t *mask, unsigned int words);
/* Sleeps of the calling thread end when they are to, not some 50 us later. */
void oci_os_sleep_exactly(void);
/* Bytes that can still be had without swapping, by the kernel's estimate and the cgroup's limit;
 * SIZE_MAX: neither says. */
size_t oci_os_memory_left(void);
/* CPU time granted by the cgroup's cpu.max (v2) or cfs quota (v1), in CPUs; 0 = no limit. */
double oci_os_cgroup_cpus(void);
/* Does a hypervisor say so? Where the processor cannot tell, no. */
bool oci_os_is_virtual(void);
void oci_os_yield(void);
/* How many times the calling thread lost its CPU to another one while it could run, also by
 * oci_os_yield(). */
long oci_os_preemptions(void);
/* Less than a second. */
void oci_os_sleep_us(uint32_t us);

#endif
