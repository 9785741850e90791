/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The message in p parts: each rank reads its part from the root, then the others' parts from the
 * ranks that have them (paper 002, V-B3, with ring-source-read as the Allgather).
 *
 * Wins for large messages and many ranks: after the first part nobody reads from the root alone.
 * Cost: T_allgather(address) + alpha + n/p beta + l gamma(p - 1) ceil(n / (p s))
 *       + (p - 1) (alpha + n/p beta + l ceil(n / (p s))) + T_barrier.
 */
#include "coll/bcast/bcast.h"
#include "coll/build.h"
#include "coll/cost.h"

void oci_bcast_build_scatter(struct oci_builder *b)
{
	const struct oci_plan_key *key = oci_builder_key(b);

	oci_build_wait_post(b, 0, 1, 1, 0);
	oci_build_pull(b, oci_part(OCI_BUF_RECV, key->v, 1), 0, oci_part(OCI_BUF_SEND, key->v, 1));
	oci_build_post(b, OCI_POST_ADDRESS, 1, 0);
}

static void build(struct oci_builder *b)
{
	const struct oci_plan_key *key = oci_builder_key(b);

	oci_build_parts(b, key->size);
	if (key->v)
		oci_bcast_build_scatter(b);
	else
		oci_build_post(b, OCI_POST_ADDRESS, 1, 0);
	for (uint32_t i = 1; key->v && i < key->size; i++) {
		uint32_t source = oci_previous(key, i);

		if (source)
			oci_build_wait_post(b, source, 1, 1, 0);
		oci_build_pull(b, oci_part(OCI_BUF_RECV, source, 1), source,
			       oci_part(OCI_BUF_SEND, source, 1));
	}
	oci_build_signal(b, 1, 0);
	oci_build_wait_others_ack(b, 1);
}

static void cost(struct oci_costing *c)
{
	size_t part = oci_cost_part(c->shape);
	double others = c->shape->size - 1.0;

	oci_cost_flags(c, 1);
	oci_cost_blocks(c, OCI_MODEL_PULL, 1, part, others);
	oci_cost_flags(c, others - 1);
	oci_cost_copies_all(c, others, part);
	oci_cost_flag_row(c, others);
	oci_cost_ops(c, 5 + 2 * others);
}

const struct oci_algorithm oci_bcast_scatter_allgather = {
	.name = "scatter-allgather",
	.idea = "p parts: read mine from the root, the others from those who have them",
	.build = build,
	.cost = cost,
	.single_copy = true,
};
