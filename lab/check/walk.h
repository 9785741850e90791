/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank's way through its plan, and what a flag has been: this the executors of the laboratory
 * share. One proves (check), one predicts (virtual); what a step does is each one's own.
 */
#ifndef OC_LAB_WALK_H
#define OC_LAB_WALK_H

#include "plan/plan.h"

enum oci_flag { OCI_FLAG_POST, OCI_FLAG_ACK, OCI_FLAGS };

/* The flag that an operation raises or awaits, and the value, without the call's part of it. */
static inline enum oci_flag oci_walk_flag(const struct oci_op *op)
{
	return op->code == OCI_OP_POST || op->code == OCI_OP_WAIT_POST ? OCI_FLAG_POST :
									 OCI_FLAG_ACK;
}
static inline uint64_t oci_walk_step(const struct oci_op *op, uint64_t segment)
{
	return op->step + op->step_loop * segment;
}

/* A range of an operation that has one for each peer: that for rank `rank`. */
static inline struct oci_range oci_walk_range(const struct oci_op *op, uint32_t rank)
{
	struct oci_range range = op->local;

	if (op->by_peer) {
		range.relative = 0;
		range.block = rank;
	}
	return range;
}
static inline size_t oci_walk_bytes(const struct oci_range *range, const struct oci_params *params,
				    uint64_t segment)
{
	size_t offset, bytes;

	oci_range_eval(range, params, segment, &offset, &bytes);
	return bytes;
}

/* Goes on over LOOP and NEXT, which touch nothing that others see. */
void oci_walk_jump(const struct oci_plan *plan, const struct oci_params *params, uint32_t *pc,
		   uint64_t *segment);

/* A value that a flag had. */
struct oci_event {
	uint64_t value;
	union {
		double at_s;		/* virtual: when it was raised */
		struct {		/* check */
			uint32_t clock; /* index of the writer's clock then */
			uint32_t seen;	/* enum oci_seen: published in this call up to here */
		};
	};
};

/* All that it had, rising. */
struct oci_events {
	struct oci_event *list;
	uint32_t count, room;
};

int oci_events_add(struct oci_events *events, const struct oci_event *event); /* -ENOMEM */
/* The first with at least this value; NULL while there is none. */
const struct oci_event *oci_events_reached(const struct oci_events *events, uint64_t value);

#endif
