/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads of another process's memory in which that process copies, too, if it only waits: the reader
 * leaves an invitation in its segment (team/invitation.h). The sender puts chunks from the back on
 * into slots, out of which the reader copies them; while none come, it reads those in front, until
 * the two meet (copy/chunks.h). Nobody is waited for but who is copying a chunk.
 */
#ifndef OC_COPY_INVITE_H
#define OC_COPY_INVITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/atomic.h"
#include "copy/chunks.h"
#include "team/invitation.h"

/* Before anything else, in a job of so many ranks on this node. */
void oci_invite_allow(uint32_t node_ranks);
/* In a child of fork(2). */
void oci_invite_fork_child(void);
/* Lets go of processes that have ended, and of which nobody reads. */
void oci_invite_forget_dead(void);

/*
 * Reads `bytes`, at least one, from `from` of process pid to `to`, as process_vm_readv() does: how
 * many were read from the front on, or -errno. *pushed: of these by that process. -EAGAIN: nothing
 * was done, as it is none that helps. Thread safe.
 */
ssize_t oci_invite_read(pid_t pid, void *to, uint64_t from, size_t bytes, size_t *pushed);

/* A line that takes less is near; for tests. */
extern uint64_t oci_invite_near_ns;
/* How such a read of so many bytes is cut. */
struct oci_chunks oci_invite_chunks(struct oci_invitation *v, size_t bytes);

/* The places of this process; before it has a segment, one where nobody can leave any. */
extern struct oci_invitations *oci_invited;
/* A program that has waited for so many turns is given its segment, which takes 0.3 ms, so that it
 * can be invited: those that hardly wait gain nothing. */
#define OCI_INVITE_TURNS 10000

/* A turn of this process's progress. Is there something to be done? */
static inline bool oci_invite_turn(void)
{
	struct oci_invitations *all = __atomic_load_n(&oci_invited, __ATOMIC_RELAXED);
	uint64_t turns = oci_load_relaxed(&all->turns) + 1;

	/* Relaxed: that they go on is all that others look for. Threads may lose some. */
	oci_store_relaxed(&all->turns, turns);
	/* Relaxed: oci_invite_help() looks again. */
	return oci_load_relaxed(&all->places) >> 32 || turns == OCI_INVITE_TURNS;
}
/* It is done: chunks for who has invited this process, where it only waits: where it calls again
 * and again at once. Thread safe. */
void oci_invite_help(void);

#endif
