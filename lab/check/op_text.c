/* SPDX-License-Identifier: BSD-3-Clause */
#include "lab/check/op_text.h"

#include <stdio.h>

#define RANGE_TEXT 64

static const char *range_text(char *text, const struct oci_range *range)
{
	const char *name = oci_buf_name(range->buf);
	const char *seg = range->halves ? "/half" : range->segmented ? "/seg" : "";
	static const char *const tables[] = { "", "@send", "@recv", "@sizes" };
	const char *table = tables[range->table];
	char blocks[32], parts[32] = "";

	if (range->blocks > 1)
		snprintf(blocks, sizeof(blocks), "%u..%u)", range->block,
			 range->block + range->blocks);
	else
		snprintf(blocks, sizeof(blocks), "%s%u]", range->relative ? "root+" : "",
			 range->block);
	if (range->parts)
		snprintf(parts, sizeof(parts), "{%u..%u)", range->part, range->part + range->parts);
	snprintf(text, RANGE_TEXT, "%s[%.24s%.24s%s%s", name, blocks, parts, table, seg);
	return text;
}

static const char *step_text(char *text, size_t n, const struct oci_op *op)
{
	if (op->step_loop)
		snprintf(text, n, "step %u+%u*segment", op->step, op->step_loop);
	else
		snprintf(text, n, "step %u", op->step);
	return text;
}

static const char *when_text(unsigned int when)
{
	static const char *const texts[] = { "", " if filled", " if small", " if large" };

	return texts[when & 3];
}

const char *oci_op_text(char *text, size_t n, const struct oci_op *op)
{
	const char *name = oci_opcode_name(op->code);
	char a[RANGE_TEXT], b[RANGE_TEXT], step[48];

	switch (op->code) {
	case OCI_OP_POST:
		snprintf(text, n, "%s%s%s %s", name, op->address ? " address" : "",
			 op->slot ? " slot" : "", step_text(step, sizeof(step), op));
		break;
	case OCI_OP_SIGNAL:
		snprintf(text, n, "%s %s", name, step_text(step, sizeof(step), op));
		break;
	case OCI_OP_WAIT_POST:
	case OCI_OP_WAIT_ACK:
		snprintf(text, n, "%s v%u+%u %s%s", name, op->peer, op->peers,
			 step_text(step, sizeof(step), op), when_text(op->when));
		break;
	case OCI_OP_OFFER:
		snprintf(text, n, "%s %s%s to v%u+%u", name, range_text(a, &op->local),
			 op->address ? " addresses" : "", op->peer, op->peers);
		break;
	case OCI_OP_TAKE:
	case OCI_OP_GIVE:
		snprintf(text, n, "%s %s %s v%u cell %u%s", name, range_text(a, &op->local),
			 op->code == OCI_OP_GIVE ? "->" : "<-", op->peer, op->offer.cell,
			 when_text(op->when));
		break;
	case OCI_OP_TRADE:
		if (op->offered)
			snprintf(text, n, "%s %s <-> v%u cell %u%s", name,
				 range_text(a, &op->local), op->peer, op->offer.cell,
				 when_text(op->when));
		else
			snprintf(text, n, "%s %s <-> v%u %s", name, range_text(a, &op->local),
				 op->peer, range_text(b, &op->remote));
		break;
	case OCI_OP_PULL:
	case OCI_OP_PUSH:
	case OCI_OP_SHARE:
		snprintf(text, n, "%s %s %s v%u %s", name, range_text(a, &op->local),
			 op->code == OCI_OP_PUSH || op->push ? "->" : "<-", op->peer,
			 range_text(b, &op->remote));
		break;
	case OCI_OP_HELP:
		snprintf(text, n, "%s %s%s %s v%u+%u %s", name, range_text(a, &op->local),
			 op->by_peer ? " by peer" : "", op->push ? "<-" : "->", op->peer, op->peers,
			 range_text(b, &op->remote));
		break;
	case OCI_OP_COPY:
	case OCI_OP_REDUCE:
		snprintf(text, n, "%s %s -> %s", name, range_text(a, &op->local),
			 range_text(b, &op->second));
		break;
	case OCI_OP_REDUCE_FROM:
		snprintf(text, n, "%s %s <- v%u %s", name, range_text(a, &op->local), op->peer,
			 range_text(b, &op->remote));
		break;
	case OCI_OP_LOOP:
		snprintf(text, n, "%s over %s", name, range_text(a, &op->local));
		break;
	default:
		snprintf(text, n, "%s", name);
		break;
	}
	return text;
}
