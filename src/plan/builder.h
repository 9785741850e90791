/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside of a builder, for plan.c and finish.c. */
#ifndef OC_PLAN_BUILDER_H
#define OC_PLAN_BUILDER_H

#include "plan/plan.h"

struct oci_builder {
	struct oci_plan_key key;
	int error;
	uint32_t nparts;
	uint32_t segment_bytes;
	uint32_t work_blocks;
	uint32_t count;
	uint32_t capacity;
	bool in_loop;
	uint32_t loop; /* index of the open LOOP */
	struct oci_op *ops;
};

/* Keeps the first error. */
void oci_builder_reject(struct oci_builder *b, int error);
/* Nothing after an error. */
void oci_builder_append(struct oci_builder *b, const struct oci_op *op);

#endif
