/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * In step i ranks that are 2^i apart read from each other all that the other has (paper 002, V-A3).
 * Where p is no power of two, ranks without a counterpart read it from one of their own group that
 * has it by then: pattern/doubling.h.
 *
 * Wins for small blocks and many ranks, a power of two best: lg p start-ups. The last step moves
 * half of all bytes between the two halves of the ranks, most likely across sockets.
 * Cost: T_memcpy + T_allgather(address) + lg p alpha + (p - 1) (n beta + l ceil(n / s)) + T_ack;
 * for a p that is none, up to another lg p steps, the longest of half the bytes.
 */
#include "coll/allgather/allgather.h"
#include "coll/build.h"
#include "coll/cost.h"
#include "pattern/doubling.h"

/* Level i is posted as step i + 2, my own block as step 1. */
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
	if (level)
		oci_build_pull(b, oci_blocks(OCI_BUF_RECV, s.first, s.count), s.from,
			       oci_blocks(OCI_BUF_RECV, s.first, s.count));
	else /* A rank posts its block before it has copied it to its place. */
		oci_build_pull(b, oci_block(OCI_BUF_RECV, s.first), s.from,
			       oci_block(OCI_BUF_SEND, 0));
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

	oci_build_post(b, OCI_POST_ADDRESS, 1, 0);
	oci_build_copy(b, oci_block(OCI_BUF_SEND, 0), oci_block(OCI_BUF_RECV, key->v));
	for (unsigned int level = 0; oci_doubling_level(key->size, level); level++) {
		build_level(b, level);
		oci_build_post(b, OCI_POST_FLAG, (uint16_t)(level + 2), 0);
	}
	oci_build_signal(b, 1, 0);
	for (uint32_t i = 1; i < key->size; i++)
		if (reads_from(oci_next(key, i), key->v, key->size))
			oci_build_wait_ack(b, oci_next(key, i), 1, 1, 0);
}

static void cost(struct oci_costing *c)
{
	size_t n = c->shape->bytes;
	uint32_t p = c->shape->size, rounds = oci_cost_rounds(p, 2);
	bool power_of_two = !(p & (p - 1));

	oci_cost_memcpy(c, 1, n, n);
	for (uint64_t distance = 1; distance < p; distance *= 2) {
		oci_cost_flags(c, 1);
		oci_cost_copies_all(c, 1,
				    distance < p - distance || power_of_two ? distance * n :
									      (p - distance) * n);
	}
	/* The last level's ranks without a counterpart come after one who has it. */
	if (!power_of_two) {
		oci_cost_flags(c, 1);
		oci_cost_copies_all(c, 1, (p - (1ull << (rounds - 1))) * n);
	}
	oci_cost_flag_row(c, rounds);
	oci_cost_ops(c, 3 + 4.0 * rounds);
}

const struct oci_algorithm oci_allgather_recursive_doubling = {
	.name = "recursive-doubling",
	.idea = "in step i ranks 2^i apart read from each other all that they have",
	.build = build,
	.cost = cost,
	.single_copy = true,
};
