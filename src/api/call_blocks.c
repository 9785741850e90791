/* SPDX-License-Identifier: BSD-3-Clause */
/* The buffers of the v-variants: tables of blocks, each with its own size and place. */
#include "api/engine.h"

/* The address of a block: numbers, whose sum may wrap. */
static uint8_t *address_of(const void *buffer, const struct oc_block *block)
{
	return (uint8_t *)((uintptr_t)buffer + block->offset);
}

void oci_call_blocks(struct oc_team *team, const struct oc_call *call, struct oci_operation *o)
{
	bool in_place = call->send == OC_IN_PLACE, root = call->root == team->team.rank;
	const struct oc_block *mine = NULL;
	struct oci_exec *x = &o->x;

	x->send = (uint8_t *)(uintptr_t)call->send;
	x->recv = call->recv;
	x->params.bytes = call->bytes;
	x->params.send_blocks = call->send_blocks;
	x->params.recv_blocks = call->recv_blocks;
	if (call->collective == OC_SCATTERV) {
		if (root && call->recv == OC_IN_PLACE) {
			mine = &call->send_blocks[team->team.rank];
			x->recv = address_of(call->send, mine);
		}
		if (!root)
			x->send = NULL;
	} else if (call->collective == OC_ALLTOALLV) {
		/* Only the statistics look at these. */
		x->params.bytes = 0;
		for (uint32_t r = 0; r < team->team.size; r++)
			x->params.bytes += call->recv_blocks[r].bytes;
		if (in_place) {
			x->send = x->recv;
			x->params.send_blocks = call->recv_blocks;
		}
	} else {
		if (in_place) {
			mine = &call->recv_blocks[team->team.rank];
			x->send = address_of(call->recv, mine);
		}
		if (call->collective == OC_GATHERV && !root)
			x->recv = NULL;
	}
	if (mine)
		x->params.bytes = mine->bytes;
}
