/* SPDX-License-Identifier: BSD-3-Clause */
#include "copy/vm.h"

#include <errno.h>

#include "base/log.h"
#include "base/options.h"
#include "copy/found.h"
#include "copy/invite.h"
#include "copy/layout.h"
#include "heap/heap.h"
#include "os/object.h"

/* Threads of one process count together; nothing is ordered by it. */
static struct oci_map_misses mapped, missed[OCI_VM_MISSES], shared;
static uint64_t shared_pushed;

static void count(struct oci_map_misses *what, size_t bytes)
{
	__atomic_fetch_add(&what->copies, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&what->bytes, bytes, __ATOMIC_RELAXED);
}

static struct oci_map_misses look(const struct oci_map_misses *what)
{
	return (struct oci_map_misses){
		.copies = __atomic_load_n(&what->copies, __ATOMIC_RELAXED),
		.bytes = __atomic_load_n(&what->bytes, __ATOMIC_RELAXED),
	};
}

/* All of a list, though the other one may be shorter: the kernel fails where it gets to. */
static bool can_reach(const struct oci_found *found, struct oci_mapping *mapping,
		      const struct iovec *remote, unsigned int remotes)
{
	for (unsigned int i = 0; i < remotes; i++) {
		uint64_t address = (uintptr_t)remote[i].iov_base;

		if (!oci_found_has(found, address, remote[i].iov_len) ||
		    !oci_map_at(mapping, address, remote[i].iov_len))
			return false;
	}
	return true;
}

/* In one call the kernel moves so many bytes at most (MAX_RW_COUNT). */
#define KERNEL_MOST ((size_t)0x7ffff000)

static ssize_t copy(pid_t pid, bool push, const struct iovec *local, unsigned int locals,
		    const struct iovec *remote, unsigned int remotes)
{
	struct oci_mapping *mapping;
	struct oci_found *found = oci_found_get(pid, &mapping);
	size_t mine = oci_pieces_bytes(local, locals), theirs = oci_pieces_bytes(remote, remotes);
	size_t moved;

	if (!found)
		return -1 - OCI_VM_NO_HEAP;
	if (mine > KERNEL_MOST && theirs > KERNEL_MOST) {
		oci_found_put(found);
		return -1 - OCI_VM_FORM;
	}
	if (!can_reach(found, mapping, remote, remotes)) {
		oci_found_put(found);
		return -1 - OCI_VM_OUTSIDE;
	}
	moved = oci_map_move(mapping, push ? OCI_PUSH : OCI_PULL, local, locals, remote, remotes,
			     mine < theirs ? mine : theirs);
	oci_found_put(found);
	/* The owner has mapped over its heap just now. */
	if (!moved)
		return -1 - OCI_VM_OUTSIDE;
	count(&mapped, moved);
	return (ssize_t)moved;
}

static void passed(enum oci_vm_miss why, size_t bytes)
{
	count(&missed[why], bytes);
}

static bool serves;

void oci_vm_serve(void)
{
	static const struct oci_vm_server server = { copy, passed };
	const struct oci_options *options = oci_options();
	const struct oci_arena *arena;

	if (!options->messages || !oci_map_is_allowed())
		return;
	arena = oci_arena_self(false);
	if (!arena || arena->fd < 0)
		return;
	if (oci_found_start()) {
		oci_info("the MPI's messages go as without the shared heap: the kernel has no "
			 "memory that children do not inherit (MADV_WIPEONFORK, Linux 4.14)");
		return;
	}
	arena->serve(&server);
	serves = true;
}

/* ---- both ends ------------------------------------------------------------------------------- */

/* From here on both ends copy. */
#define SHARE_LEAST ((size_t)64 << 10)
#define SHARE_END (KERNEL_MOST + 1)
/* The kernel refuses a range that ends in its own part of the address space before it moves any. */
#define ADDRESS_END ((uint64_t)1 << 47)

/* To be invited takes a segment, 0.3 ms: what both ends save of so many bytes. A program that reads
 * less gains nothing. */
#define FEW_BYTES ((uint64_t)8 << 20)
static uint64_t read_alone; /* atomic, a hint; while there were few */

static bool were_few(size_t bytes)
{
	uint64_t now = oci_load_relaxed(&read_alone);

	if (now >= FEW_BYTES)
		return false;
	now += bytes;
	oci_store_relaxed(&read_alone, now);
	return now < FEW_BYTES;
}

static bool is_ours(uint64_t address, size_t bytes)
{
	return address < ADDRESS_END && bytes <= ADDRESS_END - address;
}

/* process_vm_readv() of an MPI, which has valid lists. */
static ssize_t read_shared(pid_t pid, const struct iovec *local, unsigned long locals,
			   const struct iovec *remote, unsigned long remotes, unsigned long flags)
{
	ssize_t moved = -EAGAIN;
	int error = errno;
	size_t pushed;

	if (!flags && locals == 1 && remotes == 1 && local->iov_len >= SHARE_LEAST &&
	    local->iov_len < SHARE_END && local->iov_len == remote->iov_len &&
	    is_ours((uintptr_t)local->iov_base, local->iov_len) &&
	    is_ours((uintptr_t)remote->iov_base, remote->iov_len) && !were_few(local->iov_len))
		moved = oci_invite_read(pid, local->iov_base, (uintptr_t)remote->iov_base,
					local->iov_len, &pushed);
	errno = error;
	if (moved == -EAGAIN)
		return process_vm_readv(pid, local, locals, remote, remotes, flags);
	if (moved < 0) {
		errno = (int)-moved;
		return -1;
	}
	if (pushed) {
		count(&shared, (size_t)moved);
		__atomic_fetch_add(&shared_pushed, pushed, __ATOMIC_RELAXED);
	}
	return moved;
}

bool oci_vm_share(const char *library, uint32_t node_ranks)
{
	const struct oci_options *options = oci_options();

	if (!options->messages || serves || node_ranks < 2 || options->mechanism == OCI_WAY_SHM ||
	    !oci_object_bind_in(library, "process_vm_readv", (void *)read_shared))
		return false;
	oci_invite_allow(node_ranks);
	return true;
}

struct oci_map_misses oci_vm_shared(uint64_t *pushed)
{
	*pushed = __atomic_load_n(&shared_pushed, __ATOMIC_RELAXED);
	return look(&shared);
}

struct oci_map_misses oci_vm_mapped(void)
{
	return look(&mapped);
}

struct oci_map_misses oci_vm_missed(enum oci_vm_miss why)
{
	return look(&missed[why]);
}

const char *oci_vm_miss_text(enum oci_vm_miss why)
{
	static const char *const text[] = {
		[OCI_VM_FORM] = "the MPI asked for something else than to copy a few pieces",
		[OCI_VM_OWN] = "this rank's buffer is neither memory of malloc, static data of the "
			       "program nor the main thread's stack",
		[OCI_VM_NO_HEAP] = "the other rank has no shared heap, or it could not be mapped",
		[OCI_VM_OUTSIDE] = "the other rank's buffer is not memory of malloc (stack, static "
				   "data, another mapping), or the heap was full",
	};

	return text[why];
}
