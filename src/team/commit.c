/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The last word of a creation, in the region of rank 0: each member counts itself in, or one says
 * no. It is one atomic word, so all members read the same outcome from it, whenever they come by,
 * and whoever says no knows at once whether that was in time.
 *
 *   bits 24 to 63  of the team's tag (of rank 0's region)
 *   bit 23         somebody said no
 *   bits 0 to 22   members that are in
 *
 * The tag is there for who comes late: a team that was refused is left by its members without a
 * meeting, and its region may be another team's by then, with another tag.
 */
#include <errno.h>

#include "team/creation.h"

#define COUNT ((1ull << 23) - 1)
#define NO (1ull << 23)

static uint64_t initial(uint64_t tag)
{
	return tag & ~(NO | COUNT);
}

static uint64_t *word(const struct oci_team *team)
{
	return &team->member[0].region->progress.commit;
}

void oci_commit_open(struct oci_region *own, uint64_t tag)
{
	/* Relaxed: peers come here after messages that this rank sends later. */
	oci_store_relaxed(&own->progress.commit, initial(tag));
}

static int outcome(const struct oci_team *team, uint64_t value)
{
	if ((value & NO) || initial(value) != initial(team->member[0].tag))
		return -ECANCELED;
	return (value & COUNT) == team->size;
}

/* Acquire and release, here and below: what a member did before it counted itself in comes before
 * what another one does once all are. Each is the partner of all others. */
static int change(struct oci_team *team, uint64_t add, uint64_t set)
{
	uint64_t value = oci_load_acquire(word(team));

	while (outcome(team, value) == 0 &&
	       !__atomic_compare_exchange_n(word(team), &value, (value + add) | set, false,
					    __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		;
	return oci_commit_outcome(team);
}

int oci_commit_outcome(const struct oci_team *team)
{
	return outcome(team, oci_load_acquire(word(team)));
}

int oci_commit_yes(struct oci_team *team)
{
	return change(team, 1, 0);
}

int oci_commit_no(struct oci_team *team)
{
	return change(team, 0, NO);
}
