/* SPDX-License-Identifier: BSD-3-Clause */
/* The user executor's reductions. */
#include "copy/layout.h"
#include "copy/map.h"
#include "plan/exec.h"

static void apply(const struct oci_exec *x, const void *in, void *inout, size_t bytes)
{
	/* A shift where it can be one: this is a division for each 4 bytes else. */
	if (!(x->unit & (x->unit - 1)))
		x->op->apply(x->op->context, in, inout, bytes >> __builtin_ctzl(x->unit));
	else
		x->op->apply(x->op->context, in, inout, bytes / x->unit);
}

void oci_exec_reduce(struct oci_exec *x, const struct oci_op *op)
{
	size_t bytes, other;
	const uint8_t *in;
	uint8_t *inout;

	if (op->code == OCI_OP_REDUCE) {
		in = oci_exec_local(x, &op->local, &bytes);
		inout = oci_exec_local(x, &op->second, &other);
	} else {
		in = oci_exec_shared(x, oci_exec_peer(x, op, 0), &op->remote, &other);
		inout = oci_exec_local(x, &op->local, &bytes);
		x->moved |= op->remote.buf == OCI_BUF_SLOT ? OCI_MOVED_SLOT : OCI_MOVED_INLINE;
	}
	if (bytes)
		apply(x, in, inout, bytes);
}

int oci_exec_reduce_mapped(struct oci_exec *x, const struct oci_op *op, uint32_t peer,
			   uint64_t remote, size_t bytes)
{
	const struct oci_op *next = op + 1;
	const uint8_t *in;
	uint8_t *inout;
	size_t room;

	if (op->code != OCI_OP_PULL || op->local.buf != OCI_BUF_TEMP ||
	    next->code != OCI_OP_REDUCE || next->local.buf != OCI_BUF_TEMP || x->in_transfer ||
	    oci_is_laid_out(remote))
		return 0;
	in = oci_map_reach(x->team, peer, remote, bytes);
	if (!in)
		return 0;
	inout = oci_exec_local(x, &next->second, &room);
	apply(x, in, inout, bytes);
	oci_map_count(bytes);
	x->moved |= OCI_MOVED_MAP;
	return oci_read_holds(x->team, peer) ? 1 : oci_exec_gave_up(x, peer);
}
