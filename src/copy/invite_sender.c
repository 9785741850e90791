/* SPDX-License-Identifier: BSD-3-Clause */
/* The sender, who is invited: puts chunks into slots where it only waits. */
#include <string.h>

#include "base/clock.h"
#include "copy/access.h"
#include "copy/invitee.h"
#include "os/os.h"

/* Who calls oci_invite_help() again after less does nothing else meanwhile. */
#define AT_ONCE_NS 2000
/* Where readers had nothing to be copied for so many looks, of 0.2 us, they may have died. */
#define IDLE_LOOKS 20000
/* Looks for a slot that is empty, with a pause each, until the sender goes on with its progress. */
#define SLOT_POLLS 200
/* After so much the sender begins no other chunk in a turn of its progress. */
#define TURN_BYTES ((size_t)1 << 20)
#define SLOT OCI_INVITATION_SLOT_BYTES

static uint32_t busy; /* a lock that nobody waits for: one thread helps at a time */
/* With it held: offsets in the segment, of each place; 0: none yet; -errno: there is no room. */
static int64_t slots[OCI_INVITATIONS];
static uint64_t last_ns; /* with the lock `busy` held: the last call, or chunk */

/* Is it still the process that has invited us? Asked once a tick, see oci_peer_check(). */
static bool is_reader(const struct oci_invitation *v, pid_t pid)
{
	static uint64_t seen, seen_nonce[2];
	uint64_t tick = oci_clock_tick_ns(), found[2];
	uint64_t nonce[2] = { oci_load_relaxed(&v->nonce[0]), oci_load_relaxed(&v->nonce[1]) };
	struct iovec here = { found, sizeof(found) };
	struct iovec there = { oci_segment_nonce_at(oci_load_relaxed(&v->segment)), sizeof(found) };

	if (seen == tick && !memcmp(seen_nonce, nonce, sizeof(nonce)))
		return true;
	if (oci_os_vm_read(pid, &here, 1, &there, 1) != (ssize_t)sizeof(found) ||
	    memcmp(found, nonce, sizeof(found)))
		return false;
	memcpy(seen_nonce, nonce, sizeof(nonce));
	seen = tick;
	return true;
}

/* Where the slots of an invitation are in our segment; OCI_INVITATION_DECLINED: none are to be
 * filled. With the lock held. */
static uint64_t slots_of(unsigned int place, struct oci_invitation *v)
{
	uint64_t answer = oci_load_relaxed(&v->slots);
	/* A reader that has died is found out in each turn. */
	bool served = answer != OCI_INVITATION_DECLINED &&
		      is_reader(v, (pid_t)oci_load_relaxed(&v->pid));

	/* What was answered stays: the reader may not have emptied them yet. */
	if (answer)
		return served ? answer : OCI_INVITATION_DECLINED;
	if (served && !slots[place])
		slots[place] = oci_segment_alloc(OCI_INVITATION_SLOTS * SLOT);
	answer = served && slots[place] > 0 &&
				 oci_may_access(oci_load_relaxed(&v->from),
						oci_load_relaxed(&v->bytes), false) ?
			 (uint64_t)slots[place] :
			 OCI_INVITATION_DECLINED;
	/* Relaxed: before the release of the first chunk's count, or alone. */
	oci_store_relaxed(&v->slots, answer);
	return answer;
}

/* Is there an empty one, soon? */
static bool has_slot(const struct oci_invitation *v, uint64_t filled, unsigned int polls)
{
	/* Acquire: the reader has read it. Pairs with the release in empty_slot(). */
	while (filled - oci_load_acquire(&v->emptied) >= OCI_INVITATION_SLOTS) {
		if (!polls--)
			return false;
		oci_cpu_relax();
	}
	return true;
}

