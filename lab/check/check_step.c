/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The checker's interpretation of operations: one at a time, each at once. One file of more than
 * 500 lines, as flags, copies, offers and shares check each other's clocks by the same few helpers.
 */
#include "lab/check/check_world.h"

#include <errno.h>

/* The rank at v, which counts on from 0 past the last one. */
static uint32_t peer_of(const struct oci_actor *a, uint32_t v)
{
	return oci_rank_of(&a->params, v % a->params.size);
}

/*
 * Flags. A flag keeps each of its values with the clock of that moment, so that a WAIT can acquire
 * the least it is entitled to (see check.h).
 */

/* As executors do it; the first call is 1, so that 0 is below every value. */
static uint64_t flag_value(uint32_t call, uint64_t step)
{
	return (uint64_t)(call + 1) * OCI_STEPS + step;
}

/* What an operation raises or awaits. */
static uint64_t value_of(const struct oci_actor *a, const struct oci_op *op)
{
	return flag_value(a->call, oci_walk_step(op, a->segment));
}

static struct oci_events *events_of(const struct oci_world *w, const struct oci_actor *a,
				    uint32_t rank, const struct oci_op *op)
{
	return &oci_world_place(w, a->call, rank)->flags[oci_walk_flag(op)];
}

static int raise_flag(struct oci_world *w, struct oci_actor *a, const struct oci_op *op)
{
	struct oci_events *events = events_of(w, a, a->rank, op);
	const struct oci_event *last = events->count ? &events->list[events->count - 1] : NULL;
	uint64_t step = oci_walk_step(op, a->segment);
	struct oci_event event = { .value = value_of(a, op), .seen = OCI_SEEN_POST };

	if (!step || step >= OCI_STEPS)
		return oci_world_fail(w, a, "step %llu is not one of an operation",
				      (unsigned long long)step);
	if (last && last->value >= event.value)
		return oci_world_fail(w, a, "the flag does not grow: it stands at step %llu",
				      (unsigned long long)(last->value % OCI_STEPS));
	if (last && last->value > flag_value(a->call, 0))
		event.seen |= last->seen;
	if (op->address)
		event.seen |= OCI_SEEN_ADDRESS;
	if (op->slot)
		event.seen |= OCI_SEEN_SLOT;
	if (oci_clock_save(w, a, &event.clock))
		return -ENOMEM;
	return oci_events_add(events, &event);
}

static uint32_t at_most(uint32_t value, uint32_t most)
{
	return most && most < value ? most : value;
}

static uint32_t limit_of(const struct oci_world *w, const struct oci_op *op)
{
	return at_most(op->limit, w->check->small_bytes);
}

static uint32_t tiny_of(const struct oci_world *w, const struct oci_op *op)
{
	return op->offer.in_slot ? limit_of(w, op) :
				   at_most(op->offer.cell_bytes, w->check->tiny_bytes);
}

static bool holds(const struct oci_world *w, const struct oci_op *op, size_t bytes)
{
	return oci_when_holds(op->when, bytes, limit_of(w, op));
}

/* Does a wait count this rank, where it depends on the size of a block? */
static bool counts(const struct oci_world *w, const struct oci_actor *a, const struct oci_op *op,
		   uint32_t rank)
{
	struct oci_range range = oci_walk_range(op, rank);

	return !op->when || holds(w, op, oci_walk_bytes(&range, &a->params, a->segment));
}

/* Until all peers' flags are there; then acquires them: the least that it is entitled to. */
static int wait_flags(struct oci_world *w, struct oci_actor *a, const struct oci_op *op)
{
	uint64_t value = value_of(a, op);

	for (; a->cursor < op->peers; a->cursor++) {
		uint32_t rank = peer_of(a, op->peer + a->cursor);

		if (counts(w, a, op, rank) && !oci_events_reached(events_of(w, a, rank, op), value))
			return OCI_BLOCKED;
	}
	a->cursor = 0;
	for (uint32_t i = 0; i < op->peers; i++) {
		uint32_t rank = peer_of(a, op->peer + i);
		const struct oci_event *event;

		if (!counts(w, a, op, rank))
			continue;
		event = oci_events_reached(events_of(w, a, rank, op), value);
		oci_clock_acquire(w, a, event->clock);
		if (oci_walk_flag(op) == OCI_FLAG_POST)
			a->seen[rank] |= event->seen;
	}
	return 0;
}

