/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * In step i each rank writes its block to rank + i (paper 002, V-A2).
 *
 * Wins where writing is the faster direction: the source stays in the writer's cache, while
 * ring-source-read finds each block where its owner left it. No two ranks write to one process in
 * the same step.
 * Cost: T_memcpy + T_allgather(address) + (p - 1) (alpha + n beta + l ceil(n / s)) + T_barrier.
 */
#include "coll/allgather/allgather.h"
#include "coll/build.h"
#include "coll/cost.h"

static void build(struct oci_builder *b)
{
	const struct oci_plan_key *key = oci_builder_key(b);

	oci_build_post(b, OCI_POST_ADDRESS, 1, 0);
	oci_build_copy(b, oci_block(OCI_BUF_SEND, 0), oci_block(OCI_BUF_RECV, key->v));
	for (uint32_t i = 1; i < key->size; i++) {
		uint32_t target = oci_next(key, i);

		oci_build_wait_post(b, target, 1, 1, 0);
		oci_build_push(b, oci_block(OCI_BUF_SEND, 0), target,
			       oci_block(OCI_BUF_RECV, key->v));
	}
	oci_build_signal(b, 1, 0);
	oci_build_wait_others_ack(b, 1);
}

static void cost(struct oci_costing *c)
{
	size_t n = c->shape->bytes;
	double others = c->shape->size - 1.0;

	oci_cost_memcpy(c, 1, n, n);
	oci_cost_flags(c, others);
	oci_cost_pushes_all(c, others, n);
	oci_cost_flag_row(c, others);
	oci_cost_ops(c, 4 + 2 * others);
}

const struct oci_algorithm oci_allgather_ring_source_write = {
	.name = "ring-source-write",
	.idea = "in step i each rank writes its block to rank + i",
	.build = build,
	.cost = cost,
	.single_copy = true,
};
