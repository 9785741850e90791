/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR BSD-3-Clause */
/* Dual BSD/GPL. The interface of /dev/onecopy: memory of one process copied by others, and graphs
 * that communicate over TCP while the process computes. */
#ifndef _UAPI_LINUX_ONECOPY_H
#define _UAPI_LINUX_ONECOPY_H

#include <linux/ioctl.h>
#include <linux/types.h>

/*
 * A process makes a region of pieces of its memory, whose pages are pinned once. It tells others
 * the region's cookie, by which they copy from it or to it. On 64-bit kernels, to 64-bit processes.
 *
 * Each structure begins with its size as the caller knows it. A longer one than the kernel knows is
 * taken if the rest is zero (else E2BIG) and it is not longer than a page. A shorter one than here
 * is not valid, but for the counters, of which it gets the first; what later versions add is zero
 * where it is not there. What is named reserved or said to be out, and what a call has no use for,
 * must be zero.
 *
 * Errors, of all calls (-1 and errno):
 *
 *   E2BIG	the structure is longer than this kernel's, and the rest is not zero; a graph has
 *		more nodes, edges, peers or buffers than it may have
 *   EACCES	the region is another user's, or not made for this direction, or for one copy alone;
 *		or another file's, which alone may end it
 *   EAGAIN	mlockall(MCL_FUTURE) holds, and RLIMIT_MEMLOCK allows no mapping
 *   EBADF	a descriptor is not open
 *   EBUSY	the status word has a copy under way; the file has a graph, or it is under way
 *   EEXIST	something lies where the region was to be mapped
 *   EFAULT	memory of the caller cannot be read or written; nothing was copied, unless it is the
 *		structure itself that cannot be written. A region to be written does not take shared
 *		mappings of files on disks
 *   EINTR	a fatal signal; nothing was copied
 *   EINVAL	a flag, a size, a count, a descriptor or a reserved field is not valid
 *   ENFILE	the system has no more open files, one of which each mapping takes
 *   ENOENT	no region has this cookie: destroyed, used up, or gone with its memory
 *   ENOMEM	no memory, or no addresses; RLIMIT_MEMLOCK allows no more pinned pages, or
 *		RLIMIT_AS no mapping
 *   ENOTCONN	a socket of a graph is not connected
 *   ENOTSOCK	it is no socket
 *   ENOTTY	no such call
 *   EOPNOTSUPP	memory that may not be pinned for long, as that of a file on DAX; a graph has a
 *		CALC that the kernel does not compute
 *   EPERM	nothing may be mapped at this address (vm.mmap_min_addr)
 *   EPROTONOSUPPORT	a socket of a graph is not TCP over IP
 *   ERANGE	the region does not have these bytes
 *   ESTALE	the region's memory is gone, or that of a graph's buffers
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
/* The first copy ends it, also one that breaks off; one that copies nothing does not. */
#define ONECOPY_REGION_SINGLE_USE 0x4
/* Members of the maker's group may use it, not its user alone. */
#define ONECOPY_REGION_GROUP 0x8

