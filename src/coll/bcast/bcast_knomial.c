/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A tree in which at most k ranks read from one process at a time (paper 002, V-B2).
 *
 * Wins for medium messages where the page tables' lock is contended. The children of a rank read in
 * groups of k, the next group when the previous one has acknowledged: pattern/knomial.h has the
 * tree of radix k + 1.
 * Cost: T_bcast(address) + ceil(log_(k+1) p) (alpha + n beta + l gamma(k) ceil(n / s)).
 */
#include "coll/build.h"
#include "pattern/knomial.h"

/* Place of v among the children of its parent. */
static uint32_t child_index(uint32_t parent, uint32_t v, uint32_t k, uint32_t p)
{
	uint32_t i = 0;

	while (oci_knomial_child(parent, k, p, i) != v)
		i++;
	return i;
}

static void build(struct oci_builder *b)
{
	const struct oci_plan_key *key = oci_builder_key(b);
	uint32_t k = key->parameter, child;
	bool leaf = oci_knomial_child(key->v, k, key->size, 0) == 0;

	if (key->v) {
		uint32_t parent = oci_knomial_parent(key->v, k);
		uint32_t i = child_index(parent, key->v, k, key->size);

		oci_build_wait_post(b, parent, 1, 1, 0);
		if (i >= k)
			oci_build_wait_ack(b, oci_knomial_child(parent, k, key->size, i - k), 1, 1,
					   0);
		oci_build_pull(b, oci_block(OCI_BUF_RECV, 0), parent, oci_block(OCI_BUF_SEND, 0));
	}
	/* The address is posted when the data is there: to a child that is one and the same. */
	if (!leaf)
		oci_build_post(b, OCI_POST_ADDRESS, 1, 0);
	if (key->v)
		oci_build_signal(b, 1, 0);
	for (uint32_t i = 0; (child = oci_knomial_child(key->v, k, key->size, i)) != 0; i++)
		oci_build_wait_ack(b, child, 1, 1, 0);
}

static void cost(struct oci_costing *c)
{
	uint32_t p = c->shape->size, k = c->parameter < p ? c->parameter : p - 1;
	uint32_t rounds = oci_cost_rounds(p, k + 1);

	/* In each round a flag says that the data is there, or that a sibling has it. */
	oci_cost_flags(c, rounds);
	oci_cost_copies_tree(c, k);
	oci_cost_flag_row(c, k);
	oci_cost_ops(c, 3.0 * rounds + k);
}

const struct oci_algorithm oci_bcast_knomial = {
	.name = "knomial",
	.idea = "a tree; at most k ranks read from one process at a time",
	.build = build,
	.cost = cost,
	.tries = oci_tries_fanout,
	.parameter_default = 4,
	.parameter_min = 1,
	.single_copy = true,
};
