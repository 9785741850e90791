/* SPDX-License-Identifier: BSD-3-Clause */
/* The reader of an invitation: chunks out of slots, and those in front by itself. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/options.h"
#include "copy/access.h"
#include "copy/invitee.h"
#include "copy/memcpy.h"
#include "os/os.h"

/* After so many smaller ones in vain, one in so many is tried. */
#define VAIN_LEAST 4
#define VAIN_TURNS 16
/* Looks for a chunk, with a pause each, until the reader copies one itself. */
#define CHUNK_POLLS 100
/* Of a message whose sender is elsewhere, until the next look whether it has come to wait. */
#define ALONE_BYTES ((size_t)512 << 10)
/* Looks at a peer's count between two looks at the clock. */
#define POLLS_PER_LOOK 256
#define SLOT OCI_INVITATION_SLOT_BYTES

/*
 * A fourth of the message up to 32 KiB, a sixteenth from there on. AMD EPYC of family 26,
 * 2026-11-25, a ping-pong between far CPUs, us by chunks of 16, 32 and 64 KiB: 128 KiB 8.2, 8.0,
 * 9.1; 256 KiB 14.5, 11.8, 12.5; 1 MiB 52, 39, 35; 4 MiB 201, 150, 127. A one-off.
 */
struct oci_chunks oci_invite_chunks(struct oci_invitation *v, size_t bytes)
{
	size_t fourth = bytes / 4 / 4096 * 4096, sixteenth = bytes / 16 / 4096 * 4096;
	size_t size = fourth < SLOT / 2 ? fourth : sixteenth < SLOT / 2 ? SLOT / 2 : sixteenth;

	size = size < SLOT / 4 ? SLOT / 4 : size > SLOT ? SLOT : size;
	return (struct oci_chunks){ &v->claim, &v->helped, bytes, size, (bytes + size - 1) / size };
}

