/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ring-neighbor: each rank reads from one neighbour alone, rank - j: in step i the piece that this
 * one has got in step i - 1. The pieces go round the ring that steps of j make. Allgather
 * ring-neighbor (paper 002, V-A1) and Bcast scatter-ring-neighbor (V-B3).
 *
 * ring-near and scatter-ring-near: the neighbour is the one before in the order of the hierarchy
 * (coll/tree.h), so that the ring enters each package, NUMA node and cache once, wherever ranks
 * sit.
 *
 * Wins where most copies are to stay in a socket: j = 1 with neighbours side by side, j = s where
 * ranks go round s sockets and p has no divisor in common with s, ring-near with any. Each step
 * waits for the neighbour's previous one, which ring-source-read does not, so all go as fast as the
 * longest way of the ring. Nobody but the root of a Bcast is ever read by two at once.
 * Cost: T_memcpy + T_allgather(address) + (p - 1) (alpha + n beta + l ceil(n / s) + T_flag) + T_ack
 * of the one reader. Of a Bcast T_bcast(address) + alpha + n/p beta + l gamma(p - 1) ceil(n / (p
 * s)) instead of T_memcpy, n/p for n, and T_gather(ack). Restriction: a ring of all ranks needs a j
 * that has no divisor with p in common.
 */
#include "coll/allgather/spread.h"
#include "coll/tree.h"

/* v of the ranks before and behind, in a ring by steps of j or by hierarchy. */
static uint32_t before(const struct oci_builder *b, uint32_t v)
{
	const struct oci_plan_key *key = oci_builder_key(b);
	uint32_t p = key->size, rank = (v + key->root) % p;

	if (!oci_building(b)->by_hierarchy)
		return (v + p - key->parameter % p) % p;
	return (oci_ring_next(oci_hierarchy_find(key->hierarchy), p, rank, true) + p - key->root) %
	       p;
}

static uint32_t behind(const struct oci_builder *b)
{
	const struct oci_plan_key *key = oci_builder_key(b);
	uint32_t p = key->size, rank = (key->v + key->root) % p;

	if (!oci_building(b)->by_hierarchy)
		return oci_next(key, key->parameter % p);
	return (oci_ring_next(oci_hierarchy_find(key->hierarchy), p, rank, false) + p - key->root) %
	       p;
}

static void build(struct oci_builder *b)
{
	const struct oci_plan_key *key = oci_builder_key(b);
	uint32_t p = key->size, source = before(b, key->v), piece = key->v;

	if (!oci_building(b)->by_hierarchy && !oci_is_ring(p, key->parameter % p)) {
		oci_build_refuse(b);
		return;
	}
	if (!oci_spread_begin(b) || p == 1)
		return;
	for (uint32_t i = 1; i < p; i++) {
		piece = before(b, piece);
		oci_build_wait_post(b, source, 1, (uint16_t)i, 0);
		oci_build_pull(b, oci_pieces(key, piece, 1), source,
			       i == 1 ? oci_own_piece(key, piece) : oci_pieces(key, piece, 1));
		/* My reader takes it in its next step; the last one is for nobody. */
		if (i < p - 1)
			oci_build_post(b, OCI_POST_FLAG, (uint16_t)(i + 1), 0);
	}
	oci_build_signal(b, 1, 0);
	if (oci_is_reader(key, behind(b)))
		oci_build_wait_ack(b, behind(b), 1, 1, 0);
}

static bool fits(const struct oci_shape *shape, uint32_t parameter)
{
	return shape->size < OCI_STEPS && oci_is_ring(shape->size, parameter);
}

static bool fits_near(const struct oci_shape *shape, uint32_t parameter)
{
	(void)parameter;
	return shape->size < OCI_STEPS;
}

static void cost(struct oci_costing *c)
{
	size_t n = oci_spread_cost(c);
	double others = c->shape->size - 1.0;

	oci_cost_ring(c, others, n, c->parameter);
	oci_spread_cost_end(c, 1, 1 + 3 * others);
}

const struct oci_algorithm oci_allgather_ring_neighbor = {
	.name = "ring-neighbor",
	.idea = "a ring: each rank reads from rank - j alone, which got the block before",
	.build = build,
	.cost = cost,
	.fits = fits,
	.needs = OCI_NEEDS_RING,
	.tries = oci_tries_ring,
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
	.tries = oci_tries_ring,
	.parameter_default = 1,
	.parameter_min = 1,
	.single_copy = true,
};

const struct oci_algorithm oci_allgather_ring_near = {
	.name = "ring-near",
	.idea = "a ring that goes through each NUMA node and cache before it goes on to the next",
	.build = build,
	.cost = cost,
	.fits = fits_near,
	.single_copy = true,
	.by_hierarchy = true,
};

const struct oci_algorithm oci_bcast_scatter_ring_near = {
	.name = "scatter-ring-near",
	.idea = "p parts: read mine from the root, the others as they come round by NUMA nodes",
	.build = build,
	.cost = cost,
	.fits = fits_near,
	.single_copy = true,
	.by_hierarchy = true,
};
