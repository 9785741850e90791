/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Both ends of an invitation, ADR 0025. One file of more than 500 lines, as the reader's and the
 * sender's accesses to the places are argued against each other.
 */
#include "copy/invite.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/options.h"
#include "copy/access.h"
#include "copy/chunks.h"
#include "copy/memcpy.h"
#include "os/os.h"
#include "team/team.h"

#define TAKEN(i) (1ull << (i))
#define OPEN(i) (1ull << (32 + (i)))
/* Who calls oci_invite_help() again after less does nothing else meanwhile. */
#define AT_ONCE_NS 2000
/* Where readers had nothing to be copied for so many looks, of 0.2 us, they may have died. */
#define IDLE_LOOKS 20000
/* Of a read whose sender reads itself: less gains nothing, or loses. */
#define LARGE ((size_t)1 << 20)
/* Of one whose sender is far: 64 KiB are 1.5 times as fast where the sender has just written them,
 * but 0.93 to 0.97 where it has not (AMD EPYC of family 26, 2026-11-25). */
#define FAR_LEAST ((size_t)96 << 10)
/* After so many smaller ones in vain, one in so many is tried. */
#define VAIN_LEAST 4
#define VAIN_TURNS 16
/* One look in so many is timed; a line that takes longer counts as this. */
#define LINE_LOOKS 4
#define LINE_MOST_NS (4 * OCI_NEAR_NS)
#define CROSSED_READS 8
/* Looks at a peer's turns, with a pause each. */
#define TURN_POLLS 24
/* Looks for a chunk, with a pause each, until the reader copies one itself. */
#define CHUNK_POLLS 100
#define SLOT OCI_INVITATION_SLOT_BYTES
/* Looks for a slot that is empty, with a pause each, until the sender goes on with its progress. */
#define SLOT_POLLS 200
/* After so much the sender begins no other chunk in a turn of its progress. */
#define TURN_BYTES ((size_t)1 << 20)
/* Of a message whose sender is elsewhere, until the next look whether it has come to wait. */
#define ALONE_BYTES ((size_t)512 << 10)
/* Looks at a peer's count between two looks at the clock. */
#define POLLS_PER_LOOK 256

static struct oci_invitations nobody;
struct oci_invitations *oci_invited = &nobody;
uint64_t oci_invite_near_ns = OCI_NEAR_NS;

/* ---- who can be invited ---------------------------------------------------------------------- */

/* A process that was read from. Entries stay. */
struct near {
	struct near *next;
	pid_t pid;
	struct oci_peer *peer; /* NULL: it cannot be invited */
	unsigned int users;    /* that read from it */
	bool gone;	       /* is to be NULL, when the last user has left */
	/* Atomic; the lock need not be held. The first four are hints, of which threads may lose
	 * some. */
	uint64_t turns;		  /* of the peer, as last read */
	uint64_t line_ns;	  /* mean time of a line that it has written; 0: not known */
	uint64_t looks;		  /* at its turns */
	uint64_t crossed;	  /* so many reads until it is forgotten that it reads, too */
	bool declined;		  /* it has declined */
	uint64_t due_ns, wait_ns; /* then: when to look again; it may not have begun yet */
};
#define WAIT_LEAST_NS ((uint64_t)1000000)
#define WAIT_MOST_NS ((uint64_t)128000000)

#define LISTS 64
static struct {
	pthread_mutex_t lock;
	struct near *list[LISTS]; /* by number; under the lock */
	uint32_t node_ranks;	  /* 0: not allowed */
	double granted;		  /* CPUs, by a control group; 0: no limit */
	struct oci_segment_id self;
	uint32_t started; /* atomic: NO, and then one of the others */
	/* Atomic: reads in a row in which nobody helped; a hint, of which threads may lose some. */
	uint64_t vain;
} invite = { .lock = PTHREAD_MUTEX_INITIALIZER };
enum { NO, REFUSED, YES };

