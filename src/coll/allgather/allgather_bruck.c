/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * In step i each rank reads from rank + 2^i all the pieces that this one has, twice as many each
 * time, in the last step those that it lacks. Allgather bruck (paper 002, V-A4) and Bcast
 * scatter-bruck (V-B3).
 *
 * Bruck's algorithm gathers in the order of the rank's distance and shifts the result by `rank`
 * blocks at the end, as a message has one place. A reader of another process's memory takes each
 * piece from its place to its place, so here nothing is shifted; a range that goes beyond the last
 * piece is read in two.
 *
 * Wins for small blocks and medium messages, whatever p is: ceil(lg p) steps, each from another
 * rank.
 * Cost: T_memcpy + T_allgather(address) + [ceil(lg p), 2 ceil(lg p)] alpha
 *       + (p - 1) (n beta + l ceil(n / s)) + T_ack of ceil(lg p) readers: what the paper has but
 * for the (p - 1) n beta of the shift, and with a start-up more where a range is cut in two. Of a
 * Bcast T_bcast(address) + alpha + n/p beta + l gamma(p - 1) ceil(n / (p s)) instead of T_memcpy,
 * n/p for n, and T_gather(ack).
 */
#include "coll/allgather/spread.h"

static void build_step(struct oci_builder *b, uint32_t distance, uint16_t step)
{
	const struct oci_plan_key *key = oci_builder_key(b);
	uint32_t p = key->size, source = oci_next(key, distance);
	uint32_t count = distance < p - distance ? distance : p - distance;
	uint32_t front = source + count > p ? p - source : count;

	oci_build_wait_post(b, source, 1, step, 0);
	oci_build_pull(b, oci_pieces(key, source, front), source,
		       distance == 1 ? oci_own_piece(key, source) : oci_pieces(key, source, front));
	if (front < count)
		oci_build_pull(b, oci_pieces(key, 0, count - front), source,
			       oci_pieces(key, 0, count - front));
}

static void build(struct oci_builder *b)
{
	const struct oci_plan_key *key = oci_builder_key(b);
	uint16_t step = 1;

	if (!oci_spread_begin(b))
		return;
	for (uint32_t distance = 1; distance < key->size; distance *= 2, step++) {
		build_step(b, distance, step);
		if (2 * distance < key->size)
			oci_build_post(b, OCI_POST_FLAG, step + 1, 0);
	}
	oci_build_signal(b, 1, 0);
	for (uint32_t distance = 1; distance < key->size; distance *= 2)
		if (oci_is_reader(key, oci_previous(key, distance)))
			oci_build_wait_ack(b, oci_previous(key, distance), 1, 1, 0);
}

static void cost(struct oci_costing *c)
{
	size_t n = oci_spread_cost(c);
	uint32_t p = c->shape->size, rounds = oci_cost_rounds(p, 2);

	oci_cost_flags(c, rounds);
	for (uint64_t distance = 1; distance < p; distance *= 2) {
		uint64_t count = distance < p - distance ? distance : p - distance;

		oci_cost_copies_all(c, OCI_MODEL_PULL, 1, count * n);
		/* Some rank reads beyond the last piece: a second copy, of other bytes. */
		if (count > 1)
			oci_cost_copies_all(c, OCI_MODEL_PULL, 1, 1);
	}
	oci_spread_cost_end(c, rounds, 5.0 * rounds);
}

const struct oci_algorithm oci_allgather_bruck = {
	.name = "bruck",
	.idea = "in step i each rank reads all that rank + 2^i has",
	.build = build,
	.cost = cost,
	.single_copy = true,
};

const struct oci_algorithm oci_bcast_scatter_bruck = {
	.name = "scatter-bruck",
	.idea = "p parts: read mine from the root, then in step i all that rank + 2^i has",
	.build = build,
	.cost = cost,
	.single_copy = true,
};
