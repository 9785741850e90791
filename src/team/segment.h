/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * This process's segment: the shared memory that it owns, and everyone's that it has mapped.
 *
 * Each process has one memfd. What it writes for others (flags, payloads, slots) lies in its own
 * segment, so every allocation is local to one process, no lock is shared between processes, and
 * pages are first touched by their writer. Peers map it whole, once (docs/adr/0001).
 *
 * Thread safe. Offsets are from the start of a segment.
 */
#ifndef OC_TEAM_SEGMENT_H
#define OC_TEAM_SEGMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "os/os.h"
#include "team/arena.h"
#include "team/invitation.h"
#include "team/registration.h"

/* What each segment has from the start: its header, and room for what the first teams need. A page
 * of it takes the kernel up to 2 us (AMD EPYC guest, 2026-11-23). */
#define OCI_SEGMENT_FRONT ((size_t)192 << 10)

/* The name of its file, as a link in /proc/PID/fd has it. */
#define OCI_SEGMENT_NAME "onecopy"
#define OCI_SEGMENT_LINK "/memfd:" OCI_SEGMENT_NAME " (deleted)"

/* How a peer finds and recognises a segment; travels in the bootstrap. */
struct oci_segment_id {
	uint8_t nonce[16];
	uint64_t address; /* in the owner */
	uint64_t bytes;	  /* to map */
	int32_t pid;
	int32_t fd;
};

/*
 * Creates this process's segment at the first call. 0, or -errno with a sentence logged. Each of so
 * many ranks of the node is expected to map it, and to have one of its size: with a limit of the
 * address space (ulimit -v) it is so small that all of them take an eighth of what is left.
 */
int oci_segment_self(struct oci_segment_id *id, uint32_t node_ranks);
/* Start of our own mapping; only after oci_segment_self() succeeded. */
void *oci_segment_base(void);

/*
 * `bytes` of our segment, zeroed, aligned to 128, with room behind them. The offset, or -ENOSPC
 * with a sentence logged once.
 */
int64_t oci_segment_alloc(size_t bytes);
void oci_segment_free(int64_t offset, size_t bytes);
/*
 * Room that oci_segment_alloc() leaves for oci_segment_alloc_promised(), in multiples of 128 bytes.
 * It is address space: the kernel may refuse the memory when it is taken. 0, or -ENOSPC.
 */
int oci_segment_promise(size_t bytes);
void oci_segment_unpromise(size_t bytes);
/* As oci_segment_alloc(), out of what was promised. -errno: the kernel refuses the memory. */
int64_t oci_segment_alloc_promised(size_t bytes);
/* Logs once that there is no room. */
void oci_segment_full(void);

/* Bytes handed out and not freed: a test for leaks. */
size_t oci_segment_live_bytes(void);
/* Where the nonce of a segment lies that begins at this address of its owner. */
void *oci_segment_nonce_at(uint64_t address);
/* And 16 bytes for probes to write, all of them the nonce. */
void *oci_segment_touched_at(uint64_t address);
/* Is the mapping at `base` the segment with this nonce? */
bool oci_segment_nonce_matches(const void *base, const uint8_t nonce[16]);
/* Which segment this file is: 0, or -EPROTO. */
int oci_segment_read_id(int fd, struct oci_segment_id *id);
/* The image of the process whose segment it is. */
struct oci_os_image oci_segment_image(const void *base);

/* Where receivers leave invitations for this process; NULL: it has no segment. */
struct oci_invitations *oci_segment_invitations(void);

/* What we have registered, for peers to read; NULL: no segment. */
struct oci_registration *oci_segment_registrations(void);

/* Writes what oci_arena_publish() was given into the segment, when both are there. */
void oci_segment_tell_arena(void);

/* A process whose segment is mapped here. Shared by all teams; counted. */
struct oci_peer {
	struct oci_peer *next;
	struct oci_segment_id id;
	unsigned int users;
	struct oci_os_image image;
	uint64_t seen;	/* oci_peer_check() found it there then. Atomic. */
	uint64_t lived; /* and oci_peer_dead(), by its number alone. Atomic. */
	uint8_t *base;
	uint8_t *front; /* the same memory, of its first OCI_SEGMENT_FRONT bytes: peer.c */
	/* What a probe without any refusal found, kept for the next teams; 0: none yet. Atomic. */
	uint32_t can;
	struct oci_mapping *mapping; /* of its arena, see oci_mapping_get(). Atomic. */
};

