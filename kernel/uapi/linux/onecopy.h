/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR BSD-3-Clause */
/* Dual BSD/GPL. The interface of /dev/onecopy: memory of one process copied by others. */
#ifndef _UAPI_LINUX_ONECOPY_H
#define _UAPI_LINUX_ONECOPY_H

#include <linux/ioctl.h>
#include <linux/types.h>

/*
 * A process makes a region of pieces of its memory, whose pages are pinned once. It tells others
 * the region's cookie, by which they copy from it or to it. On 64-bit kernels, to 64-bit processes.
 *
 * Each structure begins with its size as the caller knows it. A longer one than the kernel knows is
 * taken if the rest is zero (else E2BIG), of a shorter one the rest counts as zero. What is named
 * reserved, and what a call has no use for, must be zero.
 *
 * Errors, of all calls (-1 and errno):
 *
 *   E2BIG	the structure is longer than this kernel's, and the rest is not zero
 *   EACCES	the region is another user's, or not made for this direction, or for one copy alone
 *   EBUSY	the status word has a copy under way
 *   EEXIST	something lies where the region was to be mapped
 *   EFAULT	memory of the caller cannot be read or written; nothing was copied
 *   EINTR	a fatal signal; nothing was copied
 *   EINVAL	a flag, a size, a count or a reserved field is not valid
 *   ENOENT	no region has this cookie: destroyed, used up, or gone with its memory
 *   ENOMEM	no memory, or no addresses; RLIMIT_MEMLOCK allows no more pinned pages, or
 *		RLIMIT_AS no mapping
 *   ENOTTY	no such call
 *   EPERM	nothing may be mapped at this address (vm.mmap_min_addr)
 *   ERANGE	the region does not have these bytes
 *   ESTALE	the region's memory is gone
 */

/* Of iovec's shape. */
struct onecopy_piece {
	__u64 addr;
	__u64 len;
};

#define ONECOPY_PIECES_MOST 1024 /* UIO_MAXIOV */

/* Others may copy from it; to it. One of them at least. */
#define ONECOPY_REGION_READ 0x1
#define ONECOPY_REGION_WRITE 0x2
/* The first copy ends it. */
#define ONECOPY_REGION_SINGLE_USE 0x4
/* Members of the maker's group may use it, not its user alone. */
#define ONECOPY_REGION_GROUP 0x8

/*
 * The region ends by ONECOPY_REGION_DESTROY, with the file that it was made by, with the process
 * whose memory it is, and when any of that memory is unmapped, remapped or given back (munmap,
 * mremap, MADV_DONTNEED), or written for the first time of all. Word 0 of the file's status words,
 * and the region's own, count how often that happened, or may have: a copy finds out (ESTALE, or
 * later ENOENT). A copy that is under way goes on with the pages as they were.
 */
struct onecopy_region_create {
	__u32 size;
	__u32 flags;
	__u64 pieces; /* struct onecopy_piece * */
	__u32 piece_count;
	__u32 word;   /* the number of its own status word, from 1 on; 0: none */
	__u64 cookie; /* out; never 0 */
};

struct onecopy_region_destroy {
	__u32 size;
	__u32 reserved;
	__u64 cookie;
};

/* From the caller to the region; else from the region to the caller. */
#define ONECOPY_COPY_WRITE 0x1
/* The caller's side is a region, too. */
#define ONECOPY_COPY_REGION 0x2
/* A thread of the kernel on the node of the pages that are written copies. The caller sleeps. */
#define ONECOPY_COPY_KTHREAD 0x4
/* The same, and the call returns at once; the status word tells of the end. */
#define ONECOPY_COPY_ASYNC 0x8
/* A DMA engine copies, where one is free (the module's parameter dma_channels); else, and where it
 * fails, the CPU does. Caller or thread sleeps meanwhile. Source and target may not overlap. */
#define ONECOPY_COPY_DMA 0x10

