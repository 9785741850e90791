/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Leaving a creation in the middle, for a rank that cannot go on with it now and has others that
 * wait for what it has started. It is over here at once: the team is ready, if all members had
 * counted themselves in, or refused, by all of them.
 *
 * The others are told by the bootstrap as long as another allgather is to come, and then by the
 * word of commit.c. They may still be about to probe this rank's memory, so what they were told of
 * stays until all their messages are in: the creation drains. If one of them dies before, it stays
 * for ever, as nobody knows what the others are at.
 */
#include <errno.h>

#include "team/creation.h"

static int refuse(struct oci_team *team, bool drains)
{
	oci_team_say(team,
		     "rank %u left while the team was prepared, as its program waits for something "
		     "else",
		     team->rank);
	team->creation->left = team->state;
	team->draining = drains;
	return oci_creation_refuse(team, -ECANCELED);
}

int oci_team_withdraw(struct oci_team *team)
{
	enum oci_team_state before;
	int result;

	/* The last look finds nothing new, and what was started before it has been sent. */
	do {
		before = team->state;
		result = oci_team_step(team);
	} while (team->state != before);
	if (team->state >= OCI_TEAM_READY)
		return result;
	if (team->state == OCI_TEAM_COMMIT) {
		if (oci_commit_no(team) < 0)
			return refuse(team, false);
		return oci_team_step(team);
	}
	if (team->state == OCI_TEAM_VERDICT) {
		/* Where it could not be mapped our verdict says so, and all refuse. */
		if (team->member[0].region)
			oci_commit_no(team);
		return refuse(team, true);
	}
	if (!team->bootstrap.withdraw)
		return -ENOTSUP;
	result = team->bootstrap.withdraw(team->bootstrap.context);
	return result ? result : refuse(team, true);
}

/* The others may have begun another allgather, the one that fails: takes what they send. */
static bool follow(struct oci_team *team)
{
	struct oci_creation *c = team->creation;
	enum oci_team_state left = c->left;
	char why[256];

	c->left = OCI_TEAM_VERDICT;
	if (left == OCI_TEAM_VERDICT ||
	    (left == OCI_TEAM_HELLO && oci_hellos_judge(team, why, sizeof(why))))
		return false;
	if (left == OCI_TEAM_HELLO && oci_hellos_declare(team))
		return !team->bootstrap.allgather_start(team->bootstrap.context, &c->declared,
							sizeof(c->declared), c->all_declared);
	return !team->bootstrap.allgather_start(team->bootstrap.context, c->verdict,
						c->verdict_bytes, c->verdicts);
}

bool oci_team_drained(struct oci_team *team)
{
	int done;

	if (!team->draining)
		return true;
	done = team->bootstrap.allgather_test(team->bootstrap.context);
	if (done == 0 || (done == 1 && follow(team)))
		return false;
	team->draining = false;
	oci_creation_free(team);
	return true;
}
