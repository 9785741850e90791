/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The pools of slots of this process, for all its teams.
 *
 *   small     of OCI_SMALL_SLOT_BYTES, for operations that need no more; where none is to be had
 *             they take an ordinary one
 *   ordinary  for any operation
 *   kept      those that teams are guaranteed, where no ordinary one is free. Only a team's oldest
 *             operation that not all ranks have finished takes them, so each team holds no more
 *             than OCI_OPERATION_SLOTS, and one that it may have is free or not made yet. They
 *             are made when they are needed first: until then their room is promised.
 *   large     of OCI_NEAR_SLOT_BYTES, for blocking calls of two near ranks that both have one
 * (near.c)
 */
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/limits.h"
#include "os/os.h"
#include "team/team.h"

/* Looked at before the peers' progress is asked anew: beyond it, idle teams hold slots. */
#define OCI_SLOTS_SCANNED 16

/*
 * Between near ranks the slots of blocks of up to so many bytes are asked for early, so that few
 * are in use and these stay in the nearest cache. Larger ones lose: a rank that reads just behind
 * the one that writes is slower than one that lags. EPYC, 2026-11-22, "Slots asked for early" in
 * docs/results/experiments.md.
 */
#define REUSE_BYTES 4096

struct slot {
	struct oci_team *team; /* NULL: free */
	uint64_t seq;
	int64_t offset;
};

/*
 * To ask how far the peers are costs a cache line of each. A pool of OCI_LANES slots hardly asks,
 * but the first use of a slot of 64 KiB costs up to 0.1 ms, by its pages. So it gets one more when
 * it has asked so often: the first calls of a program take few, and a loop soon has all
 * (docs/results/experiments.md, "Slots of the first calls").
 */
#define ASKED_ENOUGH 8

struct pool {
	size_t bytes;			  /* of a slot */
	unsigned int asked_enough, asked; /* since the last one was made */
	struct slot *slot;
	unsigned int count, room;
	/* When memory was refused last, 0 it was not; since when, while somebody kept asking. */
	uint64_t refused_ns, refused_since_ns;
};

static struct pool small = { .bytes = OCI_SMALL_SLOT_BYTES },
		   ordinary = { .bytes = OCI_SLOT_BYTES, .asked_enough = ASKED_ENOUGH },
		   kept = { .bytes = OCI_SLOT_BYTES }, large = { .bytes = OCI_NEAR_SLOT_BYTES };
/* Of all teams together; kept.count of them are made, the rest is promised. */
static unsigned int guaranteed;
/*
 * Teams that may take large slots. There is one slot for each, as threads may be in collectives of
 * several such teams whose peers came to them in another order. Of a team only the operation that a
 * thread is in can hold a slot and wait for a peer that has none: what it left behind is read
 * without one. So a slot is free, or becomes free. Teams beyond these stay with what any two ranks
 * take.
 */
#define NEAR_TEAMS_MOST 32
static unsigned int near_teams;
/* Of all of them. 1 held; a spin lock, as it is held for nanoseconds on the
 * hot path, but when peers are asked or a slot is made. */
static uint64_t lock;

static void pools_lock(void)
{
	uint64_t free_word = 0;

	/* Acquire, pairs with the release in pools_unlock(). */
	while (!oci_compare_exchange(&lock, &free_word, 1)) {
		free_word = 0;
		oci_os_yield();
	}
}

static void pools_unlock(void)
{
	oci_store_release(&lock, 0);
}

static struct pool *pool_of(size_t bytes)
{
	if (bytes > OCI_SLOT_BYTES)
		return &large;
	return bytes > OCI_SMALL_SLOT_BYTES ? &ordinary : &small;
}

static bool slot_free(const struct slot *slot)
{
	/* Acquire, pairs with the release in oci_team_refresh(), which may be another thread's. */
	return !slot->team || __atomic_load_n(&slot->team->min_done, __ATOMIC_ACQUIRE) > slot->seq;
}

static struct slot *pool_find(const struct pool *pool, unsigned int limit)
{
	for (unsigned int i = 0; i < pool->count && i < limit; i++) {
		if (slot_free(&pool->slot[i]))
			return &pool->slot[i];
	}
	return NULL;
}

/* After a refusal memory is asked for again only so much later: asking reads files. Who waits asks
 * more often than this: */
#define OCI_RETRY_NS 10000000u
#define OCI_ASKING_NS 1000000000u

