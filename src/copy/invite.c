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
#include "copy/chunks.h"
#include "os/os.h"
#include "team/team.h"

#define TAKEN(i) (1ull << (i))
#define OPEN(i) (1ull << (32 + (i)))
/* Who calls oci_invite_help() again after less does nothing else meanwhile. */
#define AT_ONCE_NS 2000
/* Where readers had nothing to be copied for so many looks, of 0.2 us, they may have died. */
#define IDLE_LOOKS 20000
/* Looks at a peer's turns, with a pause each. */
#define TURN_POLLS 24
/* Of a message whose sender is elsewhere, until the next look whether it has come to wait. */
#define ALONE_BYTES ((size_t)512 << 10)
/* Looks at a peer's count between two looks at the clock. */
#define POLLS_PER_LOOK 256

static struct oci_invitations nobody;
struct oci_invitations *oci_invited = &nobody;

/* ---- who can be invited ---------------------------------------------------------------------- */

/* A process that was read from. Entries stay. */
struct near {
	struct near *next;
	pid_t pid;
	struct oci_peer *peer; /* NULL: it cannot be invited */
	unsigned int users;    /* that read from it */
	bool gone;	       /* is to be NULL, when the last user has left */
	/* Atomic; the lock need not be held. */
	uint64_t turns;		  /* of the peer, as last read */
	bool failed;		  /* it could not copy its part */
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
} invite = { .lock = PTHREAD_MUTEX_INITIALIZER };
enum { NO, REFUSED, YES };

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

/* Whoever may not write to us, or cannot, is not asked for a while. */
static void release(struct near *near)
{
	pthread_mutex_lock(&invite.lock);
	near->users--;
	if (__atomic_exchange_n(&near->failed, false, __ATOMIC_RELAXED)) {
		near->gone = true;
		look_later(near, oci_clock_tick_ns());
	}
	let_go(near);
	pthread_mutex_unlock(&invite.lock);
}

/* ---- the reader ------------------------------------------------------------------------------ */