static void missing_flag(const struct oci_world *w, const struct oci_actor *a,
			 const struct oci_op *op, char *text, size_t n)
{
	uint32_t rank = peer_of(a, op->peer + a->cursor);
	const struct oci_events *events = events_of(w, a, rank, op);
	const struct oci_event *last = events->count ? &events->list[events->count - 1] : NULL;
	unsigned long long step = 0;

	if (last && last->value > flag_value(a->call, 0))
		step = last->value % OCI_STEPS;
	snprintf(text, n, "step %llu of rank %u's %s flag, which stands at %llu",
		 (unsigned long long)oci_walk_step(op, a->segment), rank,
		 oci_walk_flag(op) == OCI_FLAG_POST ? "POST" : "ACK", step);
}

void oci_actor_missing(const struct oci_world *w, const struct oci_actor *a, char *text, size_t n)
{
	if (!a->running)
		snprintf(text, n, "the end of call %u on rank %u", a->call - w->check->lanes,
			 a->cursor);
	else if (oci_actor_op(a)->code == OCI_OP_HELP)
		snprintf(text, n, "the first POST of another rank it should help");
	else
		missing_flag(w, a, oci_actor_op(a), text, n);
}

/* Copies. */

static int needs(struct oci_world *w, const struct oci_actor *a, uint32_t peer, uint8_t buf)
{
	uint8_t need = buf == OCI_BUF_SLOT   ? OCI_SEEN_SLOT :
		       buf == OCI_BUF_INLINE ? OCI_SEEN_POST :
					       OCI_SEEN_ADDRESS;

	if (a->seen[peer] & need)
		return 0;
	return oci_world_fail(w, a, "uses a handle it did not await: %s of rank %u",
			      oci_buf_name(buf), peer);
}

static int check_pair(struct oci_world *w, const struct oci_actor *a, const struct oci_span *x,
		      const struct oci_span *y)
{
	if (x->bytes != y->bytes)
		return oci_world_fail(w, a, "the lengths differ: %zu and %zu bytes", x->bytes,
				      y->bytes);
	return 0;
}

static int move(struct oci_world *w, const struct oci_actor *a, const struct oci_span *source,
		const struct oci_span *target)
{
	int rc = check_pair(w, a, source, target);

	if (rc || (source->region == target->region && source->from == target->from))
		return rc;
	if (oci_span_overlap(source, target))
		return oci_world_fail(w, a, "source and target overlap");
	rc = oci_span_access(w, a, source, false, 0);
	if (!rc)
		rc = oci_span_access(w, a, target, true, 0);
	if (!rc)
		oci_span_copy(target, source);
	return rc;
}

/* My part of what is traded. */
static int trade(struct oci_world *w, const struct oci_actor *a, uint32_t peer,
		 const struct oci_span *mine, const struct oci_span *theirs)
{
	struct oci_span part[2] = { *mine, *theirs };
	size_t from, to;
	int rc = check_pair(w, a, mine, theirs);

	if (rc)
		return rc;
	if (oci_span_overlap(mine, theirs))
		return oci_world_fail(w, a, "what is traded overlaps");
	oci_trade_part(mine->bytes, a->rank < peer, &from, &to);
	for (unsigned int i = 0; i < 2 && !rc; i++) {
		part[i].from += from;
		part[i].bytes = to - from;
		rc = oci_span_access(w, a, &part[i], true, 0);
	}
	for (size_t i = 0; i < to - from && !rc; i++) {
		struct oci_symbol *cell[2], kept;

		for (unsigned int j = 0; j < 2; j++)
			cell[j] = &part[j].region->cells[part[j].from + i];
		kept = *cell[0];
		*cell[0] = *cell[1];
		*cell[1] = kept;
	}
	return rc;
}

