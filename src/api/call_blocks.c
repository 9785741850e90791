/* SPDX-License-Identifier: BSD-3-Clause */
/* The buffers of the v-variants: tables of blocks, each with its own size and place. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/engine.h"
#include "copy/layout.h"

bool oci_call_has_blocks(const struct oc_team *team, const struct oc_call *call)
{
	bool root = call->root == team->team.rank;

	/* Beside a table a buffer may be NULL: offsets may be addresses. */
	switch (call->collective) {
	case OC_SCATTERV:
		return root ? call->send_blocks && call->send != OC_IN_PLACE &&
				       (call->recv || !call->bytes) :
			      (call->recv && call->recv != OC_IN_PLACE) || !call->bytes;
	case OC_GATHERV:
		return root ? call->recv_blocks && call->recv != OC_IN_PLACE &&
				       (call->send || !call->bytes) :
			      (call->send && call->send != OC_IN_PLACE) || !call->bytes;
	case OC_ALLGATHERV:
		return call->recv_blocks && call->recv != OC_IN_PLACE &&
		       (call->send || !call->bytes);
	case OC_ALLTOALLV:
		return call->recv_blocks && call->recv != OC_IN_PLACE &&
		       (call->send_blocks || call->send == OC_IN_PLACE);
	default:
		return false;
	}
}

/* The address of a block: numbers, whose sum may wrap. */
static uint8_t *address_of(const void *buffer, const struct oc_block *block)
{
	return (uint8_t *)((uintptr_t)buffer + block->offset);
}

static void copy_out(uint8_t *to, const struct oc_layout *layout, uintptr_t place, size_t bytes)
{
	struct iovec piece;

	while (layout && bytes) {
		if (!oci_layout_cut(layout, place & OCI_LAID_OUT_OFFSET, bytes, &piece, 1))
			return;
		memcpy(to, piece.iov_base, piece.iov_len);
		to += piece.iov_len;
		place += piece.iov_len;
		bytes -= piece.iov_len;
	}
	if (bytes)
		memcpy(to, (const void *)place, bytes);
}

/*
 * An Alltoallv in place sends what it receives into, and peers read what we would overwrite: it
 * sends a copy. A local matter, the plan is the same.
 */
static int copy_in_place(struct oc_team *team, const struct oc_call *call, struct oci_operation *o)
{
	const struct oc_block *recv = call->recv_blocks;
	size_t tables = team->team.size * sizeof(*recv), bytes = 0;
	struct oc_block *blocks;

	for (uint32_t r = 0; r < team->team.size; r++)
		bytes += recv[r].bytes;
	o->temporary = malloc(tables + bytes);
	if (!o->temporary)
		return -ENOMEM;
	blocks = o->temporary;
	o->x.send = (uint8_t *)o->temporary;
	bytes = tables; /* the copies begin after the table */
	for (uint32_t r = 0; r < team->team.size; r++) {
		blocks[r] = (struct oc_block){ .offset = bytes, .bytes = recv[r].bytes };
		copy_out(address_of(o->x.send, &blocks[r]), call->recv_layout,
			 (uintptr_t)address_of(call->recv, &recv[r]), recv[r].bytes);
		bytes += recv[r].bytes;
	}
	o->x.params.send_blocks = blocks;
	return 0;
}

int oci_call_blocks(struct oc_team *team, const struct oc_call *call, struct oci_operation *o)
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
		if (in_place)
			return copy_in_place(team, call, o);
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
	return 0;
}