static void note_refusal(struct pool *pool)
{
	uint64_t now = oci_clock_ns();

	if (!pool->refused_ns || now - pool->refused_ns > OCI_ASKING_NS)
		pool->refused_since_ns = now;
	pool->refused_ns = now;
}

static bool has_room(struct pool *pool)
{
	unsigned int room = pool->room ? 2 * pool->room : 16;
	struct slot *grown;

	if (pool->count < pool->room)
		return true;
	grown = realloc(pool->slot, room * sizeof(*grown));
	if (!grown)
		return false;
	pool->slot = grown;
	pool->room = room;
	return true;
}

static struct slot *pool_grow(struct pool *pool)
{
	int64_t offset;

	if (pool->refused_ns && oci_clock_ns() - pool->refused_ns < OCI_RETRY_NS)
		return NULL;
	if (!has_room(pool))
		return NULL;
	offset = pool == &kept ? oci_segment_alloc_promised(pool->bytes) :
				 oci_segment_alloc(pool->bytes);
	if (offset < 0) {
		note_refusal(pool);
		return NULL;
	}
	pool->refused_ns = 0;
	pool->asked = 0;
	pool->slot[pool->count] = (struct slot){ .offset = offset };
	return &pool->slot[pool->count++];
}

static void refresh_holders(const struct pool *pool)
{
	const struct oci_team *last = NULL;

	for (unsigned int i = 0; i < pool->count; i++) {
		if (pool->slot[i].team && pool->slot[i].team != last)
			oci_team_refresh(pool->slot[i].team);
		last = pool->slot[i].team;
	}
}

static int grow_to(struct pool *pool, unsigned int count)
{
	while (pool->count < count && pool_grow(pool))
		;
	return pool->count >= count ? 0 : -ENOSPC;
}

/* A free ordinary slot becomes a kept one; as many ordinary ones stay as an operation holds. */
static bool keep_ordinary(void)
{
	struct slot *slot = pool_find(&ordinary, ordinary.count);

	if (!slot || ordinary.count <= OCI_OPERATION_SLOTS || !has_room(&kept))
		return false;
	kept.slot[kept.count++] = (struct slot){ .offset = slot->offset };
	*slot = ordinary.slot[--ordinary.count];
	return true;
}

static bool guarantee_one(void)
{
	if (oci_segment_promise(OCI_SLOT_BYTES)) {
		refresh_holders(&ordinary);
		if (!keep_ordinary())
			return false;
	}
	guaranteed++;
	return true;
}

/* Takes back the guarantee of one slot. A kept one too many is for any operation, from then on; it
 * stays one that nobody takes when there is no memory for the note. */
static void guarantee_less(void)
{
	guaranteed--;
	if (kept.count <= guaranteed)
		oci_segment_unpromise(OCI_SLOT_BYTES);
	else if (!has_room(&ordinary))
		kept.count--;
	else
		ordinary.slot[ordinary.count++] = kept.slot[--kept.count];
}

int oci_slots_guarantee(struct oci_team *team)
{
	unsigned int count = 0;
	int error;

	pools_lock();
	/* Beside those guaranteed: operations that are not their teams' oldest need some. */
	error = grow_to(&ordinary, OCI_OPERATION_SLOTS);
	while (!error && count < OCI_OPERATION_SLOTS && guarantee_one())
		count++;
	team->has_slots = count == OCI_OPERATION_SLOTS;
	if (!error && !team->has_slots)
		error = -ENOSPC;
	while (!team->has_slots && count--)
		guarantee_less();
	pools_unlock();
	if (error)
		oci_segment_full();
	return error;
}

int oci_slots_reserve_large(struct oci_team *team)
{
	int error = 0;

	pools_lock();
	if (!team->has_large_slot) {
		error = near_teams < NEAR_TEAMS_MOST ? grow_to(&large, near_teams + 1) : -ENOSPC;
		team->has_large_slot = !error;
		near_teams += team->has_large_slot;
	}
	pools_unlock();
	return error;
}

static void spare_large(struct oci_team *team)
{
	if (near_teams) /* none of the parent's count in a forked child */
		near_teams -= team->has_large_slot;
	team->has_large_slot = false;
}

void oci_slots_spare_large(struct oci_team *team)
{
	pools_lock();
	spare_large(team);
	pools_unlock();
}

void oci_slots_fork_child(void)
{
	lock = 0;
	small.count = ordinary.count = kept.count = large.count = 0;
	guaranteed = near_teams = 0;
}

/*
 * Is a slot held by an operation, other than this one, that is under way here? It may wait for one
 * of this team on another rank. What was left behind is read by peers when they come to it.
 */
