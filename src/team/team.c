/* SPDX-License-Identifier: BSD-3-Clause */
#include "team/team.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "os/os.h"
#include "team/creation.h"
#include "team/ptracer.h"

/* Mixes the signatures of a history: 2^64 divided by the golden ratio. */
#define OCI_HASH 0x9e3779b97f4a7c15ull

/* Teams whose members have not all left yet; their memory may still be read by peers. */
static struct {
	pthread_mutex_t lock;
	struct oci_team *first;
} leaving = { .lock = PTHREAD_MUTEX_INITIALIZER };

int oci_team_say(struct oci_team *team, int error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(team->sentence, sizeof(team->sentence), format, args);
	va_end(args);
	return error;
}

int oci_team_fail(struct oci_team *team, int error, int culprit, const char *format, ...)
{
	int first = __atomic_load_n(&team->error, __ATOMIC_ACQUIRE);
	bool failing = false;
	va_list args;

	if (first)
		return first;
	/* One thread fails the team; another that comes by meanwhile returns its error. Relaxed:
	 * all that the error stands for is released with it, below. */
	if (!__atomic_compare_exchange_n(&team->failing, &failing, true, false, __ATOMIC_RELAXED,
					 __ATOMIC_RELAXED)) {
		while (!(first = __atomic_load_n(&team->error, __ATOMIC_ACQUIRE)))
			oci_os_yield();
		return first;
	}
	va_start(args, format);
	vsnprintf(team->sentence, sizeof(team->sentence), format, args);
	va_end(args);
	/* Pairs with the acquire in oci_team_look(): a peer that waits for us learns why in vain.
	 * Sequentially consistent for oci_write_begin(), and before the error, as whoever sees that
	 * one goes on to oci_team_revoke(). */
	if (team->own)
		__atomic_store_n(&team->own->progress.poison, oci_poison(error, (uint32_t)culprit),
				 __ATOMIC_SEQ_CST);
	team->dead_rank = error == -EOWNERDEAD ? culprit : -1;
	/* Release: the poison comes before it in every thread of ours. Pairs with the acquire in
	 * oci_exec_over() and of those that lost above. */
	__atomic_store_n(&team->error, error, __ATOMIC_RELEASE);
	oci_error("%s", team->sentence);
	return error;
}

/* Has this rank, which has finished all operations below `done`, called the same as we? */
static void compare_history(struct oci_team *team, uint32_t rank, uint64_t done)
{
	const struct oci_progress_block *block = &team->member[rank].region->progress;
	/* Acquire: `done` is read again after it. Pairs with the release in oci_team_finish(). */
	uint64_t theirs = oci_load_acquire(&block->history[done % OCI_HISTORY]);
	/* Acquire: pairs with the release of `done` in oci_team_finish(). */
	uint64_t ours = __atomic_load_n(&team->done, __ATOMIC_ACQUIRE), mine;

	if (done > ours || ours - done >= OCI_LANES)
		return;
	/* Acquire: their `done` is read again after it. Pairs with the release in
	 * oci_team_finish(). */
	mine = __atomic_load_n(&team->history[done % (2 * OCI_LANES)], __ATOMIC_ACQUIRE);
	/* Written anew meanwhile: another time, then. */
	if (mine != theirs && oci_load_relaxed(&block->done) - done < OCI_HISTORY - 1)
		__atomic_store_n(&team->stranger, rank + 1, __ATOMIC_RELAXED);
}

void oci_team_refresh(struct oci_team *team)
{
	uint64_t least = UINT64_MAX;

	for (uint32_t rank = 0; rank < team->size; rank++) {
		/* Acquire pairs with the release in oci_team_finish(): what the rank read from our
		 * lines was read before we write them anew. */
		uint64_t done = oci_load_acquire(&team->member[rank].region->progress.done);

		if (rank != team->rank)
			compare_history(team, rank, done);
		if (done < least)
			least = done;
	}
	__atomic_store_n(&team->min_done, least, __ATOMIC_RELEASE);
}

bool oci_team_all_done(struct oci_team *team, uint64_t below)
{
	if (__atomic_load_n(&team->min_done, __ATOMIC_ACQUIRE) >= below)
		return true;
	oci_team_refresh(team);
	return __atomic_load_n(&team->min_done, __ATOMIC_ACQUIRE) >= below;
}

