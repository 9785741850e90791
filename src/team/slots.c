/* SPDX-License-Identifier: BSD-3-Clause */
/* The pools of slots of this process, for all its teams: ordinary ones and those of near ranks. */
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/limits.h"
#include "os/os.h"
#include "team/team.h"

/* Looked at before the peers' progress is asked anew: beyond it, idle teams hold slots. */
#define OCI_SLOTS_SCANNED 16

/*
 * Between near ranks the slots of operations of up to so many bytes are asked for early, so that
 * few are in use and these stay in the nearest cache. AMD EPYC of family 25, two threads of a core,
 * 2026-11-22, six turns: 1 KiB 0.99 to 1.13 times as fast; 4 KiB Bcast 1.26, Reduce 1.24, Gather
 * 1.15, Scatter 1.05, Allgather 0.92. Not larger ones: 16 KiB are 0.93 to 1.02, 64 KiB 0.5 to 0.8
 * times as fast. A rank that reads just behind the one that writes is slower than one that lags.
 */
#define REUSE_BYTES 4096

struct slot {
	struct oci_team *team; /* NULL: free */
	uint64_t seq;
	int64_t offset;
};

struct pool {
	size_t bytes; /* of a slot */
	struct slot *slot;
	unsigned int count, room;
	uint64_t refused_ns; /* when memory was refused last, 0 it was not */
};

static struct pool ordinary = { .bytes = OCI_SLOT_BYTES }, large = { .bytes = OCI_NEAR_SLOT_BYTES };
/*
 * Teams that may take large slots. There is one slot for each, as threads may be in collectives of
 * several such teams whose peers came to them in another order. Of a team only the operation that a
 * thread is in can hold a slot and wait for a peer that has none: what it left behind is read
 * without one. So a slot is free, or becomes free. Teams beyond these stay with what any two ranks
 * take.
 */
#define NEAR_TEAMS_MOST 32
static unsigned int near_teams;
/* Of both. 1 held; a spin lock, as it is held for nanoseconds on the hot path. */
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
	return bytes > OCI_SLOT_BYTES ? &large : &ordinary;
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

/* After a refusal memory is asked for again only so much later: asking reads files. */
#define OCI_RETRY_NS 10000000u

static struct slot *pool_grow(struct pool *pool)
{
	int64_t offset;

	if (pool->refused_ns && oci_clock_ns() - pool->refused_ns < OCI_RETRY_NS)
		return NULL;
	if (pool->count == pool->room) {
		unsigned int room = pool->room ? 2 * pool->room : 16;
		struct slot *grown = realloc(pool->slot, room * sizeof(*grown));

		if (!grown)
			return NULL;
		pool->slot = grown;
		pool->room = room;
	}
	offset = oci_segment_alloc(pool->bytes);
	pool->refused_ns = offset < 0 ? oci_clock_ns() : 0;
	if (offset < 0)
		return NULL;
	pool->slot[pool->count] = (struct slot){ .offset = offset };
	return &pool->slot[pool->count++];
}

static int grow_to(struct pool *pool, unsigned int count)
{
	while (pool->count < count && pool_grow(pool))
		;
	return pool->count >= count ? 0 : -ENOSPC;
}

int oci_slots_reserve(unsigned int count)
{
	int error;

	pools_lock();
	error = grow_to(&ordinary, count);
	pools_unlock();
	return error;
}

int oci_slots_reserve_near(struct oci_team *team)
{
	int error = 0;

	pools_lock();
	if (!team->has_near_slot) {
		error = near_teams < NEAR_TEAMS_MOST ? grow_to(&large, near_teams + 1) : -ENOSPC;
		team->has_near_slot = !error;
		near_teams += team->has_near_slot;
	}
	pools_unlock();
	return error;
}

void oci_slots_fork_child(void)
{
	lock = 0;
	ordinary.count = large.count = near_teams = 0;
}

int64_t oci_slot_acquire(struct oci_team *team, uint64_t seq, size_t bytes)
{
	struct pool *pool = pool_of(bytes);
	struct slot *slot;
	int64_t offset = -EAGAIN;

	pools_lock();
	/* Relaxed: a hint, which another thread's progress may change. */
	if (bytes <= REUSE_BYTES && __atomic_load_n(&team->distance.near, __ATOMIC_RELAXED))
		oci_team_all_done(team, seq);
	slot = pool_find(pool, OCI_SLOTS_SCANNED);
	/* A few are made without asking; beyond, those of idle teams are looked for first. */
	if (!slot && pool->count < OCI_LANES)
		slot = pool_grow(pool);
	if (!slot) {
		for (unsigned int i = 0; i < pool->count; i++) {
			if (pool->slot[i].team)
				oci_team_refresh(pool->slot[i].team);
		}
		slot = pool_find(pool, pool->count);
	}
	if (!slot)
		slot = pool_grow(pool);
	if (slot) {
		slot->team = team;
		slot->seq = seq;
		offset = slot->offset;
	}
	pools_unlock();
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
	if (near_teams) /* none of the parent's count in a forked child */
		near_teams -= team->has_near_slot;
	team->has_near_slot = false;
	forget(&ordinary, team);
	forget(&large, team);
	pools_unlock();
}

size_t oci_slots_bytes(void)
{
	return ordinary.count * ordinary.bytes + large.count * large.bytes;
}
