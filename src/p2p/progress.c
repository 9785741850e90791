/* SPDX-License-Identifier: BSD-3-Clause */
/* One turn of everything, and the look at whether peers still live. */
#include <errno.h>
#include <string.h>

#include "p2p/p2p.h"

/* Turns between two looks at the clock, which costs as much as a turn. */
#define TURNS_PER_LOOK 64

/* Does something under way hang on this rank? */
static bool concerned(const struct oci_p2p *p2p, uint32_t rank)
{
	const struct oci_inbound *in = &p2p->in[rank];
	const struct oci_message *m;

	/* Of those that copy, one may wait for its sender's help. */
	TAILQ_FOREACH(m, &p2p->pulling, on)
	{
		if (m->source == rank)
			return true;
	}
	return TAILQ_FIRST(&in->posted) || TAILQ_FIRST(&in->streams) || TAILQ_FIRST(&in->pipes) ||
	       in->filling || (in->unfinished && in->unfinished->claimed) ||
	       (p2p->out[rank] && p2p->out[rank]->busy);
}

/* Has a probe for messages of this rank, or of any, found none? */
static bool probes(struct oci_p2p *p2p, uint32_t rank)
{
	return p2p->probing && (p2p->probed == rank || p2p->probed == OC_ANY_SOURCE) &&
	       !oci_match_unexpected(p2p, p2p->probed, p2p->probed_tag);
}

void oci_p2p_gave_up(struct oci_team *team, uint32_t rank, uint64_t poison, bool left)
{
	uint32_t name = oci_team_name(team, rank);
	int error = oci_poison_error(poison);

	if (left)
		oci_team_fail(team, -EPIPE, -1,
			      "rank %u left the team while a message to or from it was "
			      "under way; all messages must be received before",
			      name);
	else if (!poison)
		oci_team_fail(team, -EOWNERDEAD, (int)rank,
			      "rank %u (process %d) died while messages were under way; "
			      "this team cannot be used any more",
			      name, (int)team->member[rank].pid);
	else if (error == -EOWNERDEAD)
		oci_team_fail(team, error, (int)oci_poison_rank(poison),
			      "rank %u died (rank %u noticed it); this team cannot be used "
			      "any more",
			      oci_team_name(team, oci_poison_rank(poison)), name);
	else
		oci_team_fail(team, error, -1,
			      "rank %u gave up the team (%s); it cannot be used any more", name,
			      strerror(-error));
}

static unsigned int turn(struct oci_p2p *p2p)
{
	return oci_receive_progress(p2p) + oci_rendezvous_progress(p2p) + oci_pipe_progress(p2p) +
	       oci_send_progress(p2p);
}

static void look_at(struct oci_p2p *p2p, uint32_t rank)
{
	struct oci_member *member = &p2p->team->member[rank];
	bool any = TAILQ_FIRST(&p2p->posted_any) || probes(p2p, rank);
	uint64_t poison;
	bool left, dead;

	if (!any && !concerned(p2p, rank))
		return;
	left = oci_member_has_left(member);
	dead = oci_peer_dead(member->peer);
	/* Acquire: pairs with the release in oci_team_fail(). Last: a peer that failed poisons
	 * before it leaves or ends. */
	poison = oci_load_acquire(&member->region->progress.poison);
	if (!left && !poison && !dead)
		return;
	/* What we wait for may have come meanwhile, as its last deed. */
	oci_receive_drain(p2p, rank);
	turn(p2p);
	any = (TAILQ_FIRST(&p2p->posted_any) || probes(p2p, rank)) && !left;
	if (any || concerned(p2p, rank))
		oci_p2p_gave_up(p2p->team, rank, poison, left && !poison);
}

/* A blocking receive from any, when all others have left, is in vain: nobody can send to it. Others
 * may yet get a message of our own. */
static void look_for_any(struct oci_p2p *p2p)
{
	struct oci_team *team = p2p->team;
	const struct oci_message *m;

	for (uint32_t r = 0; r < team->size; r++) {
		if (r != team->rank && !oci_member_has_left(&team->member[r]))
			return;
	}
	/* Their last messages came before they left. */
	for (uint32_t r = 0; r < team->size; r++)
		oci_receive_drain(p2p, r);
	TAILQ_FOREACH(m, &p2p->posted_any, on)
	{
		if (m->over)
			continue;
		oci_team_fail(team, -EPIPE, -1,
			      "all other ranks left the team while a receive from any of them was "
			      "under way; nobody can send to it");
		return;
	}
}

unsigned int oci_p2p_progress(struct oci_p2p *p2p)
{
	struct oci_team *team = p2p->team;
	unsigned int moved = turn(p2p);

	if ((++p2p->turns % TURNS_PER_LOOK && !team->oversubscribed) ||
	    !oci_wait_is_long(&p2p->wait))
		return moved;
	for (uint32_t r = 0; r < team->size && !team->error; r++) {
		if (r != team->rank)
			look_at(p2p, r);
	}
	if (TAILQ_FIRST(&p2p->posted_any) && !team->error)
		look_for_any(p2p);
	return moved;
}