void oci_team_finish(struct oci_team *team, uint64_t seq, uint64_t signature)
{
	struct oci_progress_block *block = &team->own->progress;
	uint64_t done = team->done;

	team->finished |= 1ull << seq % OCI_LANES;
	team->signature[seq % OCI_LANES] = signature;
	while (team->finished & 1ull << done % OCI_LANES) {
		uint64_t before = team->history[done % (2 * OCI_LANES)];
		uint64_t hash = (before ^ team->signature[done % OCI_LANES]) * OCI_HASH;

		team->finished &= ~(1ull << done % OCI_LANES);
		done++;
		/* Release: pairs with the acquire in compare_history(). */
		__atomic_store_n(&team->history[done % (2 * OCI_LANES)], hash, __ATOMIC_RELEASE);
		/* Release: the history comes before its number, for compare_history(), which may
		 * run in any thread. */
		__atomic_store_n(&team->done, done, __ATOMIC_RELEASE);
		/* One entry, then its number, so that a peer that sees an entry written anew sees
		 * that `done` had come near it. Release: our reads of the peers' lines come before
		 * the permission to reuse them. Pairs with oci_team_refresh(). */
		oci_store_release(&block->history[done % OCI_HISTORY], hash);
		oci_store_release(&block->done, done);
	}
}

/* Does it know what is on our card? */
static bool has_refused(const struct oci_member *member)
{
	return oci_load_relaxed(&member->region->card.said) == OCI_SAID_NO;
}

/* Has this member left, so that it touches none of our memory again? */
static bool member_left(const struct oci_team *team, uint32_t rank)
{
	const struct oci_member *member = &team->member[rank];

	/* Never mapped: the team was refused. */
	return !member->region || oci_member_has_left(member) ||
	       (team->state == OCI_TEAM_REFUSED && has_refused(member)) ||
	       oci_peer_dead(member->peer);
}

static bool all_left(const struct oci_team *team)
{
	for (uint32_t rank = 0; rank < team->size; rank++) {
		if (rank != team->rank && !member_left(team, rank))
			return false;
	}
	return true;
}

static void team_give_back(struct oci_team *team)
{
	oci_slots_forget(team);
	for (uint32_t rank = 0; team->member && rank < team->size; rank++) {
		if (team->member[rank].peer)
			oci_peer_put(team->member[rank].peer);
	}
	oci_hierarchy_put(team->hierarchy);
	team->hierarchy = NULL;
	free(team->member);
	team->member = NULL;
	free(team->learned);
	team->learned = NULL;
	free(team->names);
	team->names = NULL;
	if (team->own) {
		/* Before what the region is used for next, whose memory comes out of the segment's
		 * lock after it went in. For hear(), of who comes late to a team that was refused.
		 */
		oci_store_release(&team->own->progress.tag, 0);
		oci_segment_free(team->region_offset, oci_region_bytes(team->size));
	}
	team->own = NULL;
}

static void (*leaving_release)(struct oci_team *team);

void oci_team_leave(struct oci_team *team, void (*release)(struct oci_team *team))
{
	/* The peers' regions are known from the hellos on; before that nobody knows ours. */
	bool shared = team->state == OCI_TEAM_READY || team->member[team->rank].region;

	if (team->own)
		oci_store_release(&team->own->progress.left, 1);
	if (team->state == OCI_TEAM_START)
		oci_creation_free(team);
	if (!shared) {
		team_give_back(team);
		release(team);
		return;
	}
	pthread_mutex_lock(&leaving.lock);
	leaving_release = release;
	team->leaving_next = leaving.first;
	leaving.first = team;
	pthread_mutex_unlock(&leaving.lock);
	oci_team_collect();
}

void oci_team_fork_child(void)
{
	oci_registrations_fork_child();
	oci_segment_fork_child();
	oci_arena_fork_child();
	oci_peers_fork_child();
	oci_slots_fork_child();
	oci_hierarchy_fork_child();
	oci_hello_fork_child();
	oci_ptracer_fork_child();
	pthread_mutex_init(&leaving.lock, NULL);
	leaving.first = NULL;
}

void oci_team_collect(void)
{
	struct oci_team *gone = NULL;

	if (!__atomic_load_n(&leaving.first, __ATOMIC_RELAXED))
		return;
	pthread_mutex_lock(&leaving.lock);
	for (struct oci_team **at = &leaving.first; *at;) {
		struct oci_team *team = *at;

		if (!all_left(team)) {
			at = &team->leaving_next;
			continue;
		}
		*at = team->leaving_next;
		team->leaving_next = gone;
		gone = team;
	}
	pthread_mutex_unlock(&leaving.lock);
	while (gone) {
		struct oci_team *team = gone;

		gone = team->leaving_next;
		team_give_back(team);
		leaving_release(team);
	}
}
