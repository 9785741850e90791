/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of a Reduce_scatter: where each rank's part lies in the input of every rank. */
#include "api/engine.h"

const struct oc_call *oci_call_whole(const struct oc_team *team, const struct oc_call *call,
				     struct oc_call *whole)
{
	const struct oc_block *last;

	if (__builtin_expect(call->collective != OC_REDUCE_SCATTER, 1) || !call->recv_blocks)
		return call;
	last = &call->recv_blocks[team->team.size - 1];
	*whole = *call;
	whole->bytes = last->offset + last->bytes;
	return whole;
}

bool oci_call_has_parts(const struct oc_team *team, const struct oc_call *call)
{
	const struct oc_block *parts = call->recv_blocks;
	size_t end = 0;

	if (!parts || !call->op || !call->op->bytes)
		return false;
	for (uint32_t r = 0; r < team->team.size; r++) {
		if (parts[r].offset != end || parts[r].bytes % call->op->bytes ||
		    parts[r].bytes > SIZE_MAX / 2 - end)
			return false;
		end += parts[r].bytes;
	}
	if (!end)
		return true;
	if (call->recv == OC_IN_PLACE || !call->send)
		return false;
	/* A rank without a part needs no buffer for it. */
	return call->recv || (call->send != OC_IN_PLACE && !parts[team->team.rank].bytes);
}
