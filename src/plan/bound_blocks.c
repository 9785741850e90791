/* SPDX-License-Identifier: BSD-3-Clause */
/* Binding of the v-variants, whose blocks have their sizes in the tables of each call. */
#include <string.h>

#include "plan/bound.h"
#include "plan/exec.h"

static bool block_of(const struct oci_exec *ready, const struct oci_range *range, uint32_t index,
		     struct oci_bound_block *block)
{
	uint32_t at = range->relative ? oci_rank_of(&ready->params, index) : index;

	if ((range->buf != OCI_BUF_SEND && range->buf != OCI_BUF_RECV) || range->blocks != 1 ||
	    range->parts || range->segmented || range->table == OCI_TABLE_RECV_SIZES ||
	    at > UINT16_MAX || (!range->table && at))
		return false;
	*block = (struct oci_bound_block){
		.buf = range->buf == OCI_BUF_SEND ? OCI_BOUND_SEND : OCI_BOUND_RECV,
		.table = range->table,
		.index = (uint16_t)at,
	};
	return true;
}

/* The bound form is for calls where this block has no more bytes. False: no room to say so. */
static bool limit_to(struct oci_bound *bound, struct oci_bound_block block, uint32_t most)
{
	for (uint32_t i = 0; i < bound->limits; i++) {
		struct oci_bound_limit *limit = &bound->limit[i];

		if (memcmp(&limit->block, &block, sizeof(block)))
			continue;
		if (limit->most > most)
			limit->most = most;
		return true;
	}
	if (bound->limits == OCI_BOUND_STEPS)
		return false;
	bound->limit[bound->limits++] = (struct oci_bound_limit){ .block = block, .most = most };
	return true;
}

/* Each peer's block of an operation is not LARGE. */
static bool none_large(const struct oci_exec *ready, const struct oci_op *op,
		       struct oci_bound *bound)
{
	for (uint32_t i = 0; i < op->peers; i++) {
		uint32_t index = op->by_peer ? oci_exec_peer(ready, op, i) : op->local.block;
		struct oci_bound_block block;

		if (!block_of(ready, &op->local, index, &block) ||
		    !limit_to(bound, block, op->limit))
			return false;
	}
	return true;
}

static int bind_offer(const struct oci_exec *ready, const struct oci_op *op,
		      struct oci_bound *bound, struct oci_bound_step *step, uint32_t room)
{
	uint32_t steps = op->address ? 1 : 1 + op->peers;

	if (op->offer.in_slot || steps > room)
		return -1;
	step[0] = (struct oci_bound_step){ .code = OCI_BOUND_HEAD, .region = ready->team->own };
	if (op->address)
		return none_large(ready, op, bound) ? 1 : -1;
	for (uint32_t i = 0; i < op->peers; i++) {
		uint32_t index = op->by_peer ? oci_exec_peer(ready, op, i) : op->local.block;
		struct oci_bound_step *s = &step[1 + i];

		*s = (struct oci_bound_step){
			.code = OCI_BOUND_OFFER,
			.length = op->offer.first + i * op->offer.cell_bytes,
			.region = ready->team->own,
		};
		if (!block_of(ready, &op->local, index, &s->block) ||
		    !limit_to(bound, s->block, op->offer.cell_bytes))
			return -1;
	}
	return (int)steps;
}

static void set_peer(const struct oci_exec *ready, const struct oci_op *op, uint32_t i,
		     struct oci_bound_step *step)
{
	step->peer = oci_exec_peer(ready, op, i);
	step->region = ready->team->member[step->peer].region;
}

static int bind_take(const struct oci_exec *ready, const struct oci_op *op, struct oci_bound *bound,
		     struct oci_bound_step *step)
{
	if (op->when == OCI_WHEN_LARGE)
		return none_large(ready, op, bound) ? 0 : -1;
	*step = (struct oci_bound_step){
		.code = OCI_BOUND_TAKE_CELL,
		.step = (uint16_t)(op - ready->plan->ops),
		.length = op->offer.first + op->offer.cell * op->offer.cell_bytes,
	};
	set_peer(ready, op, 0, step);
	if (op->offer.in_slot || op - ready->plan->ops > UINT16_MAX ||
	    !block_of(ready, &op->local, op->local.block, &step->block) ||
	    !limit_to(bound, step->block, op->offer.cell_bytes))
		return -1;
	return 1;
}

/* Of blocks that are not LARGE, those that have bytes are SMALL. */
static int bind_wait(const struct oci_exec *ready, const struct oci_op *op, struct oci_bound *bound,
		     struct oci_bound_step *step, uint32_t room)
{
	if (op->when == OCI_WHEN_LARGE)
		return none_large(ready, op, bound) ? 0 : -1;
	if (op->code != OCI_OP_WAIT_POST || op->when == OCI_WHEN_ALWAYS || op->step_loop ||
	    op->peers > room)
		return -1;
	for (uint32_t i = 0; i < op->peers; i++) {
		uint32_t index = op->by_peer ? oci_exec_peer(ready, op, i) : op->local.block;

		step[i] =
			(struct oci_bound_step){ .code = OCI_BOUND_WAIT_FILLED, .step = op->step };
		set_peer(ready, op, i, &step[i]);
		if (!block_of(ready, &op->local, index, &step[i].block))
			return -1;
		if (op->when == OCI_WHEN_SMALL && !limit_to(bound, step[i].block, op->limit))
			return -1;
	}
	return (int)op->peers;
}

int oci_bound_blocks(const struct oci_exec *ready, const struct oci_op *op, struct oci_bound *bound,
		     struct oci_bound_step *step, uint32_t room)
{
	switch (op->code) {
	case OCI_OP_OFFER:
		return bind_offer(ready, op, bound, step, room);
	case OCI_OP_TAKE:
		return bind_take(ready, op, bound, step);
	case OCI_OP_GIVE:
	case OCI_OP_TRADE:
		return op->when == OCI_WHEN_LARGE && none_large(ready, op, bound) ? 0 : -1;
	case OCI_OP_WAIT_POST:
	case OCI_OP_WAIT_ACK:
		return bind_wait(ready, op, bound, step, room);
	case OCI_OP_COPY:
		*step = (struct oci_bound_step){ .code = OCI_BOUND_COPY_BLOCK,
						 .region = ready->team->own };
		return block_of(ready, &op->local, op->local.block, &step->block) &&
				       block_of(ready, &op->second, op->second.block,
						&step->other) ?
			       1 :
			       -1;
	default:
		return -1;
	}
}
