/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Each rank reads from one neighbour alone, rank - j: in step i the piece that this one has got in
 * step i - 1. The pieces go round the ring that steps of j make. Allgather ring-neighbor (paper
 * 002, V-A1) and Bcast scatter-ring-neighbor (V-B3).
 *
 * Wins where most copies are to stay in a socket: j = 1 with neighbours side by side. Each step
 * waits for the neighbour's previous one, which ring-source-read does not. Nobody but the root of a
 * Bcast is ever read by two at once.
 * Cost: T_memcpy + T_allgather(address) + (p - 1) (alpha + n beta + l ceil(n / s) + T_flag) + T_ack
 * of the one reader. Of a Bcast T_bcast(address) + alpha + n/p beta + l gamma(p - 1) ceil(n / (p
 * s)) instead of T_memcpy, n/p for n, and T_gather(ack). Restriction: a ring of all ranks needs a j
 * that has no divisor with p in common.
 */
#include "coll/allgather/spread.h"

static void build(struct oci_builder *b)
{
	const struct oci_plan_key *key = oci_builder_key(b);
	uint32_t p = key->size, j = key->parameter % p, source = oci_previous(key, j);

	if (!oci_is_ring(p, j)) {
		oci_build_refuse(b);
		return;
	}
	if (!oci_spread_begin(b) || p == 1)
		return;
	for (uint32_t i = 1; i < p; i++) {
		uint32_t piece = oci_previous(key, (uint32_t)((uint64_t)i * j % p));

		oci_build_wait_post(b, source, 1, (uint16_t)i, 0);
		oci_build_pull(b, oci_pieces(key, piece, 1), source,
			       i == 1 ? oci_own_piece(key, piece) : oci_pieces(key, piece, 1));
		/* My reader takes it in its next step; the last one is for nobody. */
		if (i < p - 1)
			oci_build_post(b, OCI_POST_FLAG, (uint16_t)(i + 1), 0);
	}
	oci_build_signal(b, 1, 0);
	if (oci_is_reader(key, oci_next(key, j)))
		oci_build_wait_ack(b, oci_next(key, j), 1, 1, 0);
}

static bool fits(const struct oci_shape *shape, uint32_t parameter)
{
	return shape->size < OCI_STEPS && oci_is_ring(shape->size, parameter);
}

static void cost(struct oci_costing *c)
{
	size_t n = oci_spread_cost(c);
	double others = c->shape->size - 1.0;

	oci_cost_flags(c, others);
	oci_cost_copies_all(c, OCI_MODEL_PULL, others, n);
	oci_spread_cost_end(c, 1, 1 + 3 * others);
}

const struct oci_algorithm oci_allgather_ring_neighbor = {
	.name = "ring-neighbor",
	.idea = "a ring: each rank reads from rank - j alone, which got the block before",
	.build = build,
	.cost = cost,
	.fits = fits,
	.needs = OCI_NEEDS_RING,
	.parameter_default = 1,
	.parameter_min = 1,
	.single_copy = true,
};

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
