/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Each rank pulls from the one before it, piece by piece as the result there is made. Wins for
 * large messages: every rank reduces n bytes once, and all work at the same time, each on another
 * piece.
 *
 * Scan: the result of rank v - 1, with which rank v combines its own operand. The result of rank 0
 * is its operand, so rank 1 reads that at once.
 * Cost: (p - 2 + n / S) (alpha + S beta + l S / s + S reduced), S = bytes of a piece.
 *
 * Exscan: result and operand of rank v - 1, the operand before the result is there; so nobody needs
 * memory for what it does not want to know, the prefix with its own operand. The result of rank 1
 * is the operand of rank 0. Rank 0 has no result: its RECV is not touched. Cost: (p - 3 + n / S) (2
 * alpha + 2 S beta + 2 l S / s + S reduced). Of two ranks both copy, as in a cooperative Bcast:
 * alpha + (n beta + l gamma(2) ceil(n / s)) / 2.
 */
#include "coll/build.h"

static void scan_piece(struct oci_builder *b, uint32_t v, bool commutative)
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

static void exscan_piece(struct oci_builder *b, uint32_t v)
{
	struct oci_range operand = oci_segmented(oci_block(OCI_BUF_SEND, 0));
	struct oci_range result = oci_segmented(oci_block(OCI_BUF_RECV, 0));
	struct oci_range temp = oci_segmented(oci_block(OCI_BUF_TEMP, 0));

	oci_build_pull(b, result, v - 1, operand);
	if (v == 1)
		return;
	oci_build_wait_post(b, v - 1, 1, 2, 1);
	oci_build_pull(b, temp, v - 1, result);
	oci_build_reduce(b, temp, result);
}

static void exscan_pair(struct oci_builder *b, uint32_t v)
{
	struct oci_range operand = oci_block(OCI_BUF_SEND, 0);
	struct oci_range result = oci_block(OCI_BUF_RECV, 0);

	oci_build_post(b, OCI_POST_ADDRESS, 1, 0);
	if (v == 0) {
		oci_build_help(b, OCI_SHARE_PULL, operand, false, 1, 1, result);
		oci_build_wait_ack(b, 1, 1, 1, 0);
		return;
	}
	oci_build_wait_post(b, 0, 1, 1, 0);
	oci_build_share(b, OCI_SHARE_PULL, result, 0, operand);
	oci_build_signal(b, 1, 0);
}

static void build(struct oci_builder *b)
{
	const struct oci_plan_key *key = oci_builder_key(b);
	bool last = key->v + 1 == key->size, scan = key->collective == OC_SCAN;

	if (key->size == 2 && !scan) {
		exscan_pair(b, key->v);
		return;
	}
	oci_build_segment(b, OCI_CHAIN_BYTES);
	if (!last)
		oci_build_post(b, OCI_POST_ADDRESS, 1, 0);
	if (!key->v && scan)
		oci_build_copy(b, oci_block(OCI_BUF_SEND, 0), oci_block(OCI_BUF_RECV, 0));
	if (key->v) {
		oci_build_wait_post(b, key->v - 1, 1, 1, 0);
		oci_build_loop(b, oci_block(OCI_BUF_SEND, 0));
		if (scan)
			scan_piece(b, key->v, key->commutative);
		else
			exscan_piece(b, key->v);
		if (!last)
			oci_build_post(b, OCI_POST_FLAG, 2, 1);
		oci_build_next(b);
		oci_build_signal(b, 1, 0);
	}
	if (!last)
		oci_build_wait_ack(b, key->v + 1, 1, 1, 0);
}

static void cost_scan(struct oci_costing *c)
{
	size_t n = c->shape->bytes, piece = n < OCI_CHAIN_BYTES ? n : OCI_CHAIN_BYTES;
	/* Steps until the last rank has the last piece. */
	double steps = oci_cost_pieces(n, OCI_CHAIN_BYTES) + c->shape->size - 2;

	oci_cost_flags(c, steps);
	oci_cost_piecewise(c, steps, piece, 1);
	oci_cost_reduce(c, OCI_TOUCH_OWN, steps, piece);
	oci_cost_flags(c, 1);
	oci_cost_ops(c, 5 * steps);
}

static void cost_exscan(struct oci_costing *c)
{
	size_t n = c->shape->bytes, piece = n < OCI_CHAIN_BYTES ? n : OCI_CHAIN_BYTES;
	uint32_t p = c->shape->size;
	double pieces = oci_cost_pieces(n, OCI_CHAIN_BYTES), fill = p > 3 ? p - 3 : 0;

	if (p == 2) {
		oci_cost_flags(c, 3);
		oci_cost_shared(c, OCI_MODEL_PULL, 1, n);
		oci_cost_ops(c, 6);
		return;
	}
	/* While the pipeline fills, the operand comes before the result is there; then both are
	 * copied one after the other. */
	oci_cost_flags(c, pieces + fill + 1);
	oci_cost_piecewise(c, fill + 2 * pieces, piece, 1);
	oci_cost_reduce(c, OCI_TOUCH_OWN, pieces + fill, piece);
	oci_cost_ops(c, 6 * (pieces + fill));
}

const struct oci_algorithm oci_scan_chain = {
	.name = "chain",
	.idea = "each rank pulls the result of the one before it, piece by piece",
	.build = build,
	.cost = cost_scan,
	.single_copy = true,
};

const struct oci_algorithm oci_exscan_chain = {
	.name = "chain",
	.idea = "each rank pulls result and operand of the one before it, piece by piece",
	.build = build,
	.cost = cost_exscan,
	.single_copy = true,
};
