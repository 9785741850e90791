/* SPDX-License-Identifier: BSD-3-Clause */
/* Sizes of a call cut into parts and segments. */
#include "plan/plan.h"

/* Parts of at least a cache line are made of whole lines, where the unit allows. */
#define LINE_BYTES 64

/* Saturates: a size that does not fit is no buffer's, and eval clips parts to the block. */
static size_t round_up(size_t value, size_t multiple)
{
	size_t rest = value % multiple;

	if (!rest)
		return value;
	if (value > SIZE_MAX - (multiple - rest))
		return SIZE_MAX - SIZE_MAX % multiple;
	return value + (multiple - rest);
}

void oci_params_derive(struct oci_params *params, const struct oci_plan *plan, size_t unit)
{
	size_t part = 0, segment = params->bytes;

	/* The whole function is divisions: none for the plans of small messages. */
	if (!plan->nparts && !plan->segment_bytes) {
		params->part_bytes = 0;
		params->segment_bytes = segment < unit ? unit : segment;
		return;
	}
	if (!unit)
		unit = 1;
	if (plan->nparts && params->bytes) {
		part = params->bytes / plan->nparts + (params->bytes % plan->nparts != 0);
		part = round_up(part, unit);
		if (part >= LINE_BYTES && unit < LINE_BYTES)
			part = round_up(part, round_up(LINE_BYTES, unit));
	}
	if (plan->segment_bytes)
		segment = unit == 1 ? plan->segment_bytes :
				      plan->segment_bytes - plan->segment_bytes % (uint32_t)unit;
	params->part_bytes = part;
	params->segment_bytes = segment < unit ? unit : segment;
	/* A range of a loop is not longer than a block. */
	if (plan->most_segments && params->bytes / params->segment_bytes >= plan->most_segments)
		params->segment_bytes = round_up(params->bytes / plan->most_segments + 1, unit);
}

uint64_t oci_range_segments(const struct oci_range *range, const struct oci_params *params)
{
	struct oci_range whole = *range;
	size_t offset, length;

	whole.segmented = 0;
	oci_range_eval(&whole, params, 0, &offset, &length);
	return length / params->segment_bytes + (length % params->segment_bytes != 0);
}
