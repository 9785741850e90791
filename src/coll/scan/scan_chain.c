/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rank v pulls the result of rank v - 1 piece by piece as it is made, and combines its own operand
 * with it.
 *
 * Wins for large messages: every rank reduces n bytes once, and all work at the same time, each on
 * another piece.
 * Cost: (p - 2 + n / S) (alpha + S beta + l S / s + S reduced), S = bytes of a piece.
 *
 * The result of rank 0 is its operand, so rank 1 reads that at once.
 */
#include "coll/build.h"
#include "coll/cost.h"
#include "coll/scan/scan.h"

static void build_piece(struct oci_builder *b, uint32_t v, bool commutative)
{
	struct oci_range mine = oci_segmented(oci_block(OCI_BUF_SEND, 0));
	struct oci_range acc = oci_segmented(oci_block(OCI_BUF_ACC, 0));
	struct oci_range temp = oci_segmented(oci_block(OCI_BUF_TEMP, 0));
	struct oci_range prefix = oci_segmented(oci_block(v == 1 ? OCI_BUF_SEND : OCI_BUF_RECV, 0));

	/* The left operand is the prefix; one that commutes saves the copy of the right one. */
	if (!commutative)
		oci_build_copy(b, mine, acc);
	if (v > 1)
		oci_build_wait_post(b, v - 1, 1, 2, 1);
	oci_build_pull(b, commutative ? acc : temp, v - 1, prefix);
	oci_build_reduce(b, commutative ? mine : temp, acc);
	oci_build_copy(b, acc, oci_segmented(oci_block(OCI_BUF_RECV, 0)));
}

static void build(struct oci_builder *b)
{
	const struct oci_plan_key *key = oci_builder_key(b);
	bool last = key->v + 1 == key->size;

	oci_build_segment(b, OCI_CHAIN_BYTES);
	if (!last)
		oci_build_post(b, OCI_POST_ADDRESS, 1, 0);
	if (!key->v) {
		oci_build_copy(b, oci_block(OCI_BUF_SEND, 0), oci_block(OCI_BUF_RECV, 0));
	} else {
		oci_build_wait_post(b, key->v - 1, 1, 1, 0);
		oci_build_loop(b, oci_block(OCI_BUF_SEND, 0));
		build_piece(b, key->v, key->commutative);
		if (!last)
			oci_build_post(b, OCI_POST_FLAG, 2, 1);
		oci_build_next(b);
		oci_build_signal(b, 1, 0);
	}
	if (!last)
		oci_build_wait_ack(b, key->v + 1, 1, 1, 0);
}

static void cost(struct oci_costing *c)
{
	size_t n = c->shape->bytes, piece = n < OCI_CHAIN_BYTES ? n : OCI_CHAIN_BYTES;
	/* Steps until the last rank has the last piece. */
	double steps = oci_cost_pieces(n, OCI_CHAIN_BYTES) + c->shape->size - 2;

	oci_cost_flags(c, steps);
	c->whole = n;
	oci_cost_copies(c, steps, piece, 1);
	c->whole = 0;
	oci_cost_reduce(c, steps, piece, piece);
	oci_cost_flags(c, 1);
	oci_cost_ops(c, 5 * steps);
}

const struct oci_algorithm oci_scan_chain = {
	.name = "chain",
	.idea = "each rank pulls the result of the one before it, piece by piece",
	.build = build,
	.cost = cost,
	.single_copy = true,
};
