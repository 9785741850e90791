/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The message in p parts: each rank reads its part from the root, then writes it to one rank after
 * the other (paper 002, V-B3, with ring-source-write as the Allgather).
 *
 * Wins for large messages where writes into a process are faster than reads from it. As in the ring
 * of reads each rank has one copier at a time, as long as they keep step.
 * Cost: T_allgather(address) + alpha + n/p beta + l gamma(p - 1) ceil(n / (p s))
 *       + (p - 2) (alpha + n/p beta + l ceil(n / (p s))) + T_barrier.
 */
#include "coll/bcast/bcast.h"
#include "coll/build.h"
#include "coll/cost.h"

static void build(struct oci_builder *b)
{
	const struct oci_plan_key *key = oci_builder_key(b);
	struct oci_range from = oci_part(OCI_BUF_SEND, key->v, 1);
	struct oci_range to = oci_part(OCI_BUF_RECV, key->v, 1);

	oci_build_parts(b, key->size);
	/* Peers write from now on, into other parts than mine. */
	oci_build_post(b, OCI_POST_ADDRESS, 1, 0);
	if (key->v) {
		oci_build_wait_post(b, 0, 1, 1, 0);
		oci_build_pull(b, to, 0, from);
	}
	for (uint32_t i = 1; i < key->size; i++) {
		uint32_t target = oci_next(key, i);

		if (!target) /* the root has it all */
			continue;
		oci_build_wait_post(b, target, 1, 1, 0);
		oci_build_push(b, from, target, to);
	}
	oci_build_signal(b, 1, 0);
	oci_build_wait_others_ack(b, 1);
}

static void cost(struct oci_costing *c)
{
	size_t part = oci_cost_part(c->shape);
	double others = c->shape->size - 1.0;

	/* The root, which reads nothing, writes one part more than the others. */
	oci_cost_flags(c, 1);
	oci_cost_copies(c, 1, part, others);
	oci_cost_flags(c, others - 1);
	oci_cost_pushes_all(c, others - 1, part);
	oci_cost_flag_row(c, others);
	oci_cost_ops(c, 5 + 2 * others);
}

const struct oci_algorithm oci_bcast_scatter_ring_write = {
	.name = "scatter-ring-source-write",
	.idea = "p parts: read mine from the root, then write it to all others in turn",
	.build = build,
	.cost = cost,
	.single_copy = true,
};
