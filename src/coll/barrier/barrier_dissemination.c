/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * In round i rank v tells v + 2^i and waits for v - 2^i: after ceil(log2 p) rounds it has heard,
 * directly or not, from all (Hensgen, Finkel, Manber 1988).
 *
 * Wins with many ranks. Cost: ceil(log2 p) flag transfers a rank, one after the other.
 */
#include "coll/build.h"

static void build(struct oci_builder *b)
{
	const struct oci_plan_key *key = oci_builder_key(b);
	uint16_t step = 1;

	for (uint64_t distance = 1; distance < key->size; distance *= 2, step++) {
		oci_build_signal(b, step, 0);
		oci_build_wait_ack(b, oci_previous(key, (uint32_t)distance), 1, step, 0);
	}
}

static void cost(struct oci_costing *c)
{
	uint32_t rounds = oci_cost_rounds(c->shape->size, 2);

	oci_cost_flags(c, rounds);
	oci_cost_ops(c, 2 * rounds);
}

const struct oci_algorithm oci_barrier_dissemination = {
	.name = "dissemination",
	.idea = "ceil(log2 p) rounds, one flag each",
	.build = build,
	.cost = cost,
};
