/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations of the `model` executor. */
#include "lab/virtual/virtual_world.h"

uint32_t oci_virtual_peer(const struct oci_virtual_rank *r, uint32_t v)
{
	return oci_rank_of(&r->params, v >= r->params.size ? v - r->params.size : v);
}

static size_t length_of(const struct oci_virtual_rank *r, const struct oci_range *range)
{
	size_t offset, bytes;

	oci_range_eval(range, &r->params, r->segment, &offset, &bytes);
	return bytes;
}

/* Of how many bytes these are a piece that is swept in the same call: what a cache would have to
 * hold for them to be in it. */
static size_t extent_of(const struct oci_virtual_rank *r, const struct oci_range *a,
			const struct oci_range *b, size_t bytes)
{
	const struct oci_range *range[2] = { a, b };

	for (int i = 0; i < 2; i++) {
		if (range[i]->buf <= OCI_BUF_RECV && range[i]->segmented && r->params.bytes > bytes)
			return r->params.bytes;
	}
	return bytes;
}

/* Is it the same memory? RECV where a reduction accumulates, and the one buffer of a Bcast. */
static bool is_same(const struct oci_virtual_rank *r, const struct oci_op *op)
{
	if (op->local.buf == OCI_BUF_ACC && op->second.buf == OCI_BUF_RECV)
		return r->plan->key.collective != OC_REDUCE || r->v == 0;
	return r->plan->key.collective == OC_BCAST && op->local.buf <= OCI_BUF_RECV &&
	       op->second.buf <= OCI_BUF_RECV;
}

/* PULL and PUSH. */
static bool transfer(struct oci_virtual_world *w, uint32_t rank, const struct oci_op *op)
{
	struct oci_virtual_rank *r = &w->ranks[rank];
	uint32_t peer = oci_virtual_peer(r, op->peer);
	size_t bytes = length_of(r, &op->local);

	if (op->remote.buf == OCI_BUF_SLOT || op->remote.buf == OCI_BUF_INLINE)
		return oci_task_touch(w, rank, peer, bytes,
				      extent_of(r, &op->local, &op->remote, bytes), OCI_TOUCH_COPY);
	if (!bytes)
		return true;
	oci_task_copy(w, rank, op->code == OCI_OP_PUSH ? OCI_MODEL_PUSH : OCI_MODEL_PULL, peer,
		      bytes, extent_of(r, &op->local, &op->remote, bytes));
	return false;
}

/* COPY, REDUCE and REDUCE_FROM. */
static bool local(struct oci_virtual_world *w, uint32_t rank, const struct oci_op *op)
{
	struct oci_virtual_rank *r = &w->ranks[rank];
	size_t bytes = length_of(r, &op->local);
	bool copies = op->code == OCI_OP_COPY;
	enum oci_touch touch = !copies			      ? OCI_TOUCH_REDUCE :
			       op->second.buf == OCI_BUF_SLOT ? OCI_TOUCH_FILL :
								OCI_TOUCH_COPY;
	uint32_t from = op->code == OCI_OP_REDUCE_FROM ? oci_virtual_peer(r, op->peer) : rank;

	if (copies && is_same(r, op))
		return true;
	return oci_task_touch(w, rank, from, bytes, extent_of(r, &op->local, &op->second, bytes),
			      touch);
}

/* Which of an offer's cells are not LARGE: those are copied. */
static bool offer(struct oci_virtual_world *w, uint32_t rank, const struct oci_op *op)
{
	struct oci_virtual_rank *r = &w->ranks[rank];
	size_t bytes = 0;

	for (uint32_t i = 0; i < op->peers; i++) {
		struct oci_range range = op->local;
		size_t length;

		if (op->by_peer)
			range.block = oci_virtual_peer(r, op->peer + i);
		length = length_of(r, &range);
		if (length <= op->limit && !op->address)
			bytes += length;
	}
	return oci_task_touch(w, rank, rank, bytes, bytes, OCI_TOUCH_FILL);
}

/* TAKE and GIVE. */
static bool offered(struct oci_virtual_world *w, uint32_t rank, const struct oci_op *op)
{
	struct oci_virtual_rank *r = &w->ranks[rank];
	uint32_t peer = oci_virtual_peer(r, op->peer);
	size_t bytes = length_of(r, &op->local);

	if (!bytes || !oci_when_holds(op->when, bytes, op->limit))
		return true;
	if (bytes <= op->limit) {
		if (op->code == OCI_OP_GIVE)
			return true;
		return oci_task_touch(w, rank, peer, bytes, bytes, OCI_TOUCH_COPY);
	}
	oci_task_copy(w, rank, op->code == OCI_OP_GIVE ? OCI_MODEL_PUSH : OCI_MODEL_PULL, peer,
		      bytes, bytes);
	return false;
}

