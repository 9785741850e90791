/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The message in p parts: each rank reads its part from the root, then in step i from one neighbour
 * alone, v - j, the part that this one got in step i - 1 (paper 002, V-B3, with ring-neighbor:j as
 * the Allgather).
 *
 * Wins for large messages where most copies are to stay in a socket: j = 1 with neighbours side by
 * side. Nobody but the root is ever read by two at once.
 * Cost: T_bcast(address) + alpha + n/p beta + l gamma(p - 1) ceil(n / (p s))
 *       + (p - 1) (alpha + n/p beta + l ceil(n / (p s)) + T_flag) + T_gather(ack).
 * Restriction: a ring of all ranks needs a j that has no divisor with p in common.
 */
#include "coll/bcast/bcast.h"
#include "coll/build.h"
#include "coll/cost.h"

static void build_reader(struct oci_builder *b)
{
	const struct oci_plan_key *key = oci_builder_key(b);
	uint32_t p = key->size, j = key->parameter % p, source = oci_previous(key, j);

	oci_bcast_build_scatter(b);
	for (uint32_t i = 1; i < p; i++) {
		uint32_t part = oci_previous(key, (uint32_t)((uint64_t)i * j % p));

		oci_build_wait_post(b, source, 1, (uint16_t)i, 0);
		oci_build_pull(b, oci_part(OCI_BUF_RECV, part, 1), source,
			       oci_part(OCI_BUF_SEND, part, 1));
		/* My reader takes it in its next step; the last one is for nobody. */
		if (i < p - 1)
			oci_build_post(b, OCI_POST_FLAG, (uint16_t)(i + 1), 0);
	}
	oci_build_signal(b, 1, 0);
	if (oci_next(key, j))
		oci_build_wait_ack(b, oci_next(key, j), 1, 1, 0);
}

static void build(struct oci_builder *b)
{
	const struct oci_plan_key *key = oci_builder_key(b);

	if (!oci_is_ring(key->size, key->parameter)) {
		oci_build_refuse(b);
		return;
	}
	oci_build_parts(b, key->size);
	if (key->v) {
		build_reader(b);
		return;
	}
	/* All parts are there: whatever step is waited for. */
	oci_build_post(b, OCI_POST_ADDRESS, (uint16_t)key->size, 0);
	oci_build_wait_others_ack(b, 1);
}

static void cost(struct oci_costing *c)
{
	size_t part = oci_cost_part(c->shape);
	double others = c->shape->size - 1.0;

	oci_cost_flags(c, 1);
	oci_cost_copies(c, 1, part, others);
	oci_cost_flags(c, others);
	oci_cost_copies_all(c, others, part);
	oci_cost_flag_row(c, others);
	oci_cost_ops(c, 4 + 3 * others);
}

static bool fits(const struct oci_shape *shape, uint32_t parameter)
{
	return shape->size < OCI_STEPS && oci_is_ring(shape->size, parameter);
}

const struct oci_algorithm oci_bcast_scatter_ring_neighbor = {
	.name = "scatter-ring-neighbor",
	.idea = "p parts: read mine from the root, the others from rank - j as they come round",
	.build = build,
	.cost = cost,
	.fits = fits,
	.needs = OCI_NEEDS_RING,
	.parameter_default = 1,
	.parameter_min = 1,
	.single_copy = true,
};
