/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two blocks that change places: what lies in one goes where the other lies.
 *
 * Each end moves its part of both, a segment at a time: the peer's is pulled into TEMP, mine is
 * pushed over it, and TEMP, which is in the cache still, is copied over mine. So no end waits for
 * the other in between, and neither needs more memory than a segment, however long the blocks are.
 */

#include "copy/layout.h"
#include "plan/exec.h"

enum { BEGIN, PULLING, PUSHING };

/* 1, 0: nothing is to be traded, or -errno. */
static int begin(struct oci_exec *x, const struct oci_op *op, uint32_t peer, size_t bytes)
{
	int result;

	/* Without it, the peer's POST was not awaited. */
	if (!bytes || !oci_when_holds(op->when, bytes, op->limit))
		return 0;
	result = op->offered ? oci_exec_offered_at(x, op, peer, bytes, &x->trade.remote) :
			       oci_exec_remote(x, peer, &op->remote, bytes, &x->trade.remote);
	oci_trade_part(bytes, x->team->rank < peer, &x->trade.at, &x->trade.end);
	return result < 0 ? result : 1;
}

/* One segment; 1, 0 or -errno. */
static int segment(struct oci_exec *x, uint32_t peer, uint8_t *local, size_t whole)
{
	size_t bytes = x->trade.end - x->trade.at;
	uint64_t remote = x->trade.remote + x->trade.at;
	int result;

	if (bytes > x->params.segment_bytes)
		bytes = x->params.segment_bytes;
	local = (uint8_t *)((uintptr_t)local + x->trade.at);
	if (x->at == PULLING) {
		result = oci_exec_transfer(x, peer, OCI_PULL, x->temp, remote, bytes, whole);
		if (result != 1)
			return result;
		x->at = PUSHING;
	}
	result = oci_exec_transfer(x, peer, OCI_PUSH, local, remote, bytes, whole);
	if (result != 1)
		return result;
	oci_place_copy(x->team, x->seq, (uintptr_t)local, (uintptr_t)x->temp, bytes);
	x->at = PULLING;
	x->trade.at += bytes;
	return 1;
}

int oci_exec_trade(struct oci_exec *x, const struct oci_op *op)
{
	uint32_t peer = oci_exec_peer(x, op, 0);
	size_t bytes;
	uint8_t *local = oci_exec_local(x, &op->local, &bytes);
	int result = 1;

	if (x->at == BEGIN) {
		result = begin(x, op, peer, bytes);
		if (result != 1)
			return result ? result : 1;
		x->at = PULLING;
	}
	while (x->trade.at < x->trade.end) {
		result = segment(x, peer, local, bytes);
		if (result != 1)
			return result;
		/* Others that are polled move too. */
		if (x->polled && x->trade.at < x->trade.end) {
			oci_exec_await_nobody(x);
			return 0;
		}
	}
	x->at = BEGIN;
	return 1;
}
