/* SPDX-License-Identifier: BSD-3-Clause */
/* The checker's symbols, and what a collective should leave: a reference without any algorithm. */
#include "lab/check/check_world.h"

#include <errno.h>
#include <stdlib.h>

/* x -> a * x + b modulo 2^32, a in the high half. */
static uint64_t compose(uint64_t left, uint64_t right)
{
	uint32_t al = (uint32_t)(left >> 32), bl = (uint32_t)left;
	uint32_t ar = (uint32_t)(right >> 32), br = (uint32_t)right;

	return (uint64_t)(al * ar) << 32 | (uint32_t)(al * br + bl);
}

static uint64_t operate(bool commutative, uint64_t left, uint64_t right)
{
	return commutative ? left + right : compose(left, right);
}

/* Of a commutative operation a + b is bit for bit b + a, also in floating point. */
static uint64_t join(bool commutative, uint64_t left, uint64_t right)
{
	if (commutative && left > right)
		return oci_symbol_mix(right, left);
	return oci_symbol_mix(left, right);
}

void oci_symbol_reduce(bool commutative, const struct oci_span *in, const struct oci_span *inout)
{
	for (size_t i = 0; i < in->bytes; i++) {
		const struct oci_symbol *left = &in->region->cells[in->from + i];
		struct oci_symbol *right = &inout->region->cells[inout->from + i];

		right->value = operate(commutative, left->value, right->value);
		right->tree = join(commutative, left->tree, right->tree);
	}
}

/* Of whom rank `rank` gets the reduction: ranks 0 .. operands - 1. */
static uint32_t operands(const struct oci_world *w, const struct oci_check_call *c, uint32_t rank)
{
	if (oci_is_exclusive(c->collective))
		return rank;
	return oci_is_prefix(c->collective) ? rank + 1 : w->check->size;
}

/* Do the ranks get different results? */
static bool differ(const struct oci_check_call *c)
{
	return oci_sends_each(c->collective) || oci_is_prefix(c->collective);
}

/* The result of one rank: of what bytes of the operands, and where it lies in the fold. */
struct part {
	size_t from, first, bytes;
};

static struct part part_of(const struct oci_check_call *c, uint32_t rank)
{
	size_t place = rank * c->bytes;

	if (c->blocks)
		return (struct part){ c->blocks[rank].offset, c->blocks[rank].offset,
				      c->blocks[rank].bytes };
	if (oci_sends_each(c->collective))
		return (struct part){ place, place, c->bytes };
	return (struct part){ 0, differ(c) ? place : 0, c->bytes };
}

/* In rank order; a prefix goes on from that of the rank before, which has one operand less. */
static void fold_for(const struct oci_world *w, uint32_t call, uint32_t rank,
		     struct oci_symbol *fold)
{
	const struct oci_check_call *c = oci_world_call(w, call);
	struct part part = part_of(c, rank);
	uint32_t count = operands(w, c, rank), r = 0;

	if (!part.bytes)
		return; /* `fold` may be none */
	if (oci_is_prefix(c->collective) && count > 1) {
		const struct oci_symbol *before = &fold[part_of(c, rank - 1).first];

		for (size_t i = 0; i < part.bytes; i++)
			fold[part.first + i].value = before[i].value;
		r = count - 1;
	}
	for (; r < count; r++) {
		uint64_t owner = oci_symbol_owner(w, call, r);

		for (size_t i = 0; i < part.bytes; i++) {
			uint64_t *value = &fold[part.first + i].value;
			uint64_t mine = oci_symbol_user(owner, part.from + i);

			*value = r ? operate(c->commutative, *value, mine) : mine;
		}
	}
}

/* The expectation of the lane's running call; for reductions with the fold in rank order. */
static int expect(struct oci_world *w, uint32_t call, struct oci_expect **found)
{
	const struct oci_check_call *c = oci_world_call(w, call);
	struct oci_expect *e = &w->expects[call % w->check->lanes];
	uint32_t results = differ(c) ? w->check->size : 1;

	*found = e;
	if (e->call == call + 1)
		return 0;
	if (e->fold_room < results * c->bytes) {
		struct oci_symbol *fold = reallocarray(e->fold, results * c->bytes, sizeof(*fold));

		if (!fold)
			return -ENOMEM;
		e->fold = fold;
		e->fold_room = results * c->bytes;
	}
	for (uint32_t r = 0; r < results; r++)
		fold_for(w, call, r, e->fold);
	e->call = call + 1;
	e->tree_set = false;
	return 0;
}

/* RECV of a collective that moves bytes: the n-th block is whose, and from where in his SEND. */
static void origin(const struct oci_world *w, const struct oci_actor *a, size_t n, uint32_t *rank,
		   size_t *from)
{
	const struct oci_check_call *c = oci_world_call(w, a->call);

	*rank = oci_receives_each(c->collective) ? (uint32_t)n : c->root;
	*from = oci_sends_each(c->collective) ? a->rank * c->bytes : 0;
}

/* Where a wrong symbol comes from, if a rank had it in its SEND; garbage, a stale or a partial
 * result are all "no byte of any SEND". */
