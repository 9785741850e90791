/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The checker's SHARE and HELP: chunks claimed from both ends, one a step, so that schedules try
 * every split. What the helper copies is logged as its own access, marked with the SHARE end; the
 * end of the SHARE takes these marks away and puts the whole copy in its own name. So the helper
 * races with everybody but its SHARE, and the order that others need is that of the SHARE's end.
 */
#include "lab/check/check_world.h"

#include <errno.h>

static bool same_span(const struct oci_span *x, const struct oci_span *y)
{
	return x->bytes == y->bytes &&
	       (!x->bytes || (x->region == y->region && x->from == y->from));
}

/* What an end sees: `owner` is the rank of the SHARE end. */
static int open_claim(struct oci_world *w, const struct oci_actor *a, uint32_t owner,
		      uint32_t helper, const struct oci_span *source, const struct oci_span *target)
{
	struct oci_claim *claim = &oci_world_place(w, a->call, owner)->claim;
	size_t pieces = w->check->schedule == OCI_CHECK_EXHAUSTIVE ? 2 : 4;

	if (source->bytes != target->bytes)
		return oci_world_fail(w, a, "the lengths differ: %zu and %zu bytes", source->bytes,
				      target->bytes);
	if (claim->shared || claim->helped) {
		if (claim->helper == helper && same_span(&claim->source, source) &&
		    same_span(&claim->target, target))
			return 0;
		return oci_world_fail(w, a,
				      "the SHARE of rank %u and its HELP by rank %u (or %u) "
				      "mean different bytes",
				      owner, claim->helper, helper);
	}
	claim->helper = helper;
	claim->source = *source;
	claim->target = *target;
	claim->chunk = (source->bytes + pieces - 1) / pieces;
	return 0;
}

static int copy_chunk(struct oci_world *w, struct oci_actor *a, struct oci_claim *claim,
		      bool from_back, uint32_t helped)
{
	size_t left = claim->source.bytes - claim->front - claim->back;
	size_t bytes = left < claim->chunk ? left : claim->chunk;
	size_t start = from_back ? claim->front + left - bytes : claim->front;
	struct oci_span source = claim->source, target = claim->target;
	int rc;

	source.from += start;
	target.from += start;
	source.bytes = target.bytes = bytes;
	rc = oci_span_access(w, a, &source, false, helped);
	if (!rc)
		rc = oci_span_access(w, a, &target, true, helped);
	if (rc)
		return rc;
	oci_span_copy(&target, &source);
	*(from_back ? &claim->back : &claim->front) += bytes;
	return 0;
}

int oci_share_step(struct oci_world *w, struct oci_actor *a, const struct oci_op *op, bool *ended)
{
	struct oci_claim *claim = &oci_world_place(w, a->call, a->rank)->claim;
	uint32_t peer = oci_actor_peer(w, a, op->peer);
	struct oci_span local, remote;
	int rc = oci_actor_needs(w, a, peer, op->remote.buf);

	if (rc)
		return rc;
	if (claim->done)
		return oci_world_fail(w, a, "is the second SHARE of this rank in one call");
	rc = oci_span_resolve(w, a, a->rank, &op->local, &local);
	if (!rc)
		rc = oci_span_resolve(w, a, peer, &op->remote, &remote);
	if (!rc)
		rc = open_claim(w, a, a->rank, peer, op->push ? &local : &remote,
				op->push ? &remote : &local);
	if (rc)
		return rc;
	claim->shared = true;
	*ended = claim->front + claim->back == claim->source.bytes;
	if (!*ended)
		return copy_chunk(w, a, claim, false, 0);
	claim->done = true;
	oci_span_drop_helped(&claim->source, a->rank);
	oci_span_drop_helped(&claim->target, a->rank);
	rc = oci_span_access(w, a, &claim->source, false, 0);
	return rc ? rc : oci_span_access(w, a, &claim->target, true, 0);
}

/* HELP has no step: it awaits the first POST of a peer. */
static const struct oci_event *first_post(const struct oci_world *w, const struct oci_actor *a,
					  uint32_t rank)
{
	return oci_flag_reached(w, a, OCI_FLAG_POST, rank, oci_flag_value(a->call, 1));
}

/* The claim of a peer that has posted. */
static int join(struct oci_world *w, struct oci_actor *a, const struct oci_op *op, uint32_t rank)
{
	struct oci_range range = op->local;
	struct oci_span local, remote;
	int rc;

	if (op->by_peer) {
		range.relative = 0;
		range.block = rank;
	}
	rc = oci_actor_needs(w, a, rank, op->remote.buf);
	if (!rc)
		rc = oci_span_resolve(w, a, a->rank, &range, &local);
	if (!rc)
		rc = oci_span_resolve(w, a, rank, &op->remote, &remote);
	if (!rc)
		rc = open_claim(w, a, rank, a->rank, op->push ? &remote : &local,
				op->push ? &local : &remote);
	if (!rc)
		oci_world_place(w, a->call, rank)->claim.helped = true;
	return rc;
}

static bool is_left(const struct oci_world *w, const struct oci_actor *a, uint32_t rank)
{
	const struct oci_claim *claim = &oci_world_place(w, a->call, rank)->claim;

	if (!claim->shared && !claim->helped)
		return true;
	return claim->front + claim->back < claim->source.bytes;
}

uint32_t oci_help_choices(const struct oci_world *w, const struct oci_actor *a)
{
	const struct oci_op *op = oci_actor_op(a);
	uint32_t choices = 0;

	for (uint32_t i = 0; i < op->peers; i++) {
		uint32_t rank = oci_actor_peer(w, a, op->peer + i);

		choices += first_post(w, a, rank) && is_left(w, a, rank);
	}
	return choices;
}

int oci_help_step(struct oci_world *w, struct oci_actor *a, const struct oci_op *op,
		  uint32_t choice, bool *ended)
{
	uint32_t choices = 0, posted = 0;
	int rc;

	for (uint32_t i = 0; i < op->peers; i++) {
		uint32_t rank = oci_actor_peer(w, a, op->peer + i);
		const struct oci_event *event = first_post(w, a, rank);

		if (!event)
			continue;
		oci_clock_acquire(w, a, event->clock);
		a->seen[rank] |= event->seen;
		rc = join(w, a, op, rank);
		if (rc)
			return rc;
		posted++;
		choices += is_left(w, a, rank);
	}
	*ended = !choices;
	if (!choices)
		return posted < op->peers ? OCI_BLOCKED : 0;
	choice %= choices;
	for (uint32_t i = 0; i < op->peers; i++) {
		uint32_t rank = oci_actor_peer(w, a, op->peer + i);
		struct oci_claim *claim = &oci_world_place(w, a->call, rank)->claim;

		if (first_post(w, a, rank) && is_left(w, a, rank) && !choice--)
			return copy_chunk(w, a, claim, true, rank + 1);
	}
	return 0;
}

int oci_share_check(struct oci_world *w, uint32_t call)
{
	for (uint32_t q = 0; q < w->check->size; q++) {
		const struct oci_claim *claim = &oci_world_place(w, call, q)->claim;

		if (claim->shared == claim->helped)
			continue;
		return oci_world_fail(w, NULL, "call %u: the %s of rank %u has no %s by rank %u",
				      call, claim->shared ? "SHARE" : "HELP for the SHARE", q,
				      claim->shared ? "HELP" : "SHARE",
				      claim->shared ? claim->helper : q);
	}
	return 0;
}