/*
 * Maps a peer's segment, or counts one more user of the mapping. Accepted only when the nonce in
 * it is the one in the id. -errno: see oci_os_open_peer_fd; -EPROTO: another segment lies there.
 */
int oci_peer_get(struct oci_peer **peer, const struct oci_segment_id *id);
/* Where a region of a peer lies here. */
static inline void *oci_peer_region(const struct oci_peer *peer, int64_t offset, size_t bytes)
{
	return ((size_t)offset + bytes <= OCI_SEGMENT_FRONT ? peer->front : peer->base) + offset;
}
/* Is it mapped here already? */
bool oci_peer_known(const struct oci_segment_id *id);
void oci_peer_put(struct oci_peer *peer);
/* As oci_peer_get(), of a process of which nothing is known but its number: its segment is looked
 * for among its descriptors, which takes some 100 us. -errno; -ENOENT: it has none. */
int oci_peer_find(struct oci_peer **peer, pid_t pid);
struct oci_invitations *oci_peer_invitations(const struct oci_peer *peer);
const struct oci_registration *oci_peer_registrations(const struct oci_peer *peer);
/* The arena that a peer has published; NULL: none so far. */
const struct oci_arena_id *oci_peer_arena(const struct oci_peer *peer);
/* Has the process ended, or become another program? Asks the kernel, once in a tick of its
 * clock, some ms: for slow paths. */
bool oci_peer_dead(struct oci_peer *peer);
bool oci_peers_any_dead(void); /* of all that are in use */
/*
 * Is the process with the peer's number the one whose segment is mapped here? Before each copy by
 * that number. 0; -errno: it is not, or the kernel does not let us read it.
 */
int oci_peer_check(struct oci_peer *peer);

/* ---- slots: bounce buffers of three sizes (base/limits.h) in our segment --------------------- */

/* In a child of fork(2): forgets what is the parent's. What was mapped stays mapped, unused. */
void oci_segment_fork_child(void);
void oci_peers_fork_child(void);
void oci_slots_fork_child(void);

/*
 * What an operation holds at most: one of its plan, one of its transfers by shm (copy/shm.c). The
 * rank that serves a transfer needs none.
 */
#define OCI_OPERATION_SLOTS 2

struct oci_team;
/*
 * Guarantees the team OCI_OPERATION_SLOTS for its oldest operation that not all ranks have
 * finished, whatever other teams hold, until oci_slots_forget(). 0, or -errno: a team cannot be
 * made.
 *
 * Operations of a team have the same order on all ranks, and its oldest one waits for no slot that
 * another team holds: so it ends, and the next one is the oldest. No order of operations of several
 * teams makes them wait for each other.
 */
int oci_slots_guarantee(struct oci_team *team);
/* Makes sure that there is a larger one for this team (near.c), which it may take from then on.
 * 0, or -ENOSPC. */
int oci_slots_reserve_large(struct oci_team *team);
/* The team takes none, as a rank has none. */
void oci_slots_spare_large(struct oci_team *team);
/*
 * A slot that nobody reads any more, for operation `seq` of the team, which uses its first `bytes`
 * for blocks of `block`: of the smallest size that has them. It stays taken until every rank of the
 * team has finished that operation. The offset, or -EAGAIN when memory is short and all are in use:
 * try again after progress. Another -errno: the team has failed, as the kernel refuses the memory
 * of one that it is guaranteed.
 */
int64_t oci_slot_acquire(struct oci_team *team, uint64_t seq, size_t bytes, size_t block);
/* The slot that oci_slot_acquire() is likely to return next, -EAGAIN when unknown: a hint. */
int64_t oci_slot_likely_next(size_t bytes);
/* Forgets a team: its slots are free. Only when all its members have left, or it was refused. */
void oci_slots_forget(struct oci_team *team);

/* All that were made. */
size_t oci_slots_bytes(void);
/* How long the kernel refuses memory before that is an error though peers have yet to read; tests
 * make it short. */
extern uint64_t oci_slots_starved_ns;

#endif
