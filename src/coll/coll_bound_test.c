/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The bound form of a plan (plan/bound.h) does what the plan does: for every algorithm, 2 to 33
 * ranks, several sizes and roots, each operation of the plan is met by its steps, in its order,
 * with the same ranks, bytes and places, and there is no other step. What the checker proves of
 * the plans is so true of their bound forms.
 */
#include <stdlib.h>

#include "coll/coll.h"
#include "plan/exec.h"
#include "support/test.h"

#define MOST_RANKS 33

static const size_t sizes[] = { 0, 4, 8, 12, 100, 248, 496 };

static struct oci_member members[MOST_RANKS];
static struct oci_team team;
static unsigned long bound_plans[OC_COLLECTIVES];

/* Regions are named, not touched. */
static struct oci_region *region_of(uint32_t rank)
{
	return (struct oci_region *)(uintptr_t)(0x10000u * (rank + 1));
}

/* A range against the place of a step. ACC is RECV: there alone are bound forms run. */
static void same_place(const struct oci_exec *x, const struct oci_range *range,
		       struct oci_bound_place place)
{
	size_t there, bytes;

	oci_range_eval(range, &x->params, 0, &there, &bytes);
	assert_int_equal(place.at, there);
	assert_int_equal(place.table, OCI_TABLE_NONE);
	switch (range->buf) {
	case OCI_BUF_SEND:
		assert_int_equal(place.buf, OCI_BOUND_SEND);
		break;
	case OCI_BUF_RECV:
	case OCI_BUF_ACC:
		assert_int_equal(place.buf, OCI_BOUND_RECV);
		break;
	default:
		assert_int_equal(range->buf, OCI_BUF_INLINE);
		assert_int_equal(place.buf, OCI_BOUND_PAYLOAD);
	}
}

static size_t length_of(const struct oci_exec *x, const struct oci_range *range)
{
	size_t offset, bytes;

	oci_range_eval(range, &x->params, 0, &offset, &bytes);
	return bytes;
}

static void same_peer(const struct oci_exec *x, uint32_t v, const struct oci_bound_step *s)
{
	uint32_t rank = (v + x->params.root) % x->params.size;

	assert_int_equal(s->peer, rank);
	assert_ptr_equal(s->region, region_of(rank));
}

/* The step of a COPY, PULL, REDUCE or REDUCE_FROM; none when it moves nothing. Steps taken. */
static uint32_t same_move(const struct oci_exec *x, const struct oci_op *op,
			  const struct oci_bound_step *s)
{
	static const uint8_t codes[OCI_OP_COUNT] = { [OCI_OP_COPY] = OCI_BOUND_MOVE,
						     [OCI_OP_PULL] = OCI_BOUND_TAKE,
						     [OCI_OP_REDUCE] = OCI_BOUND_REDUCE,
						     [OCI_OP_REDUCE_FROM] = OCI_BOUND_REDUCE_FROM };
	bool mine = op->code == OCI_OP_COPY || op->code == OCI_OP_REDUCE;
	bool reduces = op->code == OCI_OP_REDUCE || op->code == OCI_OP_REDUCE_FROM;
	const struct oci_range *from = mine ? &op->local : &op->remote;
	const struct oci_range *to = mine ? &op->second : &op->local;
	size_t bytes = length_of(x, from), room = length_of(x, to);

	if (bytes > room)
		bytes = room;
	/* The same bytes, as ACC is RECV. */
	if (op->code == OCI_OP_COPY && from->buf == OCI_BUF_ACC && to->buf == OCI_BUF_RECV) {
		assert_int_equal(from->block, to->block);
		return 0;
	}
	if (!bytes)
		return 0;
	assert_int_equal(s->code, codes[op->code]);
	assert_int_equal(s->length, reduces ? bytes / x->unit : bytes);
	same_place(x, from, s->from);
	same_place(x, to, s->to);
	assert_true(mine || s->from.buf == OCI_BOUND_PAYLOAD);
	same_peer(x, mine ? x->plan->key.v : op->peer, s);
	if (to->buf == OCI_BUF_INLINE) {
		assert_true(x->bound->payload >= s->to.at + bytes);
		assert_true(s->to.at + bytes <= OCI_INLINE_BYTES);
	}
	return 1;
}

/* ---- v-variants ------------------------------------------------------------------------------
 */

static void same_block(const struct oci_exec *x, const struct oci_range *range, uint32_t index,
		       struct oci_bound_place block)
{
	uint32_t at = range->relative ? (index + x->params.root) % x->params.size : index;

