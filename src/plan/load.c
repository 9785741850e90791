/* SPDX-License-Identifier: BSD-3-Clause */
#include "plan/load.h"

/* A segmented range of a loop is all of it in all turns. */
static size_t bytes_in_turns(const struct oci_range *range, const struct oci_params *params,
			     uint64_t turns)
{
	struct oci_range all = *range;
	size_t offset, bytes;

	all.segmented = all.halves = 0;
	oci_range_eval(&all, params, 0, &offset, &bytes);
	return range->segmented ? (turns ? bytes : 0) : bytes * turns;
}

static bool copies(const struct oci_op *op)
{
	switch (op->code) {
	case OCI_OP_PULL:
	case OCI_OP_PUSH:
	case OCI_OP_SHARE:
		/* Else it is memory of all. */
		return op->remote.buf != OCI_BUF_SLOT && op->remote.buf != OCI_BUF_INLINE;
	default:
		return op->code == OCI_OP_TAKE || op->code == OCI_OP_GIVE ||
		       op->code == OCI_OP_TRADE;
	}
}

/* What such an operation copies in all turns of its loop. */
static size_t load_of(const struct oci_op *op, const struct oci_plan *plan,
		      const struct oci_params *params, uint64_t turns)
{
	size_t bytes = bytes_in_turns(&op->local, params, turns), from, to;

	if (!oci_when_holds(op->when, bytes, op->limit))
		return 0;
	if (op->code == OCI_OP_TRADE) {
		oci_trade_part(bytes,
			       oci_rank_of(params, plan->key.v) < oci_rank_of(params, op->peer),
			       &from, &to);
		/* Of one block and of the other. */
		return 2 * (to - from);
	}
	return (op->code == OCI_OP_TAKE || op->code == OCI_OP_GIVE) && bytes <= op->limit ? 0 :
											    bytes;
}

struct oci_load oci_plan_load(const struct oci_plan *plan, const struct oci_params *params,
			      bool (*is_near)(const void *context, uint32_t rank),
			      const void *context)
{
	struct oci_load load = { 0, 0 };
	uint64_t turns = 1;

	for (const struct oci_op *op = plan->ops; op->code != OCI_OP_END; op++) {
		size_t bytes;

		if (op->code == OCI_OP_LOOP)
			turns = oci_range_segments(&op->local, params);
		else if (op->code == OCI_OP_NEXT)
			turns = 1;
		if (!copies(op))
			continue;
		bytes = load_of(op, plan, params, turns);
		load.all += bytes;
		if (bytes && is_near(context, oci_rank_of(params, op->peer)))
			load.near += bytes;
	}
	return load;
}