/* Of a process as sender. */
static uint32_t busy; /* a lock that nobody waits for: one thread helps at a time */
/* With it held: offsets in the segment, of each place; 0: none yet; -errno: there is no room. */
static int64_t slots[OCI_INVITATIONS];
static bool help_beside(void);

void oci_invite_allow(uint32_t node_ranks)
{
	invite.node_ranks = node_ranks;
}

/* With the lock held. A reader of a real-time class that waits for a chunk could keep its sender
 * off the CPU for good. */
static void start(void)
{
	int class = sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;
	int error = class == SCHED_FIFO || class == SCHED_RR ? -EPERM : 0;

	if (!error)
		error = oci_segment_self(&invite.self, invite.node_ranks);
	if (!error) {
		struct oci_invitations *all = oci_segment_invitations();

		invite.granted = oci_os_cgroup_cpus();
		/* Release: pairs with the acquire in find(). */
		oci_store_release(&all->helps, 1);
		__atomic_store_n(&oci_invited, all, __ATOMIC_RELAXED);
	}
	/* Release: pairs with the acquire in has_started(). */
	__atomic_store_n(&invite.started, error ? REFUSED : YES, __ATOMIC_RELEASE);
}

static bool has_started(void)
{
	uint32_t started = __atomic_load_n(&invite.started, __ATOMIC_ACQUIRE);

	if (started != NO || !invite.node_ranks)
		return started == YES;
	pthread_mutex_lock(&invite.lock);
	if (invite.started == NO)
		start();
	started = invite.started;
	pthread_mutex_unlock(&invite.lock);
	return started == YES;
}

void oci_invite_fork_child(void)
{
	pthread_mutex_init(&invite.lock, NULL);
	oci_access_fork_child();
	memset(slots, 0, sizeof(slots));
	busy = 0;
	memset(invite.list, 0, sizeof(invite.list));
	invite.node_ranks = 0;
	invite.started = NO;
	oci_invited = &nobody;
}

/*
 * Can this process and that one run at the same time? As far as their CPUs tell: the other ranks of
 * the node may be bound to the same ones.
 */
static bool run_at_once(pid_t pid)
{
	uint64_t mine[OCI_CPU_WORDS], theirs[OCI_CPU_WORDS];
	unsigned int cpus = 0, common = 0;

	oci_os_affinity(0, mine, OCI_CPU_WORDS);
	oci_os_affinity(pid, theirs, OCI_CPU_WORDS);
	for (unsigned int w = 0; w < OCI_CPU_WORDS; w++) {
		cpus += (unsigned int)__builtin_popcountll(mine[w] | theirs[w]);
		common += (unsigned int)__builtin_popcountll(mine[w] & theirs[w]);
	}
	if (!common)
		cpus = oci_os_cpus_online();
	return cpus >= invite.node_ranks &&
	       (invite.granted <= 0 || invite.granted >= invite.node_ranks);
}

static struct oci_peer *find(pid_t pid)
{
	struct oci_peer *peer;

	if (oci_peer_find(&peer, pid))
		return NULL;
	/* Acquire: pairs with the release in start(). */
	if (oci_load_acquire(&oci_peer_invitations(peer)->helps) && run_at_once(pid))
		return peer;
	oci_peer_put(peer);
	return NULL;
}

/* With the lock held. NULL: no memory. */
static struct near *near_of(pid_t pid)
{
	struct near **list = &invite.list[(unsigned int)pid % LISTS], *near = *list;

	while (near && near->pid != pid)
		near = near->next;
	if (near)
		return near;
	near = calloc(1, sizeof(*near));
	if (!near)
		return NULL;
	near->pid = pid;
	near->next = *list;
	*list = near;
	return near;
}