	assert_int_equal(range->blocks, 1);
	assert_int_equal(range->parts + range->segmented, 0);
	assert_int_equal(block.table, range->table);
	assert_int_equal(block.at, at);
	assert_int_equal(block.buf, range->buf == OCI_BUF_SEND ? OCI_BOUND_SEND : OCI_BOUND_RECV);
	/* Without a table it is all of a buffer that holds one block. */
	assert_true(range->table || !at);
}

/* The form is not run where the block has more than `most` bytes. */
static void limited(const struct oci_exec *x, const struct oci_range *range, uint32_t index,
		    uint32_t most)
{
	uint32_t at = range->relative ? (index + x->params.root) % x->params.size : index;

	for (uint32_t i = 0; i < x->bound->limits; i++) {
		const struct oci_bound_limit *l = &x->bound->limit[i];

		if (l->block.table == range->table && l->block.at == at &&
		    l->block.buf ==
			    (range->buf == OCI_BUF_SEND ? OCI_BOUND_SEND : OCI_BOUND_RECV)) {
			assert_true(l->most <= most);
			return;
		}
	}
	fail_msg("a block without a limit");
}

/* The rank, not relative, of peer i, and the block that is its in this operation. */
static uint32_t block_of_peer(const struct oci_exec *x, const struct oci_op *op, uint32_t i)
{
	return op->by_peer ? (op->peer + i + x->params.root) % x->params.size : op->local.block;
}

static uint32_t same_offer(const struct oci_exec *x, const struct oci_op *op,
			   const struct oci_bound_step *s)
{
	assert_int_equal(s->code, OCI_BOUND_HEAD);
	assert_false(op->offer.in_slot);
	for (uint32_t i = 0; i < op->peers; i++) {
		uint32_t index = block_of_peer(x, op, i);
		const struct oci_bound_step *cell = &s[1 + i];

		limited(x, &op->local, index, op->address ? op->limit : op->offer.cell_bytes);
		if (op->address)
			continue;
		assert_int_equal(cell->code, OCI_BOUND_MOVE_BLOCK);
		assert_int_equal(cell->to.buf, OCI_BOUND_PAYLOAD);
		assert_int_equal(cell->to.at, op->offer.first + i * op->offer.cell_bytes);
		assert_true(cell->to.at + op->offer.cell_bytes <= OCI_INLINE_BYTES);
		same_block(x, &op->local, index, cell->from);
	}
	return op->address ? 1 : 1 + op->peers;
}

/* What is only for LARGE blocks is no step. */
static uint32_t same_wait(const struct oci_exec *x, const struct oci_op *op,
			  const struct oci_bound_step *s)
{
	assert_int_equal(op->code, OCI_OP_WAIT_POST);
	for (uint32_t i = 0; i < op->peers; i++) {
		uint32_t index = block_of_peer(x, op, i);

		same_peer(x, op->peer + i, &s[i]);
		assert_int_equal(s[i].step, op->step);
		assert_int_equal(s[i].code, op->when == OCI_WHEN_ALWAYS ? OCI_BOUND_WAIT :
									  OCI_BOUND_WAIT_BLOCK);
		if (op->when != OCI_WHEN_ALWAYS)
			same_block(x, &op->local, index, s[i].to);
		if (op->when == OCI_WHEN_SMALL)
			limited(x, &op->local, index, op->limit);
	}
	return op->peers;
}

static uint32_t same_take(const struct oci_exec *x, const struct oci_op *op,
			  const struct oci_bound_step *s)
{
	uint32_t index = block_of_peer(x, op, 0);

	same_peer(x, op->peer, s);
	same_block(x, &op->local, index, s->to);
	assert_int_equal(s->code, OCI_BOUND_MOVE_BLOCK);
	assert_ptr_equal(&x->plan->ops[s->step], op);
	assert_int_equal(s->length, op->offer.cell);
	assert_int_equal(s->from.buf, OCI_BOUND_PAYLOAD);
	assert_int_equal(s->from.at, op->offer.first + op->offer.cell * op->offer.cell_bytes);
	limited(x, &op->local, index, op->offer.cell_bytes);
	return 1;
}

