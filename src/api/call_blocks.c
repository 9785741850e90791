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
	enum oc_collective c = call->collective;
	bool root = call->root == team->team.rank;
	const struct oc_block *mine = NULL;
	struct oci_exec *x = &o->x;

	x->send = oci_sends(c, root) ? (uint8_t *)(uintptr_t)call->send : NULL;
	x->recv = oci_receives(c, root) ? call->recv : NULL;
	x->params.bytes = call->bytes;
	x->params.send_blocks = call->send_blocks;
	x->params.recv_blocks = call->recv_blocks;
	if (oci_counts_sent(c) && oci_counts_received(c)) {
		/* Only the statistics look at these. */
		x->params.bytes = 0;
		for (uint32_t r = 0; r < team->team.size; r++)
			x->params.bytes += call->recv_blocks[r].bytes;
		if (call->send == OC_IN_PLACE) {
			x->send = x->recv;
			x->params.send_blocks = call->recv_blocks;
		}
	} else if (call->send == OC_IN_PLACE) {
		mine = &call->recv_blocks[team->team.rank];
		x->send = address_of(call->recv, mine);
	} else if (call->recv == OC_IN_PLACE) {
		mine = &call->send_blocks[team->team.rank];
		x->recv = address_of(call->send, mine);
	}
	if (mine)
		x->params.bytes = mine->bytes;
}
