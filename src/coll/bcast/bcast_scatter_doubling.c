/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The message in p parts: each rank reads its part from the root, then in step i ranks that are 2^i
 * apart read from each other all that the other has (paper 002, V-B3, with recursive-doubling as
 * the Allgather). Where p is no power of two: pattern/doubling.h.
 *
 * Wins for medium messages and many ranks, a power of two best: lg p start-ups. The last step moves
 * half of the message between the two halves of the ranks, most likely across sockets.
 * Cost: T_bcast(address) + alpha + n/p beta + l gamma(p - 1) ceil(n / (p s)) + lg p alpha
 *       + (p - 1) (n/p beta + l ceil(n / (p s))) + T_gather(ack); for a p that is no power of two,
 * up to another lg p steps, the longest of half the message.
 */
#include "coll/bcast/bcast.h"
#include "coll/build.h"
#include "coll/cost.h"
#include "pattern/doubling.h"

/* Level i is posted as step i + 2, my own part as step 1. The root has all from the start. */
static void build_level(struct oci_builder *b, unsigned int level)
{
	const struct oci_plan_key *key = oci_builder_key(b);
	uint16_t before = (uint16_t)(level + 1);
	struct oci_doubling s;

	if (!oci_doubling_step(key->v, key->size, level, &s))
		return;
	oci_build_wait_post(b, s.from, 1, s.relayed ? before + 1 : before, 0);
	if (s.after != s.from)
		oci_build_wait_post(b, s.after, 1, before + 1, 0);
	oci_build_pull(b, oci_part(OCI_BUF_RECV, s.first, s.count), s.from,
		       oci_part(OCI_BUF_SEND, s.first, s.count));
}

static bool reads_from(uint32_t v, uint32_t source, uint32_t p)
{
	struct oci_doubling s;

	for (unsigned int level = 0; oci_doubling_level(p, level); level++)
		if (oci_doubling_step(v, p, level, &s) && s.from == source)
			return true;
	return false;
}

static void build(struct oci_builder *b)
{
	const struct oci_plan_key *key = oci_builder_key(b);

	oci_build_parts(b, key->size);
	if (key->v == 0) {
		oci_build_post(b, OCI_POST_ADDRESS, OCI_BCAST_ALL, 0);
		oci_build_wait_others_ack(b, 1);
		return;
	}
	oci_bcast_build_scatter(b);
	for (unsigned int level = 0; oci_doubling_level(key->size, level); level++) {
		build_level(b, level);
		oci_build_post(b, OCI_POST_FLAG, (uint16_t)(level + 2), 0);
	}
	oci_build_signal(b, 1, 0);
	for (uint32_t v = 1; v < key->size; v++)
		if (v != key->v && reads_from(v, key->v, key->size))
			oci_build_wait_ack(b, v, 1, 1, 0);
}

static void cost(struct oci_costing *c)
{
	size_t part = oci_cost_part(c->shape);
	uint32_t p = c->shape->size, rounds = oci_cost_rounds(p, 2);
	bool power_of_two = !(p & (p - 1));

	oci_cost_flags(c, 1);
	oci_cost_copies(c, 1, part, p - 1.0);
	for (uint64_t distance = 1; distance < p; distance *= 2) {
		oci_cost_flags(c, 1);
		oci_cost_copies_all(c, 1,
				    (distance < p - distance ? distance : p - distance) * part);
	}
	/* The last level's ranks without a counterpart come after one who has it. */
	if (!power_of_two) {
		oci_cost_flags(c, 1);
		oci_cost_copies_all(c, 1, (p - (1ull << (rounds - 1))) * part);
	}
	oci_cost_flag_row(c, p - 1.0);
	oci_cost_ops(c, 4 + 4.0 * rounds);
}

const struct oci_algorithm oci_bcast_scatter_doubling = {
	.name = "scatter-recursive-doubling",
	.idea = "p parts: read mine from the root, then in step i all that a rank 2^i apart has",
	.build = build,
	.cost = cost,
	.single_copy = true,
};
