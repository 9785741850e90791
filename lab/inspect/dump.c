/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Plans as a Graphviz graph: a box of operations per rank, solid arrows for the order within a
 * rank, dashed ones from the operation that raises a flag to the one that awaits it, dotted ones
 * between the two ends of a SHARE.
 */
#include "lab/inspect/dump.h"
#include "lab/check/op_text.h"

static void dump_rank(FILE *out, const struct oci_plan *plan)
{
	uint32_t v = plan->key.v;
	char text[OCI_OP_TEXT];

	fprintf(out, "\tsubgraph cluster_%u {\n\t\tlabel=\"v%u\";\n", v, v);
	for (uint32_t i = 0; i < plan->count; i++)
		fprintf(out, "\t\tn%u_%u [label=\"%u %s\"];\n", v, i, i,
			oci_op_text(text, sizeof(text), &plan->ops[i]));
	for (uint32_t i = 0; i + 1 < plan->count; i++)
		fprintf(out, "\t\tn%u_%u -> n%u_%u;\n", v, i, v, i + 1);
	fprintf(out, "\t}\n");
}

/* The first operation of `plan` that raises its flag far enough for `wait`; count when none. */
static uint32_t raiser(const struct oci_plan *plan, const struct oci_op *wait)
{
	uint8_t code = wait->code == OCI_OP_WAIT_ACK ? OCI_OP_SIGNAL : OCI_OP_POST;

	for (uint32_t i = 0; i < plan->count; i++) {
		const struct oci_op *op = &plan->ops[i];

		/* In a loop the flag grows with the segment: compare the first of each. */
		if (op->code == code && op->step >= wait->step &&
		    (op->step_loop || !wait->step_loop))
			return i;
	}
	return plan->count;
}

static uint32_t share_with(const struct oci_plan *plan, uint32_t v)
{
	for (uint32_t i = 0; i < plan->count; i++)
		if (plan->ops[i].code == OCI_OP_SHARE && plan->ops[i].peer == v)
			return i;
	return plan->count;
}

static void dump_edges(FILE *out, const struct oci_plan *const *plans, uint32_t count,
		       const struct oci_plan *plan, uint32_t index)
{
	const struct oci_op *op = &plan->ops[index];
	bool wait = op->code == OCI_OP_WAIT_POST || op->code == OCI_OP_WAIT_ACK;

	if (!wait && op->code != OCI_OP_HELP)
		return;
	for (uint32_t i = 0; i < op->peers; i++) {
		const struct oci_plan *peer = plans[(op->peer + i) % count];
		uint32_t from = wait ? raiser(peer, op) : share_with(peer, plan->key.v);

		if (from < peer->count)
			fprintf(out, "\tn%u_%u -> n%u_%u [%s];\n", peer->key.v, from, plan->key.v,
				index, wait ? "style=dashed" : "style=dotted,dir=both");
	}
}

void oci_plan_dump_dot(FILE *out, const char *algorithm, const struct oci_plan *const *plans,
		       uint32_t count)
{
	if (!count)
		return;
	fprintf(out, "digraph \"%s %s of %u\" {\n\tnode [shape=box,fontname=monospace];\n",
		oci_collective_name(plans[0]->key.collective), algorithm, count);
	for (uint32_t v = 0; v < count; v++)
		dump_rank(out, plans[v]);
	for (uint32_t v = 0; v < count; v++)
		for (uint32_t i = 0; i < plans[v]->count; i++)
			dump_edges(out, plans, count, plans[v], i);
	fprintf(out, "}\n");
}
