/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * In step i each rank reads from rank + 2^i all the blocks that this one has, twice as many each
 * time, in the last step those that it lacks (paper 002, V-A4).
 *
 * Bruck's algorithm gathers in the order of the rank's distance and shifts the result by `rank`
 * blocks at the end, as a message has one place. A reader of another process's memory takes each
 * block from its place to its place, so here nothing is shifted; a range that goes beyond the last
 * block is read in two pieces.
 *
 * Wins for small blocks, whatever p is: ceil(lg p) steps, each from another rank.
 * Cost: T_memcpy + T_allgather(address) + [ceil(lg p), 2 ceil(lg p)] alpha
 *       + (p - 1) (n beta + l ceil(n / s)) + T_ack of ceil(lg p) readers: what the paper has but
 * for the (p - 1) n beta of the shift, and with a start-up more where a range is cut in two.
 */
#include "coll/allgather/allgather.h"
#include "coll/build.h"
#include "coll/cost.h"

static void build_step(struct oci_builder *b, uint32_t distance, uint16_t step)
{
	const struct oci_plan_key *key = oci_builder_key(b);
	uint32_t p = key->size, source = oci_next(key, distance);
	uint32_t blocks = distance < p - distance ? distance : p - distance;
	uint32_t front = source + blocks > p ? p - source : blocks;

	oci_build_wait_post(b, source, 1, step, 0);
	if (distance == 1) { /* A rank posts its block before it has copied it to its place. */
		oci_build_pull(b, oci_block(OCI_BUF_RECV, source), source,
			       oci_block(OCI_BUF_SEND, 0));
		return;
	}
	oci_build_pull(b, oci_blocks(OCI_BUF_RECV, source, front), source,
		       oci_blocks(OCI_BUF_RECV, source, front));
	if (front < blocks)
		oci_build_pull(b, oci_blocks(OCI_BUF_RECV, 0, blocks - front), source,
			       oci_blocks(OCI_BUF_RECV, 0, blocks - front));
}

static void build(struct oci_builder *b)
{
	const struct oci_plan_key *key = oci_builder_key(b);
	uint16_t step = 1;

	oci_build_post(b, OCI_POST_ADDRESS, step, 0);
	oci_build_copy(b, oci_block(OCI_BUF_SEND, 0), oci_block(OCI_BUF_RECV, key->v));
	for (uint32_t distance = 1; distance < key->size; distance *= 2, step++) {
		build_step(b, distance, step);
		if (2 * distance < key->size)
			oci_build_post(b, OCI_POST_FLAG, step + 1, 0);
	}
	oci_build_signal(b, 1, 0);
	for (uint32_t distance = 1; distance < key->size; distance *= 2)
		oci_build_wait_ack(b, oci_previous(key, distance), 1, 1, 0);
}

static void cost(struct oci_costing *c)
{
	size_t n = c->shape->bytes;
	uint32_t p = c->shape->size, rounds = oci_cost_rounds(p, 2);

	oci_cost_memcpy(c, 1, n, n);
	oci_cost_flags(c, rounds);
	for (uint64_t distance = 1; distance < p; distance *= 2) {
		uint64_t blocks = distance < p - distance ? distance : p - distance;

		oci_cost_copies_all(c, 1, blocks * n);
		/* Some rank reads beyond the last block: a second copy, of other bytes. */
		if (blocks > 1)
			oci_cost_copies_all(c, 1, 1);
	}
	oci_cost_flag_row(c, rounds);
	oci_cost_ops(c, 3 + 5.0 * rounds);
}

const struct oci_algorithm oci_allgather_bruck = {
	.name = "bruck",
	.idea = "in step i each rank reads all that rank + 2^i has",
	.build = build,
	.cost = cost,
	.single_copy = true,
};