static int reduce_spans(struct oci_world *w, const struct oci_actor *a, const struct oci_span *in,
			const struct oci_span *inout)
{
	const struct oci_check_call *c = oci_world_call(w, a->call);
	int rc = check_pair(w, a, in, inout);

	if (rc)
		return rc;
	if (!oci_is_reduction(c->collective))
		return oci_world_fail(w, a, "this collective has no operation to reduce with");
	if (oci_span_overlap(in, inout))
		return oci_world_fail(w, a, "the operands overlap");
	if (in->from % c->unit || inout->from % c->unit || in->bytes % c->unit)
		return oci_world_fail(w, a, "cuts an element of %zu bytes: %zu from %zu and %zu",
				      c->unit, in->bytes, in->from, inout->from);
	rc = oci_span_access(w, a, in, false, 0);
	if (!rc)
		rc = oci_span_access(w, a, inout, true, 0);
	if (!rc)
		oci_symbol_reduce(c->commutative, in, inout);
	return rc;
}

/* PULL, PUSH, REDUCE_FROM and TRADE. */
static int transfer(struct oci_world *w, const struct oci_actor *a, const struct oci_op *op)
{
	uint32_t peer = peer_of(a, op->peer);
	struct oci_span local, remote;
	int rc = needs(w, a, peer, op->remote.buf);

	if (!rc)
		rc = oci_span_resolve(w, a, a->rank, &op->local, &local);
	if (!rc)
		rc = oci_span_resolve(w, a, peer, &op->remote, &remote);
	if (rc)
		return rc;
	if (op->code == OCI_OP_REDUCE_FROM)
		return reduce_spans(w, a, &remote, &local);
	if (op->code == OCI_OP_TRADE)
		return trade(w, a, peer, &local, &remote);
	if (op->code == OCI_OP_PUSH)
		return move(w, a, &local, &remote);
	return move(w, a, &remote, &local);
}

/* COPY and REDUCE. */
static int local(struct oci_world *w, const struct oci_actor *a, const struct oci_op *op)
{
	struct oci_span first, second;
	int rc = oci_span_resolve(w, a, a->rank, &op->local, &first);

	if (!rc)
		rc = oci_span_resolve(w, a, a->rank, &op->second, &second);
	if (rc)
		return rc;
	return op->code == OCI_OP_COPY ? move(w, a, &first, &second) :
					 reduce_spans(w, a, &first, &second);
}

/* The handles and the payload of a POST line are the same bytes. */
static int post(struct oci_world *w, struct oci_actor *a, const struct oci_op *op)
{
	struct oci_memory *line = &oci_world_place(w, a->call, a->rank)->line;
	struct oci_span span = { .region = line, .bytes = line->limit };
	int rc = 0;

	if (op->address || op->slot) {
		rc = oci_span_access(w, a, &span, true, 0);
		if (!rc)
			oci_memory_garbage(line, oci_symbol_mix(a->call, a->rank));
	}
	return rc ? rc : raise_flag(w, a, op);
}

/*
 * SHARE and HELP: chunks claimed from both ends, one a step, so that schedules try every split.
 * What the helper copies is logged as its own access, marked with the SHARE end; the end of the
 * SHARE takes these marks away and puts the whole copy in its own name. So the helper races with
 * everybody but its SHARE, and the order that others need is that of the SHARE's end.
 */

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

/* One chunk; *ended when the operation is over. */
static int share(struct oci_world *w, struct oci_actor *a, const struct oci_op *op, bool *ended)
{
	struct oci_claim *claim = &oci_world_place(w, a->call, a->rank)->claim;
	uint32_t peer = peer_of(a, op->peer);
	struct oci_span local, remote;
	int rc = needs(w, a, peer, op->remote.buf);

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
	return oci_events_reached(&oci_world_place(w, a->call, rank)->flags[OCI_FLAG_POST],
				  flag_value(a->call, 1));
}

