/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of a builder: what the whole plan uses, what does not go together, and the packed plan.
 */
#include "plan/builder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What a plan uses of this rank's own buffers. */
struct use {
	bool buf[OCI_BUF_COUNT];
	bool parts;
	bool posts;
	bool shares;
	bool halves;
	bool trades;
	unsigned int handles; /* publications */
	unsigned int offers;
	uint32_t most_segments;
};

/* How often a loop may raise or await a flag until its step leaves the operation's. */
static void use_step(struct use *use, const struct oci_op *op)
{
	uint32_t most;

	if (!op->step_loop)
		return;
	most = (OCI_STEPS - 1 - op->step) / op->step_loop + 1;
	if (!use->most_segments || most < use->most_segments)
		use->most_segments = most;
}

static void use_range(struct use *use, const struct oci_range *range, bool own)
{
	if (own)
		use->buf[range->buf] = true;
	if (range->parts)
		use->parts = true;
	use->halves |= range->halves;
}

static void use_op(struct use *use, const struct oci_op *op)
{
	use_step(use, op);
	switch (op->code) {
	case OCI_OP_POST:
		use->posts = true;
		use->handles += op->address + op->slot;
		use->buf[OCI_BUF_SLOT] |= op->slot;
		break;
	case OCI_OP_PULL:
	case OCI_OP_PUSH:
	case OCI_OP_SHARE:
	case OCI_OP_HELP:
	case OCI_OP_REDUCE_FROM:
		use->shares |= op->code == OCI_OP_SHARE;
		use_range(use, &op->local, true);
		use_range(use, &op->remote, false);
		break;
	case OCI_OP_COPY:
	case OCI_OP_REDUCE:
		use_range(use, &op->local, true);
		use_range(use, &op->second, true);
		break;
	case OCI_OP_OFFER:
		/* In the payload of the POST line, and in the slot if a block is small. */
		use->offers++;
		use->buf[OCI_BUF_INLINE] = true;
		use_range(use, &op->local, true);
		break;
	case OCI_OP_TAKE:
	case OCI_OP_GIVE:
		use_range(use, &op->local, true);
		break;
	case OCI_OP_TRADE:
		use->trades = use->buf[OCI_BUF_TEMP] = true;
		use_range(use, &op->local, true);
		break;
	case OCI_OP_LOOP:
		use_range(use, &op->local, false);
		break;
	default:
		break;
	}
}

struct oci_plan *oci_builder_finish(struct oci_builder *b, int *error)
{
	struct oci_plan *plan = NULL;
	struct use use = { 0 };

	if (b->in_loop)
		oci_builder_reject(b, -EINVAL);
	oci_builder_append(b, &(struct oci_op){ .code = OCI_OP_END });
	for (uint32_t i = 0; i < b->count; i++)
		use_op(&use, &b->ops[i]);
	/* An offer takes its slot when a block is small; one that is there already is not its. */
	if (use.offers > 1 || (use.offers && use.buf[OCI_BUF_SLOT]))
		oci_builder_reject(b, -EINVAL);
	/* Two segments lie in a slot. */
	if (use.halves && (!b->segment_bytes || b->segment_bytes > OCI_SLOT_BYTES / 2))
		oci_builder_reject(b, -EINVAL);
	/* It goes by segments. */
	if (use.trades && !b->segment_bytes)
		oci_builder_reject(b, -EINVAL);
	/* The payload of a POST line and the handles it publishes are the same bytes of it. */
	if (use.handles > 1 || (use.handles && use.buf[OCI_BUF_INLINE]) ||
	    (use.parts && !b->nparts))
		oci_builder_reject(b, -EINVAL);
	if (!b->error) {
		plan = malloc(sizeof(*plan) + b->count * sizeof(*b->ops));
		if (!plan)
			oci_builder_reject(b, -ENOMEM);
	}
	if (plan) {
		*plan = (struct oci_plan){
			.key = b->key,
			.nparts = b->nparts,
			.segment_bytes = b->segment_bytes,
			.most_segments = use.most_segments,
			.count = b->count,
			.work_blocks = b->work_blocks,
			.uses_slot = use.buf[OCI_BUF_SLOT],
			.uses_halves = use.halves,
			.uses_temp = use.buf[OCI_BUF_TEMP],
			.uses_acc = use.buf[OCI_BUF_ACC],
			.posts = use.posts,
			.uses_share = use.shares,
		};
		memcpy(plan->ops, b->ops, b->count * sizeof(*b->ops));
	} else {
		*error = b->error;
	}
	free(b->ops);
	free(b);
	return plan;
}
