/* SPDX-License-Identifier: BSD-3-Clause */
/* Who can be invited, and when: processes that this one has read from. */
#include "copy/invitee.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "copy/access.h"
#include "os/os.h"

/* Of one whose sender is far: 64 KiB are 1.5 times as fast where the sender has just written them,
 * but 0.93 to 0.97 where it has not (AMD EPYC of family 26, 2026-11-25). */
#define FAR_LEAST ((size_t)96 << 10)
/* One look in so many is timed; a line that takes longer counts as this. */
#define LINE_LOOKS 4
#define LINE_MOST_NS (4 * OCI_NEAR_NS)
#define CROSSED_READS 8
/* Looks at a peer's turns, with a pause each. */
#define TURN_POLLS 24

static struct oci_invitations nobody;
struct oci_invitations *oci_invited = &nobody;
struct oci_segment_id oci_invite_self;
uint64_t oci_invite_near_ns = OCI_NEAR_NS;

#define WAIT_LEAST_NS ((uint64_t)1000000)
#define WAIT_MOST_NS ((uint64_t)128000000)

#define LISTS 64
static struct {
	pthread_mutex_t lock;
	struct oci_invitee *list[LISTS]; /* by number; under the lock */
	uint32_t node_ranks;		 /* 0: not allowed */
	double granted;			 /* CPUs, by a control group; 0: no limit */
	uint32_t started;		 /* atomic: NO, and then one of the others */
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
		error = oci_segment_self(&oci_invite_self, invite.node_ranks);
	if (!error) {
		struct oci_invitations *all = oci_segment_invitations();

		invite.granted = oci_os_cgroup_cpus();
		/* Release: pairs with the acquire in find(). */
		oci_store_release(&all->helps, 1);
		__atomic_store_n(&oci_invited, all, __ATOMIC_RELAXED);
	}
	/* Release: pairs with the acquire in oci_invite_has_started(). */
	__atomic_store_n(&invite.started, error ? REFUSED : YES, __ATOMIC_RELEASE);
}

bool oci_invite_has_started(void)
{
	uint32_t started = __atomic_load_n(&invite.started, __ATOMIC_ACQUIRE);

	if (started == NO && invite.node_ranks) {
		pthread_mutex_lock(&invite.lock);
		if (invite.started == NO)
			start();
		started = invite.started;
		pthread_mutex_unlock(&invite.lock);
	}
	return started == YES;
}

void oci_invite_fork_child(void)
{
	pthread_mutex_init(&invite.lock, NULL);
	oci_access_fork_child();
	oci_invite_sender_fork_child();
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

/* With the lock held: their memory is kept no longer than they live. */
static void forget_dead(void)
{
	for (unsigned int i = 0; i < LISTS; i++) {
		struct oci_invitee **at = &invite.list[i], *near;

		while ((near = *at)) {
			if (!near->peer || near->users || !oci_peer_dead(near->peer)) {
				at = &near->next;
				continue;
			}
			*at = near->next;
			oci_peer_put(near->peer);
			free(near);
		}
	}
}

/* With the lock held. NULL: no memory. */
static struct oci_invitee *near_of(pid_t pid)
{
	struct oci_invitee **list = &invite.list[(unsigned int)pid % LISTS], *near;

	for (near = *list; near; near = near->next)
		if (near->pid == pid)
			return near;
	/* They are looked for where there is one more. */
	forget_dead();
	near = calloc(1, sizeof(*near));
	if (!near)
		return NULL;
	near->pid = pid;
	for (unsigned int length = 0; length < OCI_LEARNED_LENGTHS; length++)
		near->word[length] = length >= OCI_LEARNED_EMPTIES ? OCI_LEARNED_SLOTS :
								     OCI_LEARNED_AT_ONCE;
	near->next = *list;
	*list = near;
	return near;
}

static void look_later(struct oci_invitee *near, uint64_t now)
{
	if (near->wait_ns < WAIT_MOST_NS)
		near->wait_ns = near->wait_ns ? 2 * near->wait_ns : WAIT_LEAST_NS;
	near->due_ns = now + near->wait_ns;
}

/* With the lock held. */
static void let_go(struct oci_invitee *near)
{
	if (near->users || !near->gone)
		return;
	oci_peer_put(near->peer);
	near->peer = NULL;
	near->gone = false;
}

void oci_invite_forget_dead(void)
{
	pthread_mutex_lock(&invite.lock);
	forget_dead();
	pthread_mutex_unlock(&invite.lock);
}

/* With the lock held. Of messages that caches do not hold the first reads are shared: programs of a
 * few gain by it on most machines. Others may lose more by slots than they gain, by the machine. */
static struct oci_invitee_way way_of(struct oci_invitee *near, size_t bytes)
{
	unsigned int length = oci_learned_length(bytes);
	struct oci_invitee_way way;
	bool first = length >= OCI_LEARNED_EMPTIES && !near->reads[length];
	uint8_t advice = 0;

	/* Where shorter ones have shown which way is quicker here, the first ones go so. */
	for (unsigned int shorter = length; first && shorter-- && !advice;)
		advice = oci_learned_advice(&near->learned[shorter]);
	if (advice)
		near->word[length] = advice;
	way.shared = oci_learned_way(&near->learned[length], &near->word[length], length,
				     near->reads[length]++, false, &way.tries);
	return way;
}

void oci_invitee_tell(struct oci_invitee *near, size_t bytes, bool shared, uint64_t ns)
{
	unsigned int length = oci_learned_length(bytes);

	pthread_mutex_lock(&invite.lock);
	oci_learned_tell(&near->learned[length], &near->word[length], length, shared, bytes, ns);
	pthread_mutex_unlock(&invite.lock);
}

struct oci_invitee *oci_invitee_get(pid_t pid, size_t bytes, struct oci_invitee_way *way)
{
	uint64_t now = oci_clock_tick_ns();
	struct oci_invitee *near;

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
	if (near) {
		near->users++;
		*way = way_of(near, bytes);
	}
	pthread_mutex_unlock(&invite.lock);
	return near;
}

/* Whoever has declined is not asked for a while. */
void oci_invitee_put(struct oci_invitee *near)
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

/*
 * The count of turns, from the peer's cache; now and then timed, as team/near.c does it: far from
 * it two ends copy as fast by two system calls as by slots, so there the peer is left to read its
 * own messages. The host of a virtual machine may move either at any time.
 */
static uint64_t look_at_turns(struct oci_invitee *near, const struct oci_invitations *all)
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

static bool is_close(const struct oci_invitee *near)
{
	uint64_t ns = oci_load_relaxed(&near->line_ns);

	return ns && ns < oci_invite_near_ns;
}

bool oci_invitee_is_apart(const struct oci_invitee *near, size_t bytes)
{
	return oci_load_relaxed(&near->crossed) && (bytes < OCI_INVITE_LARGE || !is_close(near));
}

bool oci_invitee_waits(struct oci_invitee *near, size_t bytes)
{
	const struct oci_invitations *all = oci_peer_invitations(near->peer);
	uint64_t before = oci_load_relaxed(&near->turns), turns = look_at_turns(near, all);
	uint64_t away = oci_load_relaxed(&all->away), crossed = oci_load_relaxed(&near->crossed);
	bool stands = turns == before;

	before = turns;
	oci_store_relaxed(&near->turns, turns);
	crossed = away != OCI_AWAY_NOT ? CROSSED_READS : crossed ? crossed - 1 : 0;
	oci_store_relaxed(&near->crossed, crossed);
	if (oci_invitee_is_apart(near, bytes) || (bytes < FAR_LEAST && !is_close(near)))
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