/* As many chunks as there are slots for them, one if this process reads meanwhile. False: none. */
static bool fill_slots(unsigned int place, struct oci_invitation *v, bool reads)
{
	struct oci_chunks chunks = oci_invite_chunks(v, oci_load_relaxed(&v->bytes));
	uint64_t filled = oci_chunks_given(&chunks), before = filled, offset, index;

	offset = slots_of(place, v);
	while (offset != OCI_INVITATION_DECLINED &&
	       (filled - before) * chunks.size < (reads ? 1 : TURN_BYTES) &&
	       has_slot(v, filled, reads ? 0 : SLOT_POLLS) && oci_chunks_help(&chunks, &index)) {
		memcpy((uint8_t *)oci_segment_base() + offset +
			       filled % OCI_INVITATION_SLOTS * SLOT,
		       (const uint8_t *)(uintptr_t)oci_load_relaxed(&v->from) +
			       oci_chunk_at(&chunks, index),
		       oci_chunk_length(&chunks, index));
		oci_chunks_helped(&chunks, true);
		filled++;
	}
	return filled != before;
}

/* Who has died closes its place no more. It may have done so before, and another reader have taken
 * the place since; but nobody opens it while we read it: if it is still open, the dead left it so.
 */
static void close_if_dead(struct oci_invitations *all, unsigned int place)
{
	static const struct oci_os_image any;
	pid_t pid = (pid_t)oci_load_relaxed(&all->invitation[place].pid);
	uint64_t seen = oci_load_relaxed(&all->places);

	if (!oci_os_process_ended(pid, &any))
		return;
	/* Acquire and release: all that we have read of it comes first. Pairs with take_place(). */
	while (seen & OCI_OPEN(place) &&
	       !oci_compare_exchange(&all->places, &seen,
				     seen & ~(OCI_TAKEN(place) | OCI_OPEN(place))))
		;
}

/* Chunks for whoever has left this one, or, where there are none for long, a look whether that
 * process lives. */
static bool look_at(struct oci_invitations *all, unsigned int place, bool reads, bool late)
{
	bool found = false;

	/* Sequentially consistent, both: see take_place(). Acquire: pairs with open_place(). */
	__atomic_store_n(&all->reading, 1 + place, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&all->places, __ATOMIC_SEQ_CST) & OCI_OPEN(place)) {
		found = fill_slots(place, &all->invitation[place], reads);
		if (!found && late)
			close_if_dead(all, place);
	}
	/* Release: we have read it for the last time. Pairs with take_place(). */
	oci_store_release(&all->reading, 0);
	return found;
}

/* With the lock held. Was a chunk copied? */
static bool look_at_all(struct oci_invitations *all, bool reads)
{
	static unsigned int idle;
	bool found = false, late = idle >= IDLE_LOOKS;

	for (unsigned int i = 0; i < OCI_INVITATIONS && !found; i++)
		found = oci_load_relaxed(&all->places) & OCI_OPEN(i) &&
			look_at(all, i, reads, late);
	idle = found || late ? 0 : idle + 1;
	return found;
}

bool oci_invite_help_beside(void)
{
	struct oci_invitations *all = __atomic_load_n(&oci_invited, __ATOMIC_RELAXED);
	bool found;

	/* Relaxed: looked at again. Acquire: pairs with the release below. */
	if (!(oci_load_relaxed(&all->places) >> 32) ||
	    __atomic_exchange_n(&busy, 1, __ATOMIC_ACQUIRE))
		return false;
	found = look_at_all(all, true);
	__atomic_store_n(&busy, 0, __ATOMIC_RELEASE);
	return found;
}

void oci_invite_help(void)
{
	uint64_t now = oci_clock_ns();
	bool found = false;

	/* Acquire: pairs with the release below. */
	if (!oci_invite_has_started() || __atomic_exchange_n(&busy, 1, __ATOMIC_ACQUIRE))
		return;
	if (now - last_ns < AT_ONCE_NS)
		found = look_at_all(oci_invited, false);
	last_ns = found ? oci_clock_ns() : now;
	__atomic_store_n(&busy, 0, __ATOMIC_RELEASE);
}

void oci_invite_sender_fork_child(void)
{
	memset(slots, 0, sizeof(slots));
	busy = 0;
}