static void describe(const struct oci_world *w, const struct oci_actor *a, uint64_t value,
		     char *text, size_t n)
{
	for (uint32_t r = 0; r < w->check->size; r++) {
		uint64_t owner = oci_symbol_owner(w, a->call, r);
		size_t bytes = oci_world_place(w, a->call, r)->send.bytes;

		for (size_t i = 0; i < bytes; i++)
			if (oci_symbol_user(owner, i) == value) {
				snprintf(text, n, "byte %zu of rank %u's SEND", i, r);
				return;
			}
	}
	snprintf(text, n, "no byte of any SEND");
}

int oci_symbol_block(struct oci_world *w, const struct oci_actor *a, const struct oci_view *recv,
		     size_t at, uint32_t rank, size_t from, size_t bytes)
{
	uint64_t owner = oci_symbol_owner(w, a->call, rank);
	const struct oci_symbol *cells;
	char found[64];

	if (!bytes)
		return 0; /* there may be no cells */
	cells = &recv->region->cells[recv->base + at];
	for (size_t i = 0; i < bytes; i++) {
		if (cells[i].value == oci_symbol_user(owner, from + i))
			continue;
		describe(w, a, cells[i].value, found, sizeof(found));
		return oci_world_fail(w, a,
				      "wrong byte: RECV[%zu] should be byte %zu of rank %u's SEND, "
				      "but is %s",
				      at + i, from + i, rank, found);
	}
	return 0;
}

static int check_moved(struct oci_world *w, const struct oci_actor *a, const struct oci_view *recv)
{
	size_t bytes = oci_world_call(w, a->call)->bytes;

	if (oci_is_v(oci_world_call(w, a->call)->collective))
		return oci_blocks_check(w, a, recv);
	for (size_t at = 0; at < recv->bytes; at += bytes) {
		uint32_t rank;
		size_t from;
		int rc;

		origin(w, a, at / bytes, &rank, &from);
		rc = oci_symbol_block(w, a, recv, at, rank, from, bytes);
		if (rc)
			return rc;
	}
	return 0;
}

static int fail_reduced(struct oci_world *w, const struct oci_actor *a, size_t i, uint64_t value)
{
	const struct oci_check_call *c = oci_world_call(w, a->call);
	char found[64], over[32] = "all ranks";

	describe(w, a, value, found, sizeof(found));
	if (operands(w, c, a->rank) < w->check->size)
		snprintf(over, sizeof(over), "ranks 0 to %u", operands(w, c, a->rank) - 1);
	return oci_world_fail(w, a, "wrong byte: RECV[%zu] should be the %s over %s, but is %s", i,
			      c->commutative ? "sum" : "reduction in rank order", over, found);
}

static int check_reduced(struct oci_world *w, const struct oci_actor *a,
			 const struct oci_view *recv)
{
	const struct oci_check_call *c = oci_world_call(w, a->call);
	bool own = differ(c);
	size_t first = part_of(c, a->rank).first;
	struct oci_expect *e;
	int rc = expect(w, a->call, &e);

	if (rc)
		return rc;
	for (size_t i = 0; i < recv->bytes; i++) {
		const struct oci_symbol *cell = &recv->region->cells[recv->base + i];
		struct oci_symbol *fold = &e->fold[first + i];

		if (cell->value != fold->value)
			return fail_reduced(w, a, i, cell->value);
		if (own || !e->tree_set) {
			fold->tree = cell->tree;
			w->result.digest +=
				oci_symbol_mix(oci_symbol_mix(a->call, first + i), cell->tree);
		} else if (fold->tree != cell->tree) {
			return oci_world_fail(w, a,
					      "association: RECV[%zu] was reduced in another order "
					      "than on rank %u",
					      i, e->tree_rank);
		}
	}
	if (!e->tree_set)
		e->tree_rank = a->rank;
	e->tree_set = true;
	return 0;
}

static int check_send(struct oci_world *w, const struct oci_actor *a, const struct oci_view *send)
{
	uint64_t owner = oci_symbol_owner(w, a->call, a->rank);

	for (size_t i = 0; i < send->bytes; i++)
		if (send->region->cells[send->base + i].value != oci_symbol_user(owner, i))
			return oci_world_fail(w, a, "SEND[%zu] was changed", i);
	return 0;
}

int oci_symbol_check(struct oci_world *w, const struct oci_actor *a)
{
	const struct oci_place *place = oci_world_place(w, a->call, a->rank);
	int rc = 0;

	/* Where RECV begins with SEND it has taken its place (Bcast, reductions and Alltoall(v) in
	 * place). */
	if (place->send.region &&
	    (place->send.region != place->recv.region ||
	     (!oci_is_reduction(oci_world_call(w, a->call)->collective) &&
	      !a->plan->key.in_place)) &&
	    !oci_has_one_buffer(oci_world_call(w, a->call)->collective))
		rc = check_send(w, a, &place->send);
	if (!rc && place->recv.region)
		rc = oci_is_reduction(oci_world_call(w, a->call)->collective) ?
			     check_reduced(w, a, &place->recv) :
			     check_moved(w, a, &place->recv);
	return rc;
}
