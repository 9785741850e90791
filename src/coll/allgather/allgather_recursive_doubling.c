/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * In step i ranks that are 2^i apart read from each other all that the other has. Allgather
 * recursive-doubling (paper 002, V-A3) and Bcast scatter-recursive-doubling (V-B3). Where p is no
 * power of two, ranks without a counterpart read it from one of their own group that has it by
 * then: pattern/doubling.h.
 *
 * Wins for small blocks, medium messages, and many ranks, a power of two best: lg p start-ups. The
 * last step moves half of all bytes between the two halves of the ranks, most likely across
 * sockets.
 * Cost: T_memcpy + T_allgather(address) + lg p alpha + (p - 1) (n beta + l ceil(n / s)) + T_ack;
 * for a p that is none, up to another lg p steps, the longest of half the bytes. Of a Bcast
 * T_bcast(address) + alpha + n/p beta + l gamma(p - 1) ceil(n / (p s)) instead of T_memcpy, n/p for
 * n, and T_gather(ack).
 */
#include "coll/allgather/spread.h"
#include "pattern/doubling.h"

/* Level i is posted as step i + 2, my own piece as step 1. The root of a Bcast has all from the
 * start. */
static void build_level(struct oci_builder *b, unsigned int level)
{
	const struct oci_plan_key *key = oci_builder_key(b);
	struct oci_doubling s;
	uint16_t before = (uint16_t)(level + 1);

	if (!oci_doubling_step(key->v, key->size, level, &s))
		return;
	oci_build_wait_post(b, s.from, 1, s.relayed ? before + 1 : before, 0);
	if (s.after != s.from)
		oci_build_wait_post(b, s.after, 1, before + 1, 0);
	oci_build_pull(b, oci_pieces(key, s.first, s.count), s.from,
		       level ? oci_pieces(key, s.first, s.count) : oci_own_piece(key, s.first));
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

	if (!oci_spread_begin(b))
		return;
	for (unsigned int level = 0; oci_doubling_level(key->size, level); level++) {
		build_level(b, level);
		oci_build_post(b, OCI_POST_FLAG, (uint16_t)(level + 2), 0);
	}
	oci_build_signal(b, 1, 0);
	for (uint32_t i = 1; i < key->size; i++) {
		uint32_t reader = oci_next(key, i);

		if (oci_is_reader(key, reader) && reads_from(reader, key->v, key->size))
			oci_build_wait_ack(b, reader, 1, 1, 0);
	}
}

static void cost(struct oci_costing *c)
{
	size_t n = oci_spread_cost(c);
	uint32_t p = c->shape->size, rounds = oci_cost_rounds(p, 2);
	bool power_of_two = !(p & (p - 1));

	for (uint64_t distance = 1; distance < p; distance *= 2) {
		oci_cost_flags(c, 1);
		oci_cost_copies_all(c, OCI_MODEL_PULL, 1,
				    (distance < p - distance ? distance : p - distance) * n);
	}
	/* The last level's ranks without a counterpart come after one who has it. */
	if (!power_of_two) {
		oci_cost_flags(c, 1);
		oci_cost_copies_all(c, OCI_MODEL_PULL, 1, (p - (1ull << (rounds - 1))) * n);
	}
	oci_spread_cost_end(c, rounds, 4.0 * rounds);
}

const struct oci_algorithm oci_allgather_recursive_doubling = {
	.name = "recursive-doubling",
	.idea = "in step i ranks 2^i apart read from each other all that they have",
	.build = build,
	.cost = cost,
	.single_copy = true,
};

const struct oci_algorithm oci_bcast_scatter_doubling = {
	.name = "scatter-recursive-doubling",
	.idea = "p parts: read mine from the root, then in step i all that a rank 2^i apart has",
	.build = build,
	.cost = cost,
	.single_copy = true,
};
