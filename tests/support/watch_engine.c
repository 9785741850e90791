/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The engine of another process, read from its memory: this build's structs are those of what it
 * watches. The process runs meanwhile, so what is read may be half of a change: lists are followed
 * for a bounded number of steps, and an address that cannot be read ends a list.
 */
#include "support/watch.h"

#include <stdlib.h>
#include <sys/uio.h>

#include "api/engine.h"

enum { MOST_TEAMS = 2000, TEAMS_SAID = 20, MOST_RANKS = 1024 };

static bool peek(pid_t pid, const void *there, void *here, size_t bytes)
{
	struct iovec local = { here, bytes };
	struct iovec remote = { (void *)(uintptr_t)there, bytes };

	return there && process_vm_readv(pid, &local, 1, &remote, 1, 0) == (ssize_t)bytes;
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
	return (hash ^ value) * 0x9e3779b97f4a7c15ull;
}

/* Whoever sends or receives counts cells. */
static uint64_t message_marks(pid_t pid, const struct oc_team *team, uint64_t hash)
{
	struct oci_p2p p2p;

	if (!peek(pid, team->p2p, &p2p, sizeof(p2p)))
		return hash;
	hash = mix(hash, p2p.posts);
	for (uint32_t r = 0; r < team->team.size && r < MOST_RANKS; r++) {
		const struct oci_outbound *at;
		struct oci_outbound out;
		struct oci_inbound in;

		if (peek(pid, &p2p.in[r], &in, sizeof(in)))
			hash = mix(hash, in.next);
		if (peek(pid, &p2p.out[r], &at, sizeof(at)) && peek(pid, at, &out, sizeof(out)))
			hash = mix(hash, out.written + out.position);
	}
	return hash;
}

uint64_t watch_engine_marks(pid_t pid, uint64_t engine)
{
	struct oc_team *team = malloc(sizeof(*team));
	struct oci_region region;
	struct oci_engine e;
	uint64_t hash = 0;

	if (!team || !peek(pid, (void *)(uintptr_t)engine, &e, sizeof(e)))
		e.teams = NULL;
	for (int i = 0; i < MOST_TEAMS && e.teams && peek(pid, e.teams, team, sizeof(*team)); i++) {
		hash = mix(mix(mix(hash, team->team.state), team->team.next), team->team.done);
		if (peek(pid, team->team.own, &region, sizeof(region))) {
			for (int lane = 0; lane < OCI_LANES; lane++)
				hash = mix(mix(hash, region.lane[lane].post.flag),
					   region.lane[lane].ack.flag +
						   region.lane[lane].aux.claim);
		}
		hash = message_marks(pid, team, hash);
		e.teams = team->next;
	}
	free(team);
	return hash;
}

/* Members are read through what the process has mapped of them. */
static void say_missing(pid_t pid, const struct oci_team *team, uint64_t seq, FILE *out)
{
	const char *before = "; has not come to it: rank";

	for (uint32_t r = 0; r < team->size && r < MOST_RANKS; r++) {
		const struct oci_lane *lane;
		struct oci_member member;
		struct oci_region region;

		if (!peek(pid, &team->member[r], &member, sizeof(member)) ||
		    !peek(pid, member.region, &region, sizeof(region)))
			return;
		lane = &region.lane[seq % OCI_LANES];
		if (region.progress.done > seq || lane->post.flag >> OCI_STEP_BITS >= seq ||
		    lane->ack.flag >> OCI_STEP_BITS >= seq)
			continue;
		fprintf(out, "%s %u", before, r);
		before = ",";
	}
}

static void say_operation(pid_t pid, const struct oci_team *team, const struct oci_region *region,
			  uint64_t seq, FILE *out)
{
	const struct oci_lane *lane = &region->lane[seq % OCI_LANES];
	const struct oci_record *call = &lane->ack.record;
	uint64_t posted = lane->post.flag, acked = lane->ack.flag;

	fprintf(out, "    operation %llu: ", (unsigned long long)seq);
	if (posted >> OCI_STEP_BITS != seq && acked >> OCI_STEP_BITS != seq) {
		fputs("it has told its peers nothing yet\n", out);
		return;
	}
	fprintf(out, "%s of %llu bytes, root %u, algorithm %s;",
		call->collective < OC_COLLECTIVES ? oci_collective_name(call->collective) : "?",
		(unsigned long long)call->bytes, call->root,
		call->collective < OC_COLLECTIVES &&
				oci_algorithm(call->collective, call->algorithm) ?
			oci_algorithm(call->collective, call->algorithm)->name :
			"?");
	if (posted >> OCI_STEP_BITS == seq)
		fprintf(out, " posted step %u,", (unsigned int)(posted % OCI_STEPS));
	if (acked >> OCI_STEP_BITS == seq)
		fprintf(out, " signalled step %u,", (unsigned int)(acked % OCI_STEPS));
	fprintf(out, " asleep on its flags: %u and %u", lane->ack.post_waiters,
		lane->ack.ack_waiters);
	say_missing(pid, team, seq, out);
	fputc('\n', out);
}

static void say_team(pid_t pid, const struct oc_team *team, FILE *out)
{
	static const char *const states[] = {
		[OCI_TEAM_START] = "not begun",	   [OCI_TEAM_HELLO] = "created: hello",
		[OCI_TEAM_HERE] = "created: here", [OCI_TEAM_VERDICT] = "created: verdict",
		[OCI_TEAM_READY] = "ready",	   [OCI_TEAM_REFUSED] = "refused",
	};
	const struct oci_team *t = &team->team;
	struct oci_region region;

	fprintf(out, "  rank %u of a team of %u, %s: operations below %llu are done, next is %llu",
		t->rank, t->size, t->state <= OCI_TEAM_REFUSED ? states[t->state] : "?",
		(unsigned long long)t->done, (unsigned long long)t->next);
	fprintf(out, ", %u requests%s%s%s\n", team->outstanding, team->message ? ", messages" : "",
		t->error ? ", failed: " : "", t->error ? t->sentence : "");
	if (!peek(pid, t->own, &region, sizeof(region)))
		return;
	for (uint64_t seq = t->done; seq < t->next && seq < t->done + OCI_LANES; seq++)
		say_operation(pid, t, &region, seq, out);
}

void watch_engine_say(pid_t pid, uint64_t engine, FILE *out)
{
	struct oc_team *team = malloc(sizeof(*team));
	struct oci_engine e;

	if (!team || !peek(pid, (void *)(uintptr_t)engine, &e, sizeof(e)))
		e.teams = NULL;
	for (int i = 0; i < TEAMS_SAID && e.teams && peek(pid, e.teams, team, sizeof(*team)); i++) {
		team->team.sentence[sizeof(team->team.sentence) - 1] = '\0';
		say_team(pid, team, out);
		e.teams = team->next;
	}
	if (e.teams)
		fputs("  and more teams\n", out);
	free(team);
}