static void look_later(struct near *near, uint64_t now)
{
	if (near->wait_ns < WAIT_LEAST_NS)
		near->wait_ns = WAIT_LEAST_NS;
	else if (near->wait_ns < WAIT_MOST_NS)
		near->wait_ns *= 2;
	near->due_ns = now + near->wait_ns;
}

/* With the lock held. */
static void let_go(struct near *near)
{
	if (near->users || !near->gone)
		return;
	oci_peer_put(near->peer);
	near->peer = NULL;
	near->gone = false;
}

/* That process, until release(); NULL: it cannot be invited. */
static struct near *hold(pid_t pid)
{
	uint64_t now = oci_clock_tick_ns();
	struct near *near;

	pthread_mutex_lock(&invite.lock);
	near = near_of(pid);
	if (near && near->peer && !near->gone && oci_peer_check(near->peer)) {
		near->gone = true;
		near->due_ns = 0;
		let_go(near);
	}
	if (near && !near->peer && now >= near->due_ns) {
		near->peer = find(pid);
		if (!near->peer)
			look_later(near, now);
	}
	if (near && (!near->peer || near->gone))
		near = NULL;
	if (near)
		near->users++;
	pthread_mutex_unlock(&invite.lock);
	return near;
}

/* Whoever has declined is not asked for a while. */
static void release(struct near *near)
{
	pthread_mutex_lock(&invite.lock);
	near->users--;
	if (__atomic_exchange_n(&near->declined, false, __ATOMIC_RELAXED)) {
		near->gone = true;
		look_later(near, oci_clock_tick_ns());
	}
	let_go(near);
	pthread_mutex_unlock(&invite.lock);
}

/* ---- the reader ------------------------------------------------------------------------------ */

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
		while (!(seen & TAKEN(i))) {
			if (!__atomic_compare_exchange_n(&all->places, &seen, seen | TAKEN(i),
							 false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
				continue;
			if (__atomic_load_n(&all->reading, __ATOMIC_SEQ_CST) != 1 + i)
				return (int)i;
			seen = __atomic_and_fetch(&all->places, ~TAKEN(i), __ATOMIC_RELAXED);
			break;
		}
	}
	return -1;
}

static void open_place(struct oci_invitations *all, int place, uint64_t from, size_t bytes)
{
	struct oci_invitation *v = &all->invitation[place];
	uint64_t nonce[2];

	memcpy(nonce, invite.self.nonce, sizeof(nonce));
	oci_store_relaxed(&v->pid, (uint64_t)invite.self.pid);
	oci_store_relaxed(&v->segment, invite.self.address);
	oci_store_relaxed(&v->nonce[0], nonce[0]);
	oci_store_relaxed(&v->nonce[1], nonce[1]);
	oci_store_relaxed(&v->from, from);
	oci_store_relaxed(&v->bytes, bytes);
	oci_store_relaxed(&v->emptied, 0);
	oci_store_relaxed(&v->slots, 0);
	oci_store_relaxed(&v->claim, 0);
	oci_store_relaxed(&v->helped, 0);
	/* Release: the terms come first. Pairs with look_at(). */
	__atomic_fetch_or(&all->places, OPEN(place), __ATOMIC_RELEASE);
}

