/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How the ranks of a team lie: what is the closest thing that all of them share?
 *
 * Between two ranks that share a cache 8 to 256 KiB through a slot are up to 1.7 times as fast as a
 * single copy, and take up to three times as long where they share none (coll/rows.c). The places
 * of the ranks tell, but for those of a virtual machine, and of one that does not describe its
 * caches. There each rank times, while the team is made, how long a few lines take that the next
 * rank has just written (OCI_NEAR_NS). All lines come that fast only where all ranks share a cache.
 * Ranks that are not bound and have more CPUs than they are may part later: they are not near, nor
 * are more ranks than CPUs, and neither measures.
 */
#include <sched.h>

#include "base/clock.h"
#include "team/team.h"

static uint64_t line_ns(const uint64_t *word)
{
	uint64_t before, start, end, cpu;

	oci_clock_ns(); /* its code and data are in the cache from here on */
	before = oci_clock_ns();
	start = oci_clock_ns();
	/* Acquire: the clock is read behind the load, as it is behind a fence where it is no system
	 * call. */
	cpu = oci_load_acquire(word);
	end = oci_clock_ns();
	/* Written on the CPU where this rank runs: ranks that are not bound will part. */
	if (cpu == (uint64_t)(sched_getcpu() + 1))
		return UINT64_MAX;
	return end - start > start - before ? end - start - (start - before) : 0;
}

struct oci_near_source oci_near_source = { true, true, line_ns };

void oci_near_offer(struct oci_region *own)
{
	uint64_t cpu = (uint64_t)(sched_getcpu() + 1);

	/* Relaxed: a peer knows the region by a message that is sent later. */
	for (unsigned int i = 0; i < OCI_LANES; i++)
		oci_store_relaxed(&own->lane[i].ack.near, cpu);
}

/* By most of the lines: a few may have met an interrupt, or have left the peer's cache. */
static bool measured(const struct oci_region *peer)
{
	unsigned int below = 0;

	for (unsigned int i = 0; i < OCI_LANES; i++) {
		/* Not one behind the other: a prefetcher would fetch them. */
		const struct oci_lane *lane = &peer->lane[i * 5 % OCI_LANES];

		/* Relaxed: for the page's sake, which is touched for the first time. */
		oci_load_relaxed(&lane->post.flag);
		below += oci_near_source.line_ns(&lane->ack.near) < OCI_NEAR_NS;
	}
	return 2 * below > OCI_LANES;
}

static enum oci_topo_level by_places(const struct oci_team *team)
{
	enum oci_topo_level common = OCI_TOPO_CORE;

	for (uint32_t r = 1; r < team->size; r++) {
		enum oci_topo_level level =
			oci_topo_common(&team->member[0].place, &team->member[r].place);

		common = level > common ? level : common;
	}
	return common;
}

/* Does it say something of these ranks, what lines take between them? */
static bool can_measure(const struct oci_team *team)
{
	return !oci_near_source.by_cpus || (!team->may_part && !team->oversubscribed);
}

enum oci_topo_level oci_near_find(struct oci_team *team)
{
	const struct oci_member *next = &team->member[(team->rank + 1) % team->size];
	bool told = true;

	for (uint32_t r = 0; r < team->size; r++)
		told &= team->member[r].is_told;
	if (told || team->size == 1)
		return by_places(team);
	return can_measure(team) && measured(next->region) ? OCI_TOPO_L3 : OCI_TOPO_MACHINE;
}

/*
 * In the first of these calls each rank takes a large slot, where it gets the memory, and writes on
 * its card whether: none is taken before a program gains by it, and no call needs what may be
 * refused. OCI_LANES calls later the other one has finished that first one, as no operation begins
 * before, and what it wrote is here.
 */
void oci_near_count_large(struct oci_team *team)
{
	const struct oci_card *its = &team->member[!team->rank].region->card;
	bool has;

	if (team->large_calls > OCI_LANES + 1)
		return;
	if (!team->large_calls++) {
		has = !oci_slots_reserve_large(team);
		/* Relaxed: before the release of `done` in oci_team_finish(), which pairs with the
		 * acquire in oci_team_refresh(). */
		__atomic_store_n(&team->own->card.has_large, has, __ATOMIC_RELAXED);
	} else if (team->large_calls == OCI_LANES + 2) {
		has = __atomic_load_n(&its->has_large, __ATOMIC_RELAXED);
		team->large_slots = has && team->has_large_slot;
		if (!team->large_slots)
			oci_slots_spare_large(team);
	}
}

bool oci_near_peer(const struct oci_team *team, uint32_t peer)
{
	const struct oci_member *mine = &team->member[team->rank], *its = &team->member[peer];

	if (oci_topo_near(team->common))
		return true;
	return mine->is_told && its->is_told &&
	       oci_topo_near(oci_topo_common(&mine->place, &its->place));
}

bool oci_apart_peer(const struct oci_team *team, uint32_t peer)
{
	const struct oci_member *mine = &team->member[team->rank], *its = &team->member[peer];

	if (mine->is_told && its->is_told)
		return oci_topo_apart(&mine->place, &its->place);
	return team->size == 2 && can_measure(team) && !oci_topo_near(team->common);
}
