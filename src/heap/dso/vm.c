/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * process_vm_readv() and process_vm_writev() of the program.
 *
 * They are how MPIs move large messages on a node. Where the other process's memory lies in its
 * shared heap, which is mapped here, the engine copies by loads and stores (src/copy/vm.c);
 * everything else is the kernel's, as it was asked. An engine is asked only for what cannot fault
 * here: where the kernel would say EFAULT of our own memory, it is the kernel that says so.
 *
 * Nothing here allocates or waits; the engine's first look at a process does (src/copy/found.c).
 */
#include "dso.h"
#include "raw.h"

#include <sys/uio.h>

/* Of a frame above the caller's: what lies this near above it is stack. */
#define FRAMES ((uintptr_t)16 << 10)

static _Atomic(const struct oci_vm_server *) server;

void heap_serve(const struct oci_vm_server *new)
{
	/* Release: pairs with the acquire in move(). */
	atomic_store_explicit(&server, new, memory_order_release);
}

/* The list itself: mostly on the stack of some thread, where its thread pointer lies at the end. */
static bool list_is_there(const struct iovec *list, unsigned long count, const void *frame)
{
	uintptr_t begin = (uintptr_t)list, at = (uintptr_t)frame, end = at + FRAMES;
	uintptr_t top = (uintptr_t)__builtin_thread_pointer();

	if (top > at && top < end)
		end = top;
	if (begin >= at && begin < end && count * sizeof(*list) <= end - begin)
		return true;
	return heap_is_there(list, count * sizeof(*list), frame);
}

/* Is it what the engine takes? Else why not. */
static int check(const struct iovec *local, unsigned long locals, const struct iovec *remote,
		 unsigned long remotes, unsigned long flags, const void *frame)
{
	if (flags || locals - 1 >= OCI_VM_PIECES || remotes - 1 >= OCI_VM_PIECES)
		return -1 - OCI_VM_FORM;
	if (!list_is_there(local, locals, frame) || !list_is_there(remote, remotes, frame))
		return -1 - OCI_VM_OWN;
	for (unsigned long i = 0; i < remotes; i++)
		if (!remote[i].iov_len)
			return -1 - OCI_VM_FORM;
	for (unsigned long i = 0; i < locals; i++) {
		if (!local[i].iov_len)
			return -1 - OCI_VM_FORM;
		if (!heap_is_there(local[i].iov_base, local[i].iov_len, frame))
			return -1 - OCI_VM_OWN;
	}
	return 0;
}

static inline ssize_t move(long call, pid_t pid, const struct iovec *local, unsigned long locals,
			   const struct iovec *remote, unsigned long remotes, unsigned long flags,
			   const void *frame)
{
	/* Acquire: pairs with the release in heap_serve(). */
	const struct oci_vm_server *now = atomic_load_explicit(&server, memory_order_acquire);
	ssize_t moved = 0;

	if (now) {
		moved = check(local, locals, remote, remotes, flags, frame);
		if (!moved)
			moved = now->copy(pid, call == SYS_process_vm_writev, local,
					  (unsigned int)locals, remote, (unsigned int)remotes);
		if (moved > 0)
			return moved;
	}
	enum oci_vm_miss why = (enum oci_vm_miss)(-1 - moved);

	moved = syscall(call, pid, local, locals, remote, remotes, flags);
	if (now && moved > 0)
		now->passed(why, (size_t)moved);
	return moved;
}

OC_EXPORT ssize_t process_vm_readv(pid_t pid, const struct iovec *local, unsigned long locals,
				   const struct iovec *remote, unsigned long remotes,
				   unsigned long flags)
{
	return move(SYS_process_vm_readv, pid, local, locals, remote, remotes, flags,
		    __builtin_frame_address(0));
}

OC_EXPORT ssize_t process_vm_writev(pid_t pid, const struct iovec *local, unsigned long locals,
				    const struct iovec *remote, unsigned long remotes,
				    unsigned long flags)
{
	return move(SYS_process_vm_writev, pid, local, locals, remote, remotes, flags,
		    __builtin_frame_address(0));
}
