/* SPDX-License-Identifier: BSD-3-Clause */
/* The checker's interpretation of operations: one at a time, each at once. */
#include "lab/check/check_world.h"

#include <errno.h>

int oci_actor_needs(struct oci_world *w, const struct oci_actor *a, uint32_t peer, uint8_t buf)
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

int oci_span_move(struct oci_world *w, const struct oci_actor *a, const struct oci_span *source,
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

int oci_span_trade(struct oci_world *w, const struct oci_actor *a, uint32_t peer,
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
		struct oci_cell *cell[2], kept;

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
	uint32_t peer = oci_actor_peer(w, a, op->peer);
	struct oci_span local, remote;
	int rc = oci_actor_needs(w, a, peer, op->remote.buf);

	if (!rc)
		rc = oci_span_resolve(w, a, a->rank, &op->local, &local);
	if (!rc)
		rc = oci_span_resolve(w, a, peer, &op->remote, &remote);
	if (rc)
		return rc;
	if (op->code == OCI_OP_REDUCE_FROM)
		return reduce_spans(w, a, &remote, &local);
	if (op->code == OCI_OP_TRADE)
		return oci_span_trade(w, a, peer, &local, &remote);
	if (op->code == OCI_OP_PUSH)
		return oci_span_move(w, a, &local, &remote);
	return oci_span_move(w, a, &remote, &local);
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
	return op->code == OCI_OP_COPY ? oci_span_move(w, a, &first, &second) :
					 reduce_spans(w, a, &first, &second);
}

/* The handles and the payload of a POST line are the same bytes. */
static int post(struct oci_world *w, struct oci_actor *a, const struct oci_op *op)
{
	struct oci_region *line = &oci_world_place(w, a->call, a->rank)->line;
	struct oci_span span = { .region = line, .bytes = line->limit };
	int rc = 0;

	if (op->address || op->slot) {
		rc = oci_span_access(w, a, &span, true, 0);
		if (!rc)
			oci_region_garbage(line, oci_symbol_mix(a->call, a->rank));
	}
	return rc ? rc : oci_flag_raise(w, a, op);
}

/* LOOP and NEXT touch nothing that others see: they are part of the step before them. */
static void run_jumps(struct oci_actor *a)
{
	for (;;) {
		const struct oci_op *op = oci_actor_op(a);

		if (op->code == OCI_OP_NEXT) {
			const struct oci_op *loop = &a->plan->ops[op->jump];

			if (++a->segment < oci_range_segments(&loop->local, &a->params)) {
				a->pc = op->jump + 1u;
			} else {
				a->segment = 0;
				a->pc++;
			}
		} else if (op->code == OCI_OP_LOOP) {
			a->segment = 0;
			a->pc = oci_range_segments(&op->local, &a->params) ? a->pc + 1 :
									     op->jump + 1u;
		} else {
			return;
		}
	}
}

static int run_op(struct oci_world *w, struct oci_actor *a, const struct oci_op *op,
		  uint32_t choice, bool *ended)
{
	switch (op->code) {
	case OCI_OP_POST:
		return post(w, a, op);
	case OCI_OP_SIGNAL:
		return oci_flag_raise(w, a, op);
	case OCI_OP_WAIT_POST:
	case OCI_OP_WAIT_ACK:
		return oci_flag_wait(w, a, op);
	case OCI_OP_PULL:
	case OCI_OP_PUSH:
	case OCI_OP_REDUCE_FROM:
		return transfer(w, a, op);
	case OCI_OP_TRADE:
		return op->offered ? oci_offered_step(w, a, op) : transfer(w, a, op);
	case OCI_OP_OFFER:
		return oci_offer_step(w, a, op);
	case OCI_OP_TAKE:
	case OCI_OP_GIVE:
		return oci_offered_step(w, a, op);
	case OCI_OP_SHARE:
		return oci_share_step(w, a, op, ended);
	case OCI_OP_HELP:
		return oci_help_step(w, a, op, choice, ended);
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
		run_jumps(a);
	w->result.steps++;
	return 0;
}

uint32_t oci_actor_choices(const struct oci_world *w, const struct oci_actor *a)
{
	uint32_t choices = 1;

	if (a->running && oci_actor_op(a)->code == OCI_OP_HELP)
		choices = oci_help_choices(w, a);
	return choices ? choices : 1;
}