/* What a status word is: at first zero, and the caller's to set to zero again. */
#define ONECOPY_STATUS_PENDING 1
#define ONECOPY_STATUS_DONE 2
#define ONECOPY_STATUS_FAILED 0x80000000 /* with the errno below */

/*
 * Copies `length` bytes between the region from `offset` on and the caller's pieces, whose lengths
 * have this sum, or the region local_cookie from local_offset on. Copies of one file that are
 * asynchronous are made and end in their order.
 */
struct onecopy_copy {
	__u32 size;
	__u32 flags;
	__u64 cookie;
	__u64 offset;
	__u64 length;
	__u64 pieces; /* struct onecopy_piece *; with REGION 0 */
	__u32 piece_count;
	__u32 status; /* with ASYNC: the number of a word, from 1 on */
	__u64 local_cookie;
	__u64 local_offset;
	/* out: less than length if memory of the caller could not be used further on */
	__u64 copied;
};

/* To be written, too; else mprotect() does not make it so. */
#define ONECOPY_MAP_WRITE 0x1

/*
 * Maps pages of a region into the caller's memory, until munmap(). Offset and length are of whole
 * pages, as are all pieces of the region, which lie one behind the other there. The region must be
 * for reading, and with WRITE for both. No page is pinned for it: it needs none of RLIMIT_MEMLOCK.
 *
 * When the region ends, the mapping stays and has no pages any more: an access is answered with
 * SIGBUS. ONECOPY_REGION_DESTROY returns when that is so. Where the memory went (munmap() of the
 * owner's, its end), it is so a moment later; until then the mapping shows the old pages, which are
 * used for nothing else meanwhile.
 *
 * A child does not inherit the mapping. It cannot be made longer, executed, pinned (a region of it,
 * O_DIRECT) or read by process_vm_readv().
 */
struct onecopy_map {
	__u32 size;
	__u32 flags;
	__u64 cookie;
	__u64 offset;
	__u64 length;
	__u64 addr; /* in: where, nothing lies there; 0: the kernel chooses. out: where it is */
};

/* An eventfd that each end of an asynchronous copy, and of a region with its memory, adds 1 to. */
struct onecopy_notify {
	__u32 size;
	__s32 fd; /* -1: none any more */
};

/* Of the module, since it was loaded, but what is now. */
struct onecopy_counters {
	__u32 size;
	__u32 version; /* out: ONECOPY_VERSION */
	__u64 regions_created;
	__u64 regions_now;
	__u64 regions_gone; /* that ended with their memory or process */
	__u64 pages_pinned_now;
	__u64 copies;
	__u64 copies_by_thread; /* of these */
	__u64 bytes;
	__u64 failures; /* copies that were refused or broke off */
	__u64 maps;
	__u64 maps_now;
	__u64 copies_by_engine; /* in part at least */
	__u64 bytes_by_engine;
	__u64 engines_busy; /* copies that found none free, or for which one had no more place */
	__u64 engine_failures;
	__u64 channels; /* that may be used now: the parameter dma_channels; of 0 no wish is granted
			 */
};

#define ONECOPY_VERSION 1

#define ONECOPY_REGION_CREATE _IOWR(0xD7, 1, struct onecopy_region_create)
#define ONECOPY_REGION_DESTROY _IOW(0xD7, 2, struct onecopy_region_destroy)
#define ONECOPY_COPY _IOWR(0xD7, 3, struct onecopy_copy)
#define ONECOPY_NOTIFY _IOW(0xD7, 4, struct onecopy_notify)
#define ONECOPY_COUNTERS _IOWR(0xD7, 5, struct onecopy_counters)
#define ONECOPY_MAP _IOWR(0xD7, 6, struct onecopy_map)

/*
 * mmap() of the file, from 0 on, shared: its status words, __u32 each. The first call decides how
 * many there are; further ones may not ask for more.
 */
#define ONECOPY_STATUS_BYTES_MOST 65536

#endif
