/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks copy their block from or to the root, at most k at a time: rank v starts when v - k is
 * through. Scatter throttled-read and Gather throttled-write (paper 002, IV-A3 and IV-B3).
 * parallel-read and parallel-write (IV-A1 and IV-B1) are all at once: k = p - 1, without a
 * parameter that depends on p.
 *
 * Throttled wins for large blocks where the lock of the root's page tables is contended, parallel
 * for small ones, where waiting for another rank costs more than its contention.
 * Cost: T_bcast(address) + ceil(p / k) (alpha + n beta + l gamma(k) ceil(n / s)); the last k ranks
 * acknowledge to the root, whose own copy happens meanwhile.
 */
#include "coll/rooted/rooted.h"

static void build(struct oci_builder *b)
{
	const struct oci_plan_key *key = oci_builder_key(b);
	uint32_t k = oci_rooted_at_once(b);
	struct oci_range mine = oci_rooted_mine(key);

	if (key->v == 0) {
		oci_build_post(b, OCI_POST_ADDRESS, 1, 0);
		oci_rooted_copy(b);
		/* The chain brings the acknowledgements of all others into those of the last k. */
		oci_build_wait_ack(b, key->size - k, k, 1, 0);
		return;
	}
	oci_build_wait_post(b, 0, 1, 1, 0);
	if (key->v > k)
		oci_build_wait_ack(b, key->v - k, 1, 1, 0);
	if (oci_is_scatter(key->collective))
		oci_build_pull(b, mine, 0, oci_rooted_there(key, key->v));
	else
		oci_build_push(b, mine, 0, oci_rooted_there(key, key->v));
	oci_build_signal(b, 1, 0);
}

static void cost_throttled(struct oci_costing *c)
{
	uint32_t others = c->shape->size > 1 ? c->shape->size - 1 : 1;
	uint32_t k = c->parameter < others ? c->parameter : others;
	uint32_t turns = others / k, rest = others % k;

	oci_cost_flags(c, turns + (rest > 0));
	oci_cost_blocks(c, oci_rooted_direction(c), turns, c->shape->bytes, k);
	oci_cost_blocks(c, oci_rooted_direction(c), rest > 0, c->shape->bytes, rest);
	oci_cost_flag_row(c, k);
	oci_cost_ops(c, 3 + 3.0 * (turns + (rest > 0)));
}

static void cost_parallel(struct oci_costing *c)
{
	double others = c->shape->size - 1.0;

	oci_cost_flags(c, 1);
	oci_cost_blocks(c, oci_rooted_direction(c), 1, c->shape->bytes, others);
	oci_cost_flag_row(c, others);
	oci_cost_ops(c, 6);
}

const struct oci_algorithm oci_scatter_throttled_read = {
	.name = "throttled-read",
	.idea = "ranks read from the root, at most k at a time",
	.build = build,
	.cost = cost_throttled,
	.tries = oci_tries_fanout,
	.parameter_default = 4,
	.parameter_min = 1,
	.single_copy = true,
};

const struct oci_algorithm oci_gather_throttled_write = {
	.name = "throttled-write",
	.idea = "ranks write to the root, at most k at a time",
	.build = build,
	.cost = cost_throttled,
	.tries = oci_tries_fanout,
	.parameter_default = 4,
	.parameter_min = 1,
	.single_copy = true,
};

const struct oci_algorithm oci_scatter_parallel_read = {
	.name = "parallel-read",
	.idea = "all ranks read from the root at once",
	.build = build,
	.cost = cost_parallel,
	.single_copy = true,
};

const struct oci_algorithm oci_gather_parallel_write = {
	.name = "parallel-write",
	.idea = "all ranks write to the root at once",
	.build = build,
	.cost = cost_parallel,
	.single_copy = true,
};