/*
 * The region ends by ONECOPY_REGION_DESTROY, with the file that it was made by, with the process
 * whose memory it is, and when any of that memory is unmapped, remapped or given back (munmap,
 * mremap, MADV_DONTNEED), or written for the first time of all. Word 0 of the file's status words,
 * and the region's own, count how often that happened, or may have: a copy finds out (ESTALE, or
 * later ENOENT). A copy that is under way, or asynchronous and waits for its turn, goes on with the
 * pages as they were: also behind a ONECOPY_REGION_DESTROY, which waits for none.
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
/* A thread of the kernel, as a rule on the node of the pages that are written, copies when it has
 * done what was asked for before by the same file. The caller sleeps; who is killed meanwhile waits
 * only for a copy that has begun. */
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
 * have this sum, or the region local_cookie from local_offset on. What the caller copies itself
 * between a region and its pieces (no flag, or WRITE alone) is at most INT_MAX bytes, less the last
 * page. Copies of one file that are asynchronous are made and end in their order.
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
 * SIGBUS. The ONECOPY_REGION_DESTROY that ends it returns when that is so. Where the memory went
 * (munmap() of the owner's, its end), it is so a moment later; until then the mapping shows the old
 * pages, which are used for nothing else meanwhile.
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

/* An eventfd that each end of an asynchronous copy, of a graph and a lane, and of a region with its
 * memory, adds 1 to. */
struct onecopy_notify {
	__u32 size;
	__s32 fd; /* -1: none any more */
};

/* Of the module, all users together, since it was loaded, but what is now. */
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

/*
 * A graph: what this process does in an exchange with others, while it computes. Nodes send bytes
 * to a peer, receive some from one, or compute (CALC), and edges say what must be over before what
 * begins. All SENDs to a peer happen in the order of the nodes, and so do all RECVs from one: such
 * a row is a lane. Nodes that neither orders go on independently. The kernel moves what can be
 * moved as soon as a socket has bytes or room, in threads of its own, whatever the process does.
 *
 * The array that says so has no pointers: a head, the nodes, then for each node in turn the
 * numbers (__u32) of the nodes that must be over first, each smaller than its own, so there is no
 * cycle. It is copied, and all of it is checked.
 */
#define ONECOPY_GRAPH_MAGIC 0x4443414b
#define ONECOPY_GRAPH_VERSION 1

struct onecopy_graph_head {
	__u32 magic;
	__u32 version;
	__u32 nodes;
	__u32 edges;
	__u32 reserved[4];
};

/* kind */
#define ONECOPY_GRAPH_SEND 0
#define ONECOPY_GRAPH_RECV 1
#define ONECOPY_GRAPH_CALC 2

struct onecopy_graph_node {
	__u8 kind;
	__u8 op;   /* of a CALC, as all that is not said of another */
	__u8 type; /* signed and unsigned integers of 8, 16, 32, 64 bits: 0 to 7; float; double */
	__u8 reserved;
	__u32 peer;   /* of SEND and RECV: a number of a socket */
	__u32 buffer; /* of all: what is sent, received into, or combined into */
	__u32 from;
	__u64 offset; /* of all: in `buffer`; a multiple of the type's size, as are addresses */
	__u64 from_offset;
	__u64 count;	 /* of bytes; of a CALC: of elements; never 0 */
	__u32 edges_end; /* of all: its edges end here, and begin where those before it end */
	__u32 reserved_too;
};

/*
 * buffer[i] = from[i] (op) buffer[i]. Sums and products wrap; and, or, exclusive or are bitwise.
 * Floating point is not computed in the kernel, nor what the program has more operations for
 * (EOPNOTSUPP): COPY is for any type, but of ranges of which the target begins inside the source.
 */
#define ONECOPY_CALC_COPY 0
#define ONECOPY_CALC_SUM 1
#define ONECOPY_CALC_PROD 2
#define ONECOPY_CALC_MIN 3
#define ONECOPY_CALC_MAX 4
#define ONECOPY_CALC_AND 5
#define ONECOPY_CALC_OR 6
#define ONECOPY_CALC_XOR 7

#define ONECOPY_GRAPH_NODES_MOST 65536
#define ONECOPY_GRAPH_EDGES_MOST 262144
#define ONECOPY_GRAPH_PEERS_MOST 1024
#define ONECOPY_GRAPH_BUFFERS_MOST 64

/*
 * The file's graph; it has one, until it is closed. Sockets are connected TCP ones, by their
 * descriptors, -1 where there is none; the kernel holds them, and others may go on using them. The
 * buffers that its nodes use are pinned, as regions are; when such memory goes, the graph fails.
 *
 * Lanes are numbered in the order of their first nodes, and have a word each, `lanes` and those
 * behind it. The kernel moves a lane when the program has set its word to ONECOPY_LANE_GRANTED, so
 * that others may use the stream before, and sets it to ONECOPY_LANE_OVER when the last of its
 * nodes is over.
 */
struct onecopy_graph_create {
	__u32 size;
	__u32 flags; /* reserved */
	__u64 packed;
	__u64 packed_bytes;
	__u64 sockets; /* __s32 * */
	__u64 buffers; /* struct onecopy_piece * */
	__u32 socket_count;
	__u32 buffer_count;
	__u32 word;  /* its status: PENDING from ISSUE on, then DONE or FAILED */
	__u32 lanes; /* the first word of its lanes; both from 1 on */
};

#define ONECOPY_LANE_GRANTED 1
#define ONECOPY_LANE_OVER 2

/*
 * ISSUE begins it, and returns at once. LOOK: lanes were granted since. CANCEL: when it returns no
 * buffer is touched any more. A graph that fails shuts its sockets down, as bytes are lost and
 * peers must not wait; the word of the lane that failed has the error, too, as its status has it
 * (ECONNRESET where the peer has closed it; ECANCELED). What is cancelled, or closed, fails so.
 */
#define ONECOPY_GRAPH_ISSUE 1
#define ONECOPY_GRAPH_LOOK 2
#define ONECOPY_GRAPH_CANCEL 3

struct onecopy_graph_run {
	__u32 size;
	__u32 what;
};

#define ONECOPY_VERSION 1

#define ONECOPY_REGION_CREATE _IOWR(0xD7, 1, struct onecopy_region_create)
#define ONECOPY_REGION_DESTROY _IOW(0xD7, 2, struct onecopy_region_destroy)
#define ONECOPY_COPY _IOWR(0xD7, 3, struct onecopy_copy)
#define ONECOPY_NOTIFY _IOW(0xD7, 4, struct onecopy_notify)
#define ONECOPY_COUNTERS _IOWR(0xD7, 5, struct onecopy_counters)
#define ONECOPY_MAP _IOWR(0xD7, 6, struct onecopy_map)
#define ONECOPY_GRAPH_CREATE _IOW(0xD7, 7, struct onecopy_graph_create)
#define ONECOPY_GRAPH_RUN _IOW(0xD7, 8, struct onecopy_graph_run)

/*
 * mmap() of the file, from 0 on, shared: its status words, __u32 each. The first call decides how
 * many there are; further ones may not ask for more.
 */
#define ONECOPY_STATUS_BYTES_MOST 65536

#endif
