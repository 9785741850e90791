/* SPDX-License-Identifier: BSD-3-Clause */
/* The pool of slots of this process, for all its teams. */
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

static struct {
	uint64_t lock; /* 1 held; a spin lock, as it is held for nanoseconds on the hot path */
	struct slot *slot;
	unsigned int count, room;
} pool;

static void pool_lock(void)
{
	uint64_t free_word = 0;

	/* Acquire, pairs with the release in pool_unlock(). */
	while (!oci_compare_exchange(&pool.lock, &free_word, 1)) {
		free_word = 0;
		oci_os_yield();
	}
}

static void pool_unlock(void)
{
	oci_store_release(&pool.lock, 0);
}

static bool slot_free(const struct slot *slot)
{
	/* Acquire, pairs with the release in oci_team_refresh(), which may be another thread's. */
	return !slot->team || __atomic_load_n(&slot->team->min_done, __ATOMIC_ACQUIRE) > slot->seq;
}

static struct slot *pool_find(unsigned int limit)
{
	for (unsigned int i = 0; i < pool.count && i < limit; i++) {
		if (slot_free(&pool.slot[i]))
			return &pool.slot[i];
	}
	return NULL;
}

/* After a refusal memory is asked for again only so much later: asking reads files. */
#define OCI_RETRY_NS 10000000u

static struct slot *pool_grow(void)
{
	static uint64_t refused_ns;
	int64_t offset;

	if (refused_ns && oci_clock_ns() - refused_ns < OCI_RETRY_NS)
		return NULL;
	if (pool.count == pool.room) {
		unsigned int room = pool.room ? 2 * pool.room : 16;
		struct slot *grown = realloc(pool.slot, room * sizeof(*grown));

		if (!grown)
			return NULL;
		pool.slot = grown;
		pool.room = room;
	}
	offset = oci_segment_alloc(OCI_SLOT_BYTES);
	refused_ns = offset < 0 ? oci_clock_ns() : 0;
	if (offset < 0)
		return NULL;
	pool.slot[pool.count] = (struct slot){ .offset = offset };
	return &pool.slot[pool.count++];
}

int oci_slots_reserve(unsigned int count)
{
	bool enough;

	pool_lock();
	while (pool.count < count && pool_grow())
		;
	enough = pool.count >= count;
	pool_unlock();
	return enough ? 0 : -ENOSPC;
}

void oci_slots_fork_child(void)
{
	pool.lock = 0;
	pool.count = 0;
}

int64_t oci_slot_acquire(struct oci_team *team, uint64_t seq, size_t bytes)
{
	struct slot *slot;
	int64_t offset = -EAGAIN;

	pool_lock();
	/* Relaxed: a hint, which another thread's progress may change. */
	if (bytes <= REUSE_BYTES && __atomic_load_n(&team->distance.near, __ATOMIC_RELAXED))
		oci_team_all_done(team, seq);
	slot = pool_find(OCI_SLOTS_SCANNED);
	/* A few are made without asking; beyond, those of idle teams are looked for first. */
	if (!slot && pool.count < OCI_LANES)
		slot = pool_grow();
	if (!slot) {
		for (unsigned int i = 0; i < pool.count; i++) {
			if (pool.slot[i].team)
				oci_team_refresh(pool.slot[i].team);
		}
		slot = pool_find(pool.count);
	}
	if (!slot)
		slot = pool_grow();
	if (slot) {
		slot->team = team;
		slot->seq = seq;
		offset = slot->offset;
	}
	pool_unlock();
	return offset;
}

int64_t oci_slot_likely_next(void)
{
	const struct slot *slot;
	int64_t offset;

	pool_lock();
	slot = pool_find(OCI_SLOTS_SCANNED);
	offset = slot ? slot->offset : -EAGAIN;
	pool_unlock();
	return offset;
}

void oci_slots_forget(const struct oci_team *team)
{
	pool_lock();
	for (unsigned int i = 0; i < pool.count; i++) {
		if (pool.slot[i].team == team)
			pool.slot[i].team = NULL;
	}
	pool_unlock();
}

unsigned int oci_slots_made(void)
{
	return pool.count;
}