/* The claim of a peer that has posted. */
static int join(struct oci_world *w, struct oci_actor *a, const struct oci_op *op, uint32_t rank)
{
	struct oci_range range = oci_walk_range(op, rank);
	struct oci_span local, remote;
	int rc = needs(w, a, rank, op->remote.buf);

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

/* Of how many peers the next chunk can be. */
static uint32_t help_choices(const struct oci_world *w, const struct oci_actor *a)
{
	const struct oci_op *op = oci_actor_op(a);
	uint32_t choices = 0;

	for (uint32_t i = 0; i < op->peers; i++) {
		uint32_t rank = peer_of(a, op->peer + i);

		choices += first_post(w, a, rank) && is_left(w, a, rank);
	}
	return choices;
}

static int help(struct oci_world *w, struct oci_actor *a, const struct oci_op *op, uint32_t choice,
		bool *ended)
{
	uint32_t choices = 0, posted = 0;
	int rc;

	for (uint32_t i = 0; i < op->peers; i++) {
		uint32_t rank = peer_of(a, op->peer + i);
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
		uint32_t rank = peer_of(a, op->peer + i);
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

/*
 * Offers. The bytes of tiny and small blocks are in the line or the slot like any others; of a
 * LARGE one the cell is so many bytes of garbage, and what it means is kept beside.
 */

/* Bytes of a place's payload or slot. */
static int span_of(struct oci_world *w, const struct oci_actor *a, struct oci_memory *region,
		   size_t from, size_t bytes, struct oci_span *span)
{
	if (from > region->limit || bytes > region->limit - from)
		return oci_world_fail(w, a, "out of bounds: bytes [%zu, %zu) of %s, which has %zu",
				      from, from + bytes, region->name, region->limit);
	*span = (struct oci_span){ .region = region, .from = from, .bytes = bytes };
	return 0;
}

/* The cell, or for a block that is small its piece of the slot. */
static int cell_span(struct oci_world *w, const struct oci_actor *a, struct oci_place *place,
		     const struct oci_op *op, uint32_t cell, size_t bytes, struct oci_span *span)
{
	const struct oci_offer *o = &op->offer;
	size_t piece = (size_t)cell * o->small_bytes;

	if (bytes > limit_of(w, op))
		bytes = sizeof(struct oci_offered);
	else if (bytes > tiny_of(w, op))
		return span_of(w, a, &place->slot, piece, bytes, span);
	/* Cells must not run into each other. */
	if (bytes > o->cell_bytes)
		return oci_world_fail(w, a, "%zu bytes do not fit a cell", bytes);
	return span_of(w, a, o->in_slot ? &place->slot : &place->line,
		       o->first + (size_t)cell * o->cell_bytes, bytes, span);
}

/* The slot's offset and the bits: whoever offers writes them, whoever takes reads them. */
static int access_head(struct oci_world *w, const struct oci_actor *a, struct oci_place *place,
		       const struct oci_op *op, bool write)
{
	struct oci_span span;
	int rc = span_of(w, a, &place->line, 0, sizeof(struct oci_offer_head), &span);

	if (!rc)
		rc = oci_span_access(w, a, &span, write, 0);
	if (rc || !op->offer.in_slot)
		return rc;
	rc = span_of(w, a, &place->slot, 0, op->offer.first, &span);
	return rc ? rc : oci_span_access(w, a, &span, write, 0);
}

static int offer_cell(struct oci_world *w, struct oci_actor *a, const struct oci_op *op,
		      uint32_t cell)
{
	struct oci_place *place = oci_world_place(w, a->call, a->rank);
	struct oci_range range = oci_walk_range(op, peer_of(a, op->peer + cell));
	struct oci_check_cell *kept = &place->cells[cell];
	struct oci_span block, span;
	int rc = oci_span_resolve(w, a, a->rank, &range, &block);

	if (rc)
		return rc;
	*kept = (struct oci_check_cell){ .large = block.bytes > limit_of(w, op) };
	if (!block.bytes || (op->address && !kept->large))
		return 0;
	/* A slot is asked for when a block needs it: by its length, if it is the only one. */
	if (op->peers == 1 && !op->offer.in_slot && block.bytes < place->slot.limit)
		place->slot.limit = block.bytes;
	rc = cell_span(w, a, place, op, cell, block.bytes, &span);
	if (rc || !kept->large)
		return rc ? rc : move(w, a, &block, &span);
	kept->span = block;
	rc = oci_span_access(w, a, &span, true, 0);
	if (!rc)
		oci_span_garbage(&span, oci_symbol_mix(a->call, a->rank));
	return rc;
}

static int offer(struct oci_world *w, struct oci_actor *a, const struct oci_op *op)
{
	struct oci_place *place = oci_world_place(w, a->call, a->rank);
	int rc = access_head(w, a, place, op, true);

	if (!rc && (!op->peers || op->peers > w->check->size))
		rc = oci_world_fail(w, a, "%u cells are not for the others", op->peers);
	for (uint32_t i = 0; i < op->peers && !rc; i++)
		rc = offer_cell(w, a, op, i);
	place->cell_count = op->peers;
	place->addresses = op->address;
	return rc;
}

/* LARGE: the span that the cell means. */
static int move_large(struct oci_world *w, const struct oci_actor *a, const struct oci_op *op,
		      const struct oci_span *local, const struct oci_check_cell *cell)
{
	if (op->code == OCI_OP_GIVE)
		return move(w, a, local, &cell->span);
	if (op->code == OCI_OP_TRADE)
		return trade(w, a, peer_of(a, op->peer), local, &cell->span);
	return move(w, a, &cell->span, local);
}

/* TAKE, GIVE and TRADE. */
static int offered(struct oci_world *w, const struct oci_actor *a, const struct oci_op *op)
{
	uint32_t peer = peer_of(a, op->peer);
	struct oci_place *place = oci_world_place(w, a->call, peer);
	const struct oci_check_cell *cell = &place->cells[op->offer.cell];
	struct oci_span local, span;
	bool large;
	int rc = oci_span_resolve(w, a, a->rank, &op->local, &local);

	if (rc || !local.bytes || !holds(w, op, local.bytes))
		return rc;
	rc = needs(w, a, peer, OCI_BUF_INLINE);
	if (rc)
		return rc;
	/* What was given to an address can be taken from there. */
	if (op->offer.cell >= place->cell_count || (op->code == OCI_OP_GIVE && !place->addresses))
		return oci_world_fail(w, a, "rank %u has made no such offer", peer);
	rc = access_head(w, a, place, op, false);
	if (rc)
		return rc;
	large = local.bytes > limit_of(w, op);
	if (large != cell->large || (!large && place->addresses))
		return oci_world_fail(w, a, "%zu bytes are %sLARGE, but not in rank %u's offer",
				      local.bytes, large ? "" : "not ", peer);
	rc = cell_span(w, a, place, op, op->offer.cell, local.bytes, &span);
	if (rc)
		return rc;
	if (!large)
		return move(w, a, &span, &local);
	rc = oci_span_access(w, a, &span, false, 0);
	return rc ? rc : move_large(w, a, op, &local, cell);
}

static int run_op(struct oci_world *w, struct oci_actor *a, const struct oci_op *op,
		  uint32_t choice, bool *ended)
{
	switch (op->code) {
	case OCI_OP_POST:
		return post(w, a, op);
	case OCI_OP_SIGNAL:
		return raise_flag(w, a, op);
	case OCI_OP_WAIT_POST:
	case OCI_OP_WAIT_ACK:
		return wait_flags(w, a, op);
	case OCI_OP_PULL:
	case OCI_OP_PUSH:
	case OCI_OP_REDUCE_FROM:
		return transfer(w, a, op);
	case OCI_OP_TRADE:
		return op->offered ? offered(w, a, op) : transfer(w, a, op);
	case OCI_OP_OFFER:
		return offer(w, a, op);
	case OCI_OP_TAKE:
	case OCI_OP_GIVE:
		return offered(w, a, op);
	case OCI_OP_SHARE:
		return share(w, a, op, ended);
	case OCI_OP_HELP:
		return help(w, a, op, choice, ended);
	case OCI_OP_COPY:
	case OCI_OP_REDUCE:
		return local(w, a, op);
	default:
		return oci_world_fail(w, a, "is no operation");
	}
}

int oci_actor_step(struct oci_world *w, struct oci_actor *a, uint32_t choice)
{
	bool ended = true;
	int rc;

	if (a->call == w->check->count)
		return OCI_BLOCKED;
	if (!a->running) {
		rc = oci_call_begin(w, a);
	} else if (oci_actor_op(a)->code == OCI_OP_END) {
		rc = oci_call_end(w, a);
	} else {
		rc = run_op(w, a, oci_actor_op(a), choice, &ended);
		if (!rc && ended)
			a->pc++;
	}
	if (rc)
		return rc;
	if (a->running)
		oci_walk_jump(a->plan, &a->params, &a->pc, &a->segment);
	w->result.steps++;
	return 0;
}

uint32_t oci_actor_choices(const struct oci_world *w, const struct oci_actor *a)
{
	uint32_t choices = 1;

	if (a->running && oci_actor_op(a)->code == OCI_OP_HELP)
		choices = help_choices(w, a);
	return choices ? choices : 1;
}