static struct oci_chunks chunks_of(struct oci_invitation *v, size_t bytes)
{
	return oci_chunks_of(&v->claim, &v->helped, bytes, OCI_CHUNKS_MESSAGE);
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

static void open_place(struct oci_invitations *all, int place, void *to, uint64_t from,
		       size_t bytes)
{
	struct oci_invitation *v = &all->invitation[place];
	uint64_t nonce[2];

	memcpy(nonce, invite.self.nonce, sizeof(nonce));
	oci_store_relaxed(&v->pid, (uint64_t)invite.self.pid);
	oci_store_relaxed(&v->segment, invite.self.address);
	oci_store_relaxed(&v->nonce[0], nonce[0]);
	oci_store_relaxed(&v->nonce[1], nonce[1]);
	oci_store_relaxed(&v->to, (uintptr_t)to);
	oci_store_relaxed(&v->from, from);
	oci_store_relaxed(&v->bytes, bytes);
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

/* Until the peer has copied the chunk that it has taken, or given it back; or is dead, when it is
 * ours. */
static void await(struct oci_peer *peer, const struct oci_chunks *chunks)
{
	struct oci_wait wait = { 0 };
	uint64_t index;

	for (uint32_t polls = 1; oci_chunks_take(chunks, &index) == OCI_CHUNKS_WAIT; polls++) {
		if (polls < oci_options()->spins)
			oci_cpu_relax();
		else
			oci_os_yield();
		if (polls % POLLS_PER_LOOK || !oci_wait_is_long(&wait) || !oci_peer_dead(peer))
			continue;
		/* It may have been its last deed. */
		if (oci_chunks_take(chunks, &index) == OCI_CHUNKS_WAIT)
			oci_chunks_helped(chunks, false);
		return;
	}
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

/* Does the peer do nothing but wait? */
static bool waits(struct near *near, const struct oci_invitations *all)
{
	/* Relaxed, all: hints. */
	uint64_t before = oci_load_relaxed(&near->turns), turns = oci_load_relaxed(&all->turns);
	bool stands = turns == before || oci_load_relaxed(&all->away);

	before = turns;
	for (unsigned int i = 0; i < TURN_POLLS && turns == before && !stands; i++) {
		oci_cpu_relax();
		turns = oci_load_relaxed(&all->turns);
	}
	oci_store_relaxed(&near->turns, turns);
	return turns != before;
}

/* From both ends. How many bytes from the front on, or -errno. *own: as many this end has read. */
static ssize_t read_chunks(struct oci_peer *peer, const struct oci_chunks *chunks,
			   const struct rest *rest, size_t *own)
{
	enum oci_chunks_state state;
	uint64_t index;

	*own = 0;
	while ((state = oci_chunks_take(chunks, &index)) != OCI_CHUNKS_OVER) {
		size_t at = oci_chunk_at(chunks, index), length = oci_chunk_length(chunks, index);
		ssize_t moved;

		if (state == OCI_CHUNKS_WAIT) {
			await(peer, chunks);
			continue;
		}
		moved = read_piece(peer, rest, at, length);
		*own += moved > 0 ? (size_t)moved : 0;
		if (moved == (ssize_t)length) {
			oci_chunks_taken(chunks, index);
			continue;
		}
		/* All before this chunk is here. What the peer has copied behind it does not
		 * count; nor does it write any more when this returns. */
		oci_chunks_stop(chunks);
		await(peer, chunks);
		return at && moved < 0 ? (ssize_t)at : (ssize_t)at + moved;
	}
	return (ssize_t)chunks->bytes;
}

/* Likewise; -EAGAIN: all places are taken. */
static ssize_t read_shared(struct near *near, const struct rest *rest, size_t *pushed)
{
	struct oci_invitations *all = oci_peer_invitations(near->peer);
	struct oci_chunks chunks;
	int place = take_place(all);
	ssize_t moved;
	size_t own;

	if (place < 0)
		return -EAGAIN;
	open_place(all, place, rest->to, rest->from, rest->bytes);
	chunks = chunks_of(&all->invitation[place], rest->bytes);
	moved = read_chunks(near->peer, &chunks, rest, &own);
	if (oci_load_relaxed(chunks.helped) & OCI_HELP_FAILED)
		__atomic_store_n(&near->failed, true, __ATOMIC_RELAXED);
	close_place(all, place);
	*pushed = moved > (ssize_t)own ? (size_t)moved - own : 0;
	return moved;
}

/* The peer is invited once it waits. */
static ssize_t read_from(struct near *near, struct rest rest, size_t *pushed)
{
	const struct oci_invitations *all = oci_peer_invitations(near->peer);
	size_t bytes = rest.bytes;
	ssize_t moved = 0;

	while (rest.bytes) {
		size_t alone = rest.bytes < 2 * ALONE_BYTES ? rest.bytes : ALONE_BYTES;
		bool shared = waits(near, all);

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

ssize_t oci_invite_read(pid_t pid, void *to, uint64_t from, size_t bytes, size_t *pushed)
{
	struct near *near;
	ssize_t moved;

	*pushed = 0;
	if (!has_started() || pid == invite.self.pid)
		return -EAGAIN;
	near = hold(pid);
	if (!near)
		return -EAGAIN;
	/* Relaxed: a hint. */
	oci_store_relaxed(&oci_invited->away, 1);
	moved = read_from(near, (struct rest){ to, from, bytes }, pushed);
	oci_store_relaxed(&oci_invited->away, 0);
	release(near);
	return moved;
}

/* ---- the sender ------------------------------------------------------------------------------ */

static uint32_t busy;	 /* a lock that nobody waits for: one thread helps at a time */
static uint64_t last_ns; /* with the lock held: the last call, or chunk */

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

static bool push(const struct oci_invitation *v, const struct oci_chunks *chunks, uint64_t index)
{
	size_t at = oci_chunk_at(chunks, index), length = oci_chunk_length(chunks, index);
	struct iovec here = { (void *)(uintptr_t)(oci_load_relaxed(&v->from) + at), length };
	struct iovec there = { (void *)(uintptr_t)(oci_load_relaxed(&v->to) + at), length };
	pid_t pid = (pid_t)oci_load_relaxed(&v->pid);

	return is_reader(v, pid) && oci_os_vm_write(pid, &here, 1, &there, 1) == (ssize_t)length;
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

/* A chunk for whoever has left it, or, where `dead`, a look whether that process lives. False:
 * there was nothing to copy. */
static bool look_at(struct oci_invitations *all, unsigned int place, bool dead)
{
	struct oci_invitation *v = &all->invitation[place];
	struct oci_chunks chunks;
	bool found = false;
	uint64_t index;

	/* Sequentially consistent, both: see take_place(). Acquire: pairs with open_place(). */
	__atomic_store_n(&all->reading, 1 + place, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&all->places, __ATOMIC_SEQ_CST) & OPEN(place)) {
		chunks = chunks_of(v, oci_load_relaxed(&v->bytes));
		found = oci_chunks_help(&chunks, &index);
		if (found)
			oci_chunks_helped(&chunks, push(v, &chunks, index));
		else if (dead)
			close_if_dead(all, place);
	}
	/* Release: we have read it for the last time. Pairs with take_place(). */
	oci_store_release(&all->reading, 0);
	return found;
}

/* With the lock held. Was a chunk copied? */
static bool look_at_all(struct oci_invitations *all)
{
	static unsigned int idle;
	bool found = false, late = idle >= IDLE_LOOKS;

	for (unsigned int i = 0; i < OCI_INVITATIONS && !found; i++)
		found = oci_load_relaxed(&all->places) & OPEN(i) && look_at(all, i, late);
	idle = found || late ? 0 : idle + 1;
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
		found = look_at_all(oci_invited);
	last_ns = found ? oci_clock_ns() : now;
	__atomic_store_n(&busy, 0, __ATOMIC_RELEASE);
}