static bool held_under_way(const struct pool *pool, const struct oci_team *team, uint64_t seq)
{
	for (unsigned int i = 0; i < pool->count; i++) {
		const struct slot *slot = &pool->slot[i];

		if (slot_free(slot) || (slot->team == team && slot->seq == seq))
			continue;
		/* Acquire: as of slot_free(), of the release in oci_team_finish(). */
		if (__atomic_load_n(&slot->team->done, __ATOMIC_ACQUIRE) <= slot->seq)
			return true;
	}
	return false;
}

/*
 * Has memory been refused for so long that it is not worth waiting for, though all slots are held
 * by operations that are over here? The peers that have yet to read them may compute, or wait
 * themselves for slots of this team.
 */
uint64_t oci_slots_starved_ns = 10000000000u;

static bool starved(void)
{
	return kept.refused_ns && kept.refused_ns - kept.refused_since_ns >= oci_slots_starved_ns;
}

/* One of those that the team is guaranteed, when this operation is its oldest and none of `pool` is
 * to be had. NULL: it is not, or *refused says that the kernel has no memory and waiting may be in
 * vain. */
static struct slot *find_kept(const struct pool *pool, struct oci_team *team, uint64_t seq,
			      bool *refused)
{
	struct slot *slot;

	oci_team_refresh(team);
	if (__atomic_load_n(&team->min_done, __ATOMIC_RELAXED) < seq)
		return NULL;
	slot = pool_find(&kept, kept.count);
	if (!slot && kept.count < guaranteed) {
		slot = pool_grow(&kept);
		*refused = !slot && (held_under_way(pool, team, seq) ||
				     held_under_way(&ordinary, team, seq) ||
				     held_under_way(&kept, team, seq) || starved());
	}
	if (!slot) {
		refresh_holders(&kept);
		slot = pool_find(&kept, kept.count);
	}
	return slot;
}

static struct slot *find_or_make(struct pool *pool)
{
	struct slot *slot = pool_find(pool, OCI_SLOTS_SCANNED);

	if (!slot && pool->count < OCI_LANES && pool->asked >= pool->asked_enough)
		slot = pool_grow(pool);
	if (!slot) {
		pool->asked++;
		refresh_holders(pool);
		slot = pool_find(pool, pool->count);
	}
	return slot ? slot : pool_grow(pool);
}

int64_t oci_slot_acquire(struct oci_team *team, uint64_t seq, size_t bytes, size_t block)
{
	struct pool *pool = pool_of(bytes);
	struct slot *slot;
	int64_t offset = -EAGAIN;
	bool refused = false;

	pools_lock();
	if (block <= REUSE_BYTES && oci_topo_near(team->common))
		oci_team_all_done(team, seq);
	slot = find_or_make(pool);
	if (!slot && pool == &small)
		slot = find_or_make(&ordinary);
	if (!slot && pool != &large)
		slot = find_kept(pool, team, seq, &refused);
	if (slot) {
		slot->team = team;
		slot->seq = seq;
		offset = slot->offset;
	}
	pools_unlock();
	if (!slot && refused)
		return oci_team_fail(
			team, -ENOMEM, -1,
			"no memory for a buffer of %zu bytes that a collective needs, "
			"while others hold all there are: give the job more memory, or "
			"a larger /dev/shm",
			bytes);
	return offset;
}

int64_t oci_slot_likely_next(size_t bytes)
{
	const struct slot *slot;
	int64_t offset;

	pools_lock();
	slot = pool_find(pool_of(bytes), OCI_SLOTS_SCANNED);
	offset = slot ? slot->offset : -EAGAIN;
	pools_unlock();
	return offset;
}

static void forget(struct pool *pool, const struct oci_team *team)
{
	for (unsigned int i = 0; i < pool->count; i++) {
		if (pool->slot[i].team == team)
			pool->slot[i].team = NULL;
	}
}

void oci_slots_forget(struct oci_team *team)
{
	pools_lock();
	spare_large(team);
	forget(&small, team);
	forget(&ordinary, team);
	forget(&kept, team);
	forget(&large, team);
	for (unsigned int i = 0; team->has_slots && guaranteed && i < OCI_OPERATION_SLOTS; i++)
		guarantee_less();
	team->has_slots = false;
	pools_unlock();
}

size_t oci_slots_bytes(void)
{
	return small.count * small.bytes + (ordinary.count + kept.count) * OCI_SLOT_BYTES +
	       large.count * large.bytes;
}
