/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks that called different collectives: the sentence that names both, and when it is looked for.
 *
 * A rank compares signatures when it sees a peer's POST, when a wait is long, and, for ranks that
 * look at nobody, through the histories beside `done` (src/team/team.c).
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "plan/exec.h"

enum { CALL_BYTES = 200 };

static const char *call_text(const struct oci_team *team, uint64_t seq, uint32_t rank,
			     char text[CALL_BYTES])
{
	const struct oci_record *record = &oci_team_lane(team, rank, seq)->ack.record;
	/* Of a v-variant, each block has its own length. */
	char root[24] = "", bytes[32] = "blocks of any size", operation[24] = "";

	if (oci_is_rooted(record->collective) && record->root < team->size)
		snprintf(root, sizeof(root), "root %u, ", oci_team_name(team, record->root));
	if (record->bytes != UINT64_MAX)
		snprintf(bytes, sizeof(bytes), "%llu bytes", (unsigned long long)record->bytes);
	if (oci_is_reduction(record->collective))
		snprintf(operation, sizeof(operation), ", operation %u", record->op);
	snprintf(text, CALL_BYTES, "rank %u called %s (%s%s%s%s)", oci_team_name(team, rank),
		 oci_collective_name(record->collective), root, bytes,
		 record->in_place ? " in place" : "", operation);
	return text;
}

static void tell(const struct oci_team *team, uint64_t seq, uint32_t peer,
		 char text[OCI_SENTENCE_BYTES])
{
	char mine[CALL_BYTES], theirs[CALL_BYTES];

	snprintf(text, OCI_SENTENCE_BYTES,
		 "mismatched collectives: %s, %s; all ranks must call alike",
		 call_text(team, seq, team->rank, mine), call_text(team, seq, peer, theirs));
}

int oci_exec_mismatch(struct oci_team *team, uint64_t seq, uint32_t peer)
{
	char text[OCI_SENTENCE_BYTES];

	tell(team, seq, peer, text);
	return oci_team_fail(team, -EPROTO, (int)peer, "%s", text);
}

/* Does this rank read what the root left in shared memory, and nobody waits for it? */
static bool only_reads(const struct oci_exec *x)
{
	const struct oci_plan *plan = x->plan;

	if (!oci_is_rooted(plan->key.collective) || plan->posts || !plan->key.v)
		return false;
	for (uint32_t i = 0; i < plan->count; i++) {
		const struct oci_op *op = &plan->ops[i];

		switch (op->code) {
		case OCI_OP_WAIT_POST:
			if (op->peers != 1 || op->peer)
				return false;
			break;
		case OCI_OP_PULL:
			if (op->remote.buf != OCI_BUF_SLOT && op->remote.buf != OCI_BUF_INLINE)
				return false;
			break;
		case OCI_OP_COPY:
		case OCI_OP_LOOP:
		case OCI_OP_NEXT:
		case OCI_OP_END:
			break;
		default:
			return false;
		}
	}
	return true;
}

static bool differ_in_length_alone(const struct oci_record *mine, const struct oci_record *theirs)
{
	struct oci_record same = *theirs;

	same.bytes = mine->bytes;
	return !memcmp(&same, mine, sizeof(same));
}

int oci_exec_differs(struct oci_exec *x, uint32_t peer)
{
	const struct oci_lane *theirs = oci_team_lane(x->team, peer, x->seq);
	char text[OCI_SENTENCE_BYTES];

	/* What is told of this rank is in its lane, which is the operation's since it began. */
	if (!x->announced)
		oci_exec_announce(x);
	if (!differ_in_length_alone(&x->record, &theirs->ack.record) || !only_reads(x))
		return oci_exec_mismatch(x->team, x->seq, peer);
	tell(x->team, x->seq, peer, text);
	oci_info("%s", text);
	/* The history of the calls, by which the others know this rank, goes on as theirs does. */
	x->signature = theirs->post.signature;
	return oci_team_say(x->team, -EMSGSIZE, "%s", text);
}

int oci_exec_stranger(struct oci_team *team)
{
	uint32_t peer = __atomic_load_n(&team->stranger, __ATOMIC_RELAXED) - 1;

	for (uint64_t n = 0; n < OCI_LANES && n < team->done; n++) {
		uint64_t seq = team->done - 1 - n;
		const struct oci_lane *mine = oci_team_lane(team, team->rank, seq);
		const struct oci_lane *theirs = oci_team_lane(team, peer, seq);

		/* Acquire: pairs with the release of the peer's announcement or POST. */
		if (oci_load_acquire(&theirs->post.flag) >> OCI_STEP_BITS == seq &&
		    oci_load_acquire(&mine->post.flag) >> OCI_STEP_BITS == seq &&
		    theirs->post.signature != mine->post.signature)
			return oci_exec_mismatch(team, seq, peer);
	}
	return oci_team_fail(team, -EPROTO, (int)peer,
			     "mismatched collectives: ranks %u and %u have called different "
			     "collectives, or other roots or sizes, a while ago; all ranks must "
			     "call alike",
			     oci_team_name(team, team->rank), oci_team_name(team, peer));
}

int oci_exec_look_for_mismatch(struct oci_exec *x)
{
	const struct oci_lane *lane = oci_team_lane(x->team, x->awaited.peer, x->seq);

	/* Acquire: pairs with the release of the peer's announcement or POST. */
	if (oci_load_acquire(&lane->post.flag) >> OCI_STEP_BITS != x->seq ||
	    lane->post.signature == x->signature || x->awaited.peer == x->team->rank)
		return 0;
	return oci_exec_differs(x, x->awaited.peer);
}
