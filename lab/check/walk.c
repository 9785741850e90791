/* SPDX-License-Identifier: BSD-3-Clause */
#include "lab/check/walk.h"

#include <errno.h>
#include <stdlib.h>

void oci_walk_jump(const struct oci_plan *plan, const struct oci_params *params, uint32_t *pc,
		   uint64_t *segment)
{
	for (;;) {
		const struct oci_op *op = &plan->ops[*pc];
		const struct oci_op *loop = op->code == OCI_OP_NEXT ? &plan->ops[op->jump] : op;
		uint64_t turns;

		if (loop->code != OCI_OP_LOOP)
			return;
		turns = oci_range_segments(&loop->local, params);
		if (op->code == OCI_OP_LOOP) {
			*segment = 0;
			*pc = turns ? *pc + 1 : op->jump + 1u;
		} else if (++*segment < turns) {
			*pc = op->jump + 1u;
		} else {
			*segment = 0;
			++*pc;
		}
	}
}

int oci_events_add(struct oci_events *events, const struct oci_event *event)
{
	if (events->count == events->room) {
		uint32_t room = events->room ? events->room * 2 : 8;
		struct oci_event *list = reallocarray(events->list, room, sizeof(*list));

		if (!list)
			return -ENOMEM;
		events->list = list;
		events->room = room;
	}
	events->list[events->count++] = *event;
	return 0;
}

const struct oci_event *oci_events_reached(const struct oci_events *events, uint64_t value)
{
	uint32_t low = 0, high = events->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (events->list[middle].value < value)
			low = middle + 1;
		else
			high = middle;
	}
	return low < events->count ? &events->list[low] : NULL;
}