static void close_place(struct oci_invitations *all, int place)
{
	/* Sequentially consistent: see take_place(). */
	__atomic_fetch_and(&all->places, ~(TAKEN(place) | OPEN(place)), __ATOMIC_SEQ_CST);
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

/*
 * The count of turns, from the peer's cache; now and then timed, as team/near.c does it: far from
 * it two ends copy as fast by two system calls as by slots, so there the peer is left to read its
 * own messages. The host of a virtual machine may move either at any time.
 */
static uint64_t look_at_turns(struct near *near, const struct oci_invitations *all)
{
	uint64_t looks = oci_load_relaxed(&near->looks), mean = oci_load_relaxed(&near->line_ns);
	uint64_t before, start, end, turns;

	oci_store_relaxed(&near->looks, looks + 1);
	if (mean && looks % LINE_LOOKS)
		return oci_load_relaxed(&all->turns);
	before = oci_clock_ns();
	start = oci_clock_ns();
	/* Acquire: the clock is read behind the load. */
	turns = oci_load_acquire(&all->turns);
	end = oci_clock_ns();
	if (turns != oci_load_relaxed(&near->turns) && end - start >= start - before) {
		uint64_t ns = end - start - (start - before);

		ns = ns < LINE_MOST_NS ? ns + 1 : LINE_MOST_NS;
		oci_store_relaxed(&near->line_ns, mean ? (3 * mean + ns) / 4 : ns);
	}
	return turns;
}

static bool is_close(const struct near *near)
{
	uint64_t ns = oci_load_relaxed(&near->line_ns);

	return ns && ns < oci_invite_near_ns;
}

/* Does it read from here, too, these days, and is far, or are messages small? Both then do best by
 * themselves. */
static bool is_apart(const struct near *near, size_t bytes)
{
	return oci_load_relaxed(&near->crossed) && (bytes < LARGE || !is_close(near));
}

/* Does the peer do nothing but wait, or looks at its places as if it did? */
static bool waits(struct near *near, const struct oci_invitations *all, size_t bytes)
{
	uint64_t before = oci_load_relaxed(&near->turns), turns = look_at_turns(near, all);
	uint64_t away = oci_load_relaxed(&all->away), crossed = oci_load_relaxed(&near->crossed);
	bool stands = turns == before;

	before = turns;
	oci_store_relaxed(&near->turns, turns);
	crossed = away != OCI_AWAY_NOT ? CROSSED_READS : crossed ? crossed - 1 : 0;
	oci_store_relaxed(&near->crossed, crossed);
	if (is_apart(near, bytes) || (bytes < FAR_LEAST && !is_close(near)))
		return false;
	if (away != OCI_AWAY_NOT)
		return true;
	for (unsigned int i = 0; i < TURN_POLLS && turns == before && !stands; i++) {
		oci_cpu_relax();
		turns = oci_load_relaxed(&all->turns);
	}
	oci_store_relaxed(&near->turns, turns);
	return turns != before;
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

/* As oci_invite_read(), by this end alone from the first byte on that it has not read itself. */
static ssize_t read_alone(struct shared *s)
{
	size_t at = s->in_front;
	ssize_t moved;

	oci_chunks_stop(&s->chunks);
	s->pushed = 0;
	moved = read_piece(s->peer, s->rest, at, s->chunks.bytes - at);
	return at && moved < 0 ? (ssize_t)at : (ssize_t)at + moved;
}

/* One chunk by this end. False: the kernel did not read all of it; *result is the read's. */
static bool read_chunk(struct shared *s, uint64_t index, ssize_t *result)
{
	size_t length = oci_chunk_length(&s->chunks, index);
	ssize_t moved = read_piece(s->peer, s->rest, oci_chunk_at(&s->chunks, index), length);

	if (moved > 0)
		s->in_front += (size_t)moved;
	if (moved == (ssize_t)length)
		return true;
	/* All before this chunk is here. What the sender has copied behind it does not count. */
	oci_chunks_stop(&s->chunks);
	s->pushed = 0;
	*result = moved < 0 && !s->in_front ? moved : (ssize_t)s->in_front;
	return false;
}

/* Nothing is to be emptied: whoever reads from this process is served meanwhile, or a pause. True:
 * that took long enough. */
static bool pause_reader(uint32_t *polls, uint32_t most)
{
	if (help_beside())
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
			if (!read_chunk(s, index, &result))
				return result;
			polls = 0;
			break;
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
static ssize_t read_shared(struct near *near, const struct rest *rest, size_t *pushed)
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
	/* Relaxed, both: that answer comes alone, and release() is this thread's. */
	if (oci_load_relaxed(&s.v->slots) == OCI_INVITATION_DECLINED)
		__atomic_store_n(&near->declined, true, __ATOMIC_RELAXED);
	close_place(all, place);
	*pushed += s.pushed;
	return moved;
}

/* The peer is invited once it waits. */
static ssize_t read_from(struct near *near, struct rest rest, size_t *pushed)
{
	const struct oci_invitations *all = oci_peer_invitations(near->peer);
	size_t bytes = rest.bytes;
	ssize_t moved = 0;

	while (rest.bytes) {
		bool shared = waits(near, all, rest.bytes);
		size_t alone = rest.bytes < 2 * ALONE_BYTES || is_apart(near, rest.bytes) ?
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

/* Do small reads of late get help? To look whether the sender waits costs some tenths of a us. */
static bool is_in_vain(size_t bytes)
{
	uint64_t vain = oci_load_relaxed(&invite.vain);

	if (bytes >= LARGE || vain < VAIN_LEAST || vain % VAIN_TURNS == 0)
		return false;
	oci_store_relaxed(&invite.vain, vain + 1);
	return true;
}

ssize_t oci_invite_read(pid_t pid, void *to, uint64_t from, size_t bytes, size_t *pushed)
{
	struct near *near;
	ssize_t moved;

	*pushed = 0;
	if (!has_started() || pid == invite.self.pid || is_in_vain(bytes))
		return -EAGAIN;
	near = hold(pid);
	if (!near)
		return -EAGAIN;
	/* Relaxed, here and below: hints. */
	oci_store_relaxed(&oci_invited->away, OCI_AWAY_IN_KERNEL);
	moved = read_from(near, (struct rest){ to, from, bytes }, pushed);
	oci_store_relaxed(&oci_invited->away, OCI_AWAY_NOT);
	oci_store_relaxed(&invite.vain, *pushed ? 0 : oci_load_relaxed(&invite.vain) + 1);
	release(near);
	return moved;
}

/* ---- the sender ------------------------------------------------------------------------------ */

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

/* Where the slots of an invitation are in our segment; OCI_INVITATION_DECLINED: it has none. With
 * the lock held. */
static uint64_t slots_of(unsigned int place, struct oci_invitation *v)
{
	uint64_t answer = oci_load_relaxed(&v->slots);

	/* A reader that has died is found out in each turn. */
	if (answer == OCI_INVITATION_DECLINED || !is_reader(v, (pid_t)oci_load_relaxed(&v->pid)))
		answer = OCI_INVITATION_DECLINED;
	if (!answer && !slots[place])
		slots[place] = oci_segment_alloc(OCI_INVITATION_SLOTS * SLOT);
	if (!answer)
		answer = slots[place] > 0 && oci_may_access(oci_load_relaxed(&v->from),
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
	while (seen & OPEN(place) &&
	       !oci_compare_exchange(&all->places, &seen, seen & ~(TAKEN(place) | OPEN(place))))
		;
}

/* Chunks for whoever has left this one, or, where there are none for long, a look whether that
 * process lives. */
static bool look_at(struct oci_invitations *all, unsigned int place, bool reads, bool late)
{
	bool found = false;

	/* Sequentially consistent, both: see take_place(). Acquire: pairs with open_place(). */
	__atomic_store_n(&all->reading, 1 + place, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&all->places, __ATOMIC_SEQ_CST) & OPEN(place)) {
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
		found = oci_load_relaxed(&all->places) & OPEN(i) && look_at(all, i, reads, late);
	idle = found || late ? 0 : idle + 1;
	return found;
}

static bool help_beside(void)
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
	if (!has_started() || __atomic_exchange_n(&busy, 1, __ATOMIC_ACQUIRE))
		return;
	if (now - last_ns < AT_ONCE_NS)
		found = look_at_all(oci_invited, false);
	last_ns = found ? oci_clock_ns() : now;
	__atomic_store_n(&busy, 0, __ATOMIC_RELEASE);
}
