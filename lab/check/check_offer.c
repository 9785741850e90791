/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The checker's offers. The bytes of tiny and small blocks are in the line or the slot like any
 * others; of a LARGE one the cell is so many bytes of garbage, and what it means is kept beside.
 */
#include "lab/check/check_world.h"

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
	switch (op->when) {
	case OCI_WHEN_FILLED:
		return bytes > 0;
	case OCI_WHEN_SMALL:
		return bytes > 0 && bytes <= limit_of(w, op);
	case OCI_WHEN_LARGE:
		return bytes > limit_of(w, op);
	default:
		return true;
	}
}

static struct oci_range block_for(const struct oci_op *op, uint32_t rank)
{
	struct oci_range range = op->local;

	if (op->by_peer) {
		range.relative = 0;
		range.block = rank;
	}
	return range;
}

bool oci_wait_counts(const struct oci_world *w, const struct oci_actor *a, const struct oci_op *op,
		     uint32_t rank)
{
	struct oci_range range = block_for(op, rank);
	size_t offset, bytes = 0;

	if (op->when)
		oci_range_eval(&range, &a->params, a->segment, &offset, &bytes);
	return holds(w, op, bytes);
}

/* Bytes of a place's payload or slot. */
static int span_of(struct oci_world *w, const struct oci_actor *a, struct oci_region *region,
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
	const struct oci_offer *offer = &op->offer;
	size_t piece = (size_t)cell * offer->small_bytes;

	if (bytes > limit_of(w, op))
		bytes = sizeof(struct oci_offered);
	else if (bytes > tiny_of(w, op))
		return span_of(w, a, &place->slot, piece, bytes, span);
	/* Cells must not run into each other. */
	if (bytes > offer->cell_bytes)
		return oci_world_fail(w, a, "%zu bytes do not fit a cell", bytes);
	return span_of(w, a, offer->in_slot ? &place->slot : &place->line,
		       offer->first + (size_t)cell * offer->cell_bytes, bytes, span);
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
	struct oci_range range = block_for(op, oci_actor_peer(w, a, op->peer + cell));
	struct oci_check_cell *kept = &place->cells[cell];
	struct oci_span block, span;
	int rc = oci_span_resolve(w, a, a->rank, &range, &block);

	if (rc)
		return rc;
	*kept = (struct oci_check_cell){ .large = block.bytes > limit_of(w, op) };
	if (!block.bytes || (op->address && !kept->large))
		return 0;
	rc = cell_span(w, a, place, op, cell, block.bytes, &span);
	if (rc || !kept->large)
		return rc ? rc : oci_span_move(w, a, &block, &span);
	kept->span = block;
	rc = oci_span_access(w, a, &span, true, 0);
	if (!rc)
		oci_span_garbage(&span, oci_symbol_mix(a->call, a->rank));
	return rc;
}

int oci_offer_step(struct oci_world *w, struct oci_actor *a, const struct oci_op *op)
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
		return oci_span_move(w, a, local, &cell->span);
	if (op->code == OCI_OP_TRADE)
		return oci_span_trade(w, a, oci_actor_peer(w, a, op->peer), local, &cell->span);
	return oci_span_move(w, a, &cell->span, local);
}

int oci_offered_step(struct oci_world *w, const struct oci_actor *a, const struct oci_op *op)
{
	uint32_t peer = oci_actor_peer(w, a, op->peer);
	struct oci_place *place = oci_world_place(w, a->call, peer);
	const struct oci_check_cell *cell = &place->cells[op->offer.cell];
	struct oci_span local, span;
	bool large;
	int rc = oci_span_resolve(w, a, a->rank, &op->local, &local);

	if (rc || !local.bytes || !holds(w, op, local.bytes))
		return rc;
	rc = oci_actor_needs(w, a, peer, OCI_BUF_INLINE);
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
		return oci_span_move(w, a, &span, &local);
	rc = oci_span_access(w, a, &span, false, 0);
	return rc ? rc : move_large(w, a, op, &local, cell);
}
