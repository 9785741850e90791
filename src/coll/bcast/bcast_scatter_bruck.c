/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The message in p parts: each rank reads its part from the root, then in step i all that rank
 * v + 2^i has got (paper 002, V-B3, with Bruck's as the Allgather). Parts are read to their own
 * places, so nothing is shifted in the end; those that go round the end are read in two pieces.
 *
 * Wins for medium messages and many ranks, a p that is no power of two best: ceil(lg p) start-ups.
 * Cost: T_bcast(address) + alpha + n/p beta + l gamma(p - 1) ceil(n / (p s)) + 2 ceil(lg p) alpha
 *       + (p - 1) (n/p beta + l ceil(n / (p s))) + T_gather(ack).
 */
#include "coll/bcast/bcast.h"
#include "coll/build.h"
#include "coll/cost.h"

static void read_parts(struct oci_builder *b, uint32_t source, uint32_t first, uint32_t count)
{
	oci_build_pull(b, oci_part(OCI_BUF_RECV, first, count), source,
		       oci_part(OCI_BUF_SEND, first, count));
}

static void build_reader(struct oci_builder *b)
{
	const struct oci_plan_key *key = oci_builder_key(b);
	uint32_t p = key->size;
	uint16_t step = 1;

	oci_bcast_build_scatter(b);
	for (uint64_t have = 1; have < p; have *= 2, step++) {
		uint32_t first = oci_next(key, (uint32_t)have);
		uint32_t count = (uint32_t)(have < p - have ? have : p - have);
		uint32_t here = count < p - first ? count : p - first;

		/* The source has done `step` - 1 of these; the root has all from the start. */
		oci_build_wait_post(b, first, 1, step, 0);
		read_parts(b, first, first, here);
		if (count > here)
			read_parts(b, first, 0, count - here);
		oci_build_post(b, OCI_POST_FLAG, (uint16_t)(step + 1), 0);
	}
	oci_build_signal(b, 1, 0);
	for (uint64_t apart = 1; apart < p; apart *= 2)
		if (oci_previous(key, (uint32_t)apart))
			oci_build_wait_ack(b, oci_previous(key, (uint32_t)apart), 1, 1, 0);
}

static void build(struct oci_builder *b)
{
	oci_build_parts(b, oci_builder_key(b)->size);
	if (oci_builder_key(b)->v) {
		build_reader(b);
		return;
	}
	oci_build_post(b, OCI_POST_ADDRESS, OCI_BCAST_ALL, 0);
	oci_build_wait_others_ack(b, 1);
}

static void cost(struct oci_costing *c)
{
	size_t part = oci_cost_part(c->shape);
	uint32_t p = c->shape->size, rounds = oci_cost_rounds(p, 2);

	oci_cost_flags(c, 1);
	oci_cost_copies(c, 1, part, p - 1.0);
	oci_cost_flags(c, rounds);
	for (uint64_t have = 1; have < p; have *= 2) {
		uint64_t parts = have < p - have ? have : p - have;

		oci_cost_copies_all(c, 1, parts * part);
		/* Some rank reads round the end: a second copy, of other bytes. */
		if (parts > 1)
			oci_cost_copies_all(c, 1, 1);
	}
	oci_cost_flag_row(c, p - 1.0);
	oci_cost_ops(c, 4 + 5.0 * rounds);
}

const struct oci_algorithm oci_bcast_scatter_bruck = {
	.name = "scatter-bruck",
	.idea = "p parts: read mine from the root, then in step i all that rank + 2^i has",
	.build = build,
	.cost = cost,
	.single_copy = true,
};