/* A place that is ours now; -1: all are taken. */
static int take_place(struct oci_invitations *all)
{
	uint64_t seen = oci_load_relaxed(&all->places);

	for (unsigned int i = 0; i < OCI_INVITATIONS; i++) {
		/* Sequentially consistent, as are the accesses in look_at() and close_place():
		 * either we see that the owner reads this place, or it sees that what was open
		 * there is no more. */
		while (!(seen & OCI_TAKEN(i))) {
			if (!__atomic_compare_exchange_n(&all->places, &seen, seen | OCI_TAKEN(i),
							 false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
				continue;
			if (__atomic_load_n(&all->reading, __ATOMIC_SEQ_CST) != 1 + i)
				return (int)i;
			seen = __atomic_and_fetch(&all->places, ~OCI_TAKEN(i), __ATOMIC_RELAXED);
			break;
		}
	}
	return -1;
}

static void open_place(struct oci_invitations *all, int place, uint64_t from, size_t bytes)
{
	struct oci_invitation *v = &all->invitation[place];
	uint64_t nonce[2];

	memcpy(nonce, oci_invite_self.nonce, sizeof(nonce));
	oci_store_relaxed(&v->pid, (uint64_t)oci_invite_self.pid);
	oci_store_relaxed(&v->segment, oci_invite_self.address);
	oci_store_relaxed(&v->nonce[0], nonce[0]);
	oci_store_relaxed(&v->nonce[1], nonce[1]);
	oci_store_relaxed(&v->from, from);
	oci_store_relaxed(&v->bytes, bytes);
	oci_store_relaxed(&v->emptied, 0);
	oci_store_relaxed(&v->slots, 0);
	oci_store_relaxed(&v->claim, 0);
	oci_store_relaxed(&v->helped, 0);
	/* Release: the terms come first. Pairs with look_at(). */
	__atomic_fetch_or(&all->places, OCI_OPEN(place), __ATOMIC_RELEASE);
}

static void close_place(struct oci_invitations *all, int place)
{
	/* Sequentially consistent: see take_place(). */
	__atomic_fetch_and(&all->places, ~(OCI_TAKEN(place) | OCI_OPEN(place)), __ATOMIC_SEQ_CST);
}

/* What is left of a read. */
struct rest {
	void *to;
	uint64_t from;
	size_t bytes;
};

/* `bytes` at `at` of it: as oci_os_vm_read(). */
static ssize_t read_piece(const struct oci_peer *peer, const struct rest *rest, size_t at,
			  size_t bytes)
{
	struct iovec here = { (uint8_t *)rest->to + at, bytes };
	struct iovec there = { (void *)(uintptr_t)(rest->from + at), bytes };

	return oci_os_vm_read(peer->id.pid, &here, 1, &there, 1);
}

/* A read that the sender shares. */
struct shared {
	struct oci_peer *peer;
	const struct oci_invitations *all;
	struct oci_invitation *v;
	struct oci_chunks chunks;
	const struct rest *rest;
	uint64_t emptied; /* chunks: of those in slots, which are the last ones */
	size_t in_front;  /* bytes that this end has read from the front on */
	size_t pushed;	  /* of the result, the sender's */
};

/* Of the next chunk in a slot. */
static void empty_slot(struct shared *s)
{
	uint64_t index = s->chunks.count - 1 - s->emptied;
	/* Relaxed: the acquire of the chunk's count came first. */
	uint64_t slot = oci_load_relaxed(&s->v->slots) + s->emptied % OCI_INVITATION_SLOTS * SLOT;
	size_t bytes = oci_chunk_length(&s->chunks, index);

	oci_memcpy((uint8_t *)s->rest->to + oci_chunk_at(&s->chunks, index),
		   oci_peer_region(s->peer, (int64_t)slot, bytes), bytes, s->chunks.bytes);
	s->pushed += bytes;
	/* Release: the slot has been read. Pairs with the acquire in fill_slots(). */
	oci_store_release(&s->v->emptied, ++s->emptied);
}

/* The next bytes in front, by this end; *result: as oci_invite_read(). False: the kernel did not
 * read all of them. */
static bool read_front(struct shared *s, size_t bytes, ssize_t *result)
{
	ssize_t moved = read_piece(s->peer, s->rest, s->in_front, bytes);

	if (moved > 0)
		s->in_front += (size_t)moved;
	*result = moved < 0 && !s->in_front ? moved : (ssize_t)s->in_front;
	return moved == (ssize_t)bytes;
}

/* What the sender has copied behind the front does not count any more. */
static void stop(struct shared *s)
{
	oci_chunks_stop(&s->chunks);
	s->pushed = 0;
}

static ssize_t read_alone(struct shared *s)
{
	ssize_t result;

	stop(s);
	read_front(s, s->chunks.bytes - s->in_front, &result);
	return result;
}

/* Nothing is to be emptied: whoever reads from this process is served meanwhile, or a pause. True:
 * that took long enough. */
static bool pause_reader(uint32_t *polls, uint32_t most)
{
	if (oci_invite_help_beside())
		return false;
	if (++*polls > oci_options()->spins)
		oci_os_yield();
	else
		oci_cpu_relax();
	return *polls >= most;
}

/* The last chunk in a slot is still being copied there. True: the sender is dead. */
static bool has_died(const struct shared *s, struct oci_wait *wait, uint32_t polls)
{
	return polls % POLLS_PER_LOOK == 0 && oci_wait_is_long(wait) && oci_peer_dead(s->peer) &&
	       /* It may have been its last deed. */
	       oci_chunks_given(&s->chunks) == s->emptied;
}

/*
 * From both ends: the sender's chunks as they come; while it does not answer, or does something
 * else, this end reads those in front.
 */
static ssize_t read_chunks(struct shared *s)
{
	struct oci_wait wait = { 0 };
	uint32_t polls = 0;
	ssize_t result;
	uint64_t index;

	for (;;) {
		if (oci_chunks_given(&s->chunks) > s->emptied) {
			empty_slot(s);
			polls = 0;
			continue;
		}
		/* Relaxed, here and below: that answer comes alone, and `away` is a hint. */
		if (oci_load_relaxed(&s->v->slots) == OCI_INVITATION_DECLINED)
			return read_alone(s);
		if (oci_chunks_are_under_way(&s->chunks)) {
			pause_reader(&polls, 0);
			if (has_died(s, &wait, polls))
				return read_alone(s);
			continue;
		}
		if (s->emptied * s->chunks.size + s->in_front < s->chunks.bytes &&
		    oci_load_relaxed(&s->all->away) != OCI_AWAY_IN_KERNEL &&
		    !pause_reader(&polls, CHUNK_POLLS))
			continue;
		switch (oci_chunks_take(&s->chunks, &index)) {
		case OCI_CHUNKS_TAKEN:
			polls = 0;
			if (read_front(s, oci_chunk_length(&s->chunks, index), &result))
				break;
			stop(s);
			return result;
		case OCI_CHUNKS_OVER:
			if (oci_chunks_given(&s->chunks) == s->emptied)
				return (ssize_t)s->chunks.bytes;
			break;
		case OCI_CHUNKS_WAIT:
			break;
		}
	}
}

/* -EAGAIN: all places are taken, or this process may not write there: the kernel is to say so. */
static ssize_t read_shared(struct oci_invitee *near, const struct rest *rest, size_t *pushed)
{
	struct oci_invitations *all = oci_peer_invitations(near->peer);
	struct shared s = { .peer = near->peer, .rest = rest, .all = all };
	ssize_t moved;
	int place;

	if (!oci_may_access((uintptr_t)rest->to, rest->bytes, true))
		return -EAGAIN;
	place = take_place(all);
	if (place < 0)
		return -EAGAIN;
	open_place(all, place, rest->from, rest->bytes);
	s.v = &all->invitation[place];
	s.chunks = oci_invite_chunks(s.v, rest->bytes);
	/* Relaxed, both: a hint. */
	oci_store_relaxed(&oci_invited->away, OCI_AWAY_SHARING);
	moved = read_chunks(&s);
	oci_store_relaxed(&oci_invited->away, OCI_AWAY_IN_KERNEL);
	/* Relaxed, both: that answer comes alone, and oci_invitee_put() is this thread's. */
	if (oci_load_relaxed(&s.v->slots) == OCI_INVITATION_DECLINED)
		__atomic_store_n(&near->declined, true, __ATOMIC_RELAXED);
	close_place(all, place);
	*pushed += s.pushed;
	return moved;
}

/* The peer is invited once it waits. */
static ssize_t read_from(struct oci_invitee *near, struct rest rest, size_t *pushed)
{
	size_t bytes = rest.bytes;
	ssize_t moved = 0;

	while (rest.bytes) {
		bool shared = oci_invitee_waits(near, rest.bytes);
		size_t alone = rest.bytes < 2 * ALONE_BYTES ||
					       oci_invitee_is_apart(near, rest.bytes) ?
				       rest.bytes :
				       ALONE_BYTES;

		moved = shared ? read_shared(near, &rest, pushed) : -EAGAIN;
		if (shared && moved != -EAGAIN)
			alone = rest.bytes;
		else
			moved = read_piece(near->peer, &rest, 0, alone);
		if (moved > 0) {
			rest.to = (uint8_t *)rest.to + moved;
			rest.from += (size_t)moved;
			rest.bytes -= (size_t)moved;
		}
		if (moved != (ssize_t)alone)
			break;
	}
	return moved < 0 && rest.bytes == bytes ? moved : (ssize_t)(bytes - rest.bytes);
}

/* Atomic: reads in a row in which nobody helped; a hint, of which threads may lose some. */
static uint64_t vain_reads;

/* Do small reads of late get help? To look whether the sender waits costs some tenths of a us. */
static bool is_in_vain(size_t bytes)
{
	uint64_t vain = oci_load_relaxed(&vain_reads);

	if (bytes >= OCI_INVITE_LARGE || vain < VAIN_LEAST || vain % VAIN_TURNS == 0)
		return false;
	oci_store_relaxed(&vain_reads, vain + 1);
	return true;
}

ssize_t oci_invite_read(pid_t pid, void *to, uint64_t from, size_t bytes, size_t *pushed)
{
	struct oci_invitee *near;
	struct oci_invitee_way way;
	uint64_t start;
	ssize_t moved;

	*pushed = 0;
	if (!oci_invite_has_started() || pid == oci_invite_self.pid || is_in_vain(bytes))
		return -EAGAIN;
	near = oci_invitee_get(pid, bytes, &way);
	if (!near)
		return -EAGAIN;
	start = way.tries ? oci_clock_ns() : 0;
	/* Relaxed, here and below: hints. */
	oci_store_relaxed(&oci_invited->away, OCI_AWAY_IN_KERNEL);
	if (way.shared)
		moved = read_from(near, (struct rest){ to, from, bytes }, pushed);
	else
		moved = read_piece(near->peer, &(struct rest){ to, from, bytes }, 0, bytes);
	oci_store_relaxed(&oci_invited->away, OCI_AWAY_NOT);
	if (way.shared)
		oci_store_relaxed(&vain_reads, *pushed ? 0 : oci_load_relaxed(&vain_reads) + 1);
	/* Where the sender did not wait, nothing was learned of what it could have done. */
	if (way.tries && moved == (ssize_t)bytes && (*pushed || !way.shared))
		oci_invitee_tell(near, bytes, way.shared, oci_clock_ns() - start);
	oci_invitee_put(near);
	return moved;
}