/* My part of both blocks: half of one in, half of the other out. */
static bool trade(struct oci_virtual_world *w, uint32_t rank, const struct oci_op *op)
{
	struct oci_virtual_rank *r = &w->ranks[rank];
	size_t bytes = length_of(r, &op->local);

	if (!bytes || !oci_when_holds(op->when, bytes, op->limit))
		return true;
	oci_task_copy(w, rank, OCI_MODEL_PULL, oci_virtual_peer(r, op->peer), bytes, bytes);
	return false;
}

static bool await(struct oci_virtual_world *w, uint32_t rank, const struct oci_op *op)
{
	struct oci_virtual_rank *r = &w->ranks[rank];
	uint32_t value = op->step + (uint32_t)r->segment * op->step_loop;
	enum oci_virtual_flag flag = op->code == OCI_OP_WAIT_POST ? OCI_VIRTUAL_POST :
								    OCI_VIRTUAL_ACK;

	for (; r->at < op->peers; r->at++) {
		uint32_t peer = oci_virtual_peer(r, op->peer + r->at);
		struct oci_range range = op->local;

		if (op->when != OCI_WHEN_ALWAYS) {
			if (op->by_peer)
				range.block = peer;
			if (!oci_when_holds(op->when, length_of(r, &range), op->limit))
				continue;
		}
		if (!oci_virtual_await(w, rank, peer, flag, value))
			return false;
	}
	r->at = 0;
	return true;
}

static void jump(struct oci_virtual_rank *r, const struct oci_op *op)
{
	const struct oci_op *loop = op->code == OCI_OP_NEXT ? &r->plan->ops[op->jump] : op;
	uint64_t turns = oci_range_segments(&loop->local, &r->params);

	if (op->code == OCI_OP_LOOP) {
		r->segment = 0;
		r->pc = turns ? r->pc + 1 : op->jump + 1u;
	} else if (++r->segment < turns) {
		r->pc = op->jump + 1u;
	} else {
		r->segment = 0;
		r->pc++;
	}
}

/* Runs an operation, or goes on with it: true when it is through. */
static bool run_op(struct oci_virtual_world *w, uint32_t rank, const struct oci_op *op)
{
	struct oci_virtual_rank *r = &w->ranks[rank];
	uint32_t value = op->step + (uint32_t)r->segment * op->step_loop;

	switch (op->code) {
	case OCI_OP_POST:
		oci_virtual_raise(w, rank, OCI_VIRTUAL_POST, value);
		return true;
	case OCI_OP_SIGNAL:
		oci_virtual_raise(w, rank, OCI_VIRTUAL_ACK, value);
		return true;
	case OCI_OP_WAIT_POST:
	case OCI_OP_WAIT_ACK:
		return await(w, rank, op);
	case OCI_OP_PULL:
	case OCI_OP_PUSH:
		return transfer(w, rank, op);
	case OCI_OP_COPY:
	case OCI_OP_REDUCE:
	case OCI_OP_REDUCE_FROM:
		return local(w, rank, op);
	case OCI_OP_OFFER:
		return offer(w, rank, op);
	case OCI_OP_TAKE:
	case OCI_OP_GIVE:
		return offered(w, rank, op);
	case OCI_OP_TRADE:
		return trade(w, rank, op);
	case OCI_OP_SHARE:
		return oci_virtual_share(w, rank, op);
	default: /* HELP */
		return oci_virtual_help(w, rank, op);
	}
}

void oci_virtual_next(struct oci_virtual_rank *r)
{
	enum oci_opcode code = r->plan->ops[r->pc].code;

	/* Waits one after the other are a row, too. */
	if (code != OCI_OP_WAIT_POST && code != OCI_OP_WAIT_ACK)
		r->row = false;
	r->pc++;
	r->begun = false;
}

void oci_virtual_go(struct oci_virtual_world *w, uint32_t rank)
{
	struct oci_virtual_rank *r = &w->ranks[rank];

	for (;;) {
		const struct oci_op *op = &r->plan->ops[r->pc];

		if (op->code == OCI_OP_END) {
			r->state = OCI_VIRTUAL_OVER;
			w->over++;
			return;
		}
		if (op->code == OCI_OP_LOOP || op->code == OCI_OP_NEXT) {
			jump(r, op);
			continue;
		}
		if (!r->begun)
			r->now_s += w->model->op.value;
		r->begun = true;
		if (!run_op(w, rank, op))
			return;
		oci_virtual_next(r);
	}
}