static uint32_t same_op(const struct oci_exec *x, const struct oci_op *op,
			const struct oci_bound_step *s)
{
	bool blocks = oci_is_v(x->plan->key.collective);

	if (op->when == OCI_WHEN_LARGE) {
		for (uint32_t i = 0; i < op->peers; i++)
			limited(x, &op->local, block_of_peer(x, op, i), op->limit);
		return 0;
	}
	assert_true(blocks || op->when == OCI_WHEN_ALWAYS);
	switch (op->code) {
	case OCI_OP_SIGNAL:
		assert_false(op->step_loop);
		assert_int_equal(s->code, OCI_BOUND_SIGNAL);
		assert_int_equal(s->step, op->step);
		return 1;
	case OCI_OP_POST:
		assert_false(op->address || op->slot || op->step_loop);
		assert_int_equal(s->code, OCI_BOUND_POST);
		assert_int_equal(s->step, op->step);
		return 1;
	case OCI_OP_WAIT_POST:
		return same_wait(x, op, s);
	case OCI_OP_OFFER:
		return same_offer(x, op, s);
	case OCI_OP_TAKE:
		return same_take(x, op, s);
	case OCI_OP_COPY:
		if (!blocks)
			return same_move(x, op, s);
		assert_int_equal(s->code, OCI_BOUND_MOVE_BLOCK);
		same_block(x, &op->local, op->local.block, s->from);
		same_block(x, &op->second, op->second.block, s->to);
		return 1;
	case OCI_OP_PULL:
	case OCI_OP_REDUCE:
	case OCI_OP_REDUCE_FROM:
		assert_false(blocks);
		return same_move(x, op, s);
	default:
		fail_msg("a plan with operation %s has a bound form",
			 oci_opcode_name((enum oci_opcode)op->code));
		return 0;
	}
}

/* False: this plan has no bound form. */
static bool check(const struct oci_plan *plan, uint32_t root, size_t bytes, size_t unit)
{
	struct oci_exec x = { .team = &team, .plan = plan, .unit = unit };
	uint32_t at = 0;

	x.params.bytes = bytes;
	x.params.root = root;
	x.params.size = plan->key.size;
	team.rank = (plan->key.v + root) % plan->key.size;
	team.own = region_of(team.rank);
	oci_exec_ready(&x);
	x.bound = oci_bound_create(&x);
	if (!x.bound)
		return false;
	for (uint32_t i = 0; plan->ops[i].code != OCI_OP_END; i++)
		at += same_op(&x, &plan->ops[i], &x.bound->step[at]);
	assert_int_equal(x.bound->step[at].code, OCI_BOUND_END);
	assert_int_equal(x.bound->posts, plan->posts);
	assert_int_equal(x.bound->needs_recv, plan->uses_acc);
	oci_bound_put(x.bound);
	bound_plans[plan->key.collective]++;
	return true;
}

/* Every rank's plan of one algorithm. */
static void check_algorithm(enum oc_collective c, unsigned int index, uint32_t size, uint32_t root,
			    bool commutative)
{
	const struct oci_algorithm *a = oci_algorithm(c, index);
	bool reduces = oci_is_reduction(c);

	for (uint32_t v = 0; v < size; v++) {
		struct oci_plan_key key = { .collective = (uint8_t)c,
					    .algorithm = (uint8_t)index,
					    .commutative = commutative,
					    .parameter = a->parameter_default,
					    .v = v,
					    .size = size,
					    .root = c == OC_REDUCE && !commutative ? root : 0 };
		int error = 0;
		struct oci_plan *plan = oci_plan_build(&key, &error);

		assert_non_null(plan);
		for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
			struct oci_shape shape = { .collective = c,
						   .bytes = sizes[i],
						   .unit = reduces ? 4 : 1,
						   .size = size };
			bool fits = !a->fits || a->fits(&shape, key.parameter);

			/* Two ranks are what the limit on our own instructions is about; a table of
			 * blocks is each call's own. */
			if (fits && !check(plan, root, sizes[i], shape.unit) && size == 2 &&
			    c != OC_REDUCE_SCATTER)
				assert_string_not_equal(a->name, "inline");
		}
		free(plan);
	}
}

TEST(bound_forms_are_their_plans)
{
	team.member = members;
	for (uint32_t rank = 0; rank < MOST_RANKS; rank++)
		members[rank].region = region_of(rank);
	for (uint32_t size = 2; size <= MOST_RANKS; size++) {
		team.size = size;
		for (int c = 0; c < OC_COLLECTIVES; c++) {
			bool rooted = oci_is_rooted(c);

			for (unsigned int i = 0; oci_algorithm(c, i); i++) {
				for (uint32_t root = 0; root < (rooted ? size : 1);
				     root += 1 + size / 5) {
					check_algorithm(c, i, size, root, true);
					check_algorithm(c, i, size, root, false);
				}
			}
		}
	}
	for (int c = 0; c < OC_COLLECTIVES; c++)
		assert_true(bound_plans[c] > 0 ||
			    (c > OC_ALLTOALLV && !oci_is_v((enum oc_collective)c)));
}
