/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Each rank's piece goes from it to all others, in the order of a ring. In step i each reads that
 * of rank - i: Allgather ring-source-read (paper 002, V-A2) and Bcast scatter-allgather (V-B3). Or
 * it writes its own to rank + i: ring-source-write and scatter-ring-source-write.
 *
 * Wins for large blocks: no two ranks copy from or to one process in the same step; of a Bcast
 * nobody reads from the root alone after the first part. Writing wins where it is the faster
 * direction: the source stays in the writer's cache, while a reader finds each piece where its
 * owner left it. Cost: T_memcpy + T_allgather(address) + (p - 1) (alpha + n beta + l ceil(n / s)) +
 * T_barrier. Of a Bcast alpha + n/p beta + l gamma(p - 1) ceil(n / (p s)) instead of T_memcpy, and
 * n/p for n; a writer leaves out the root.
 */
#include "coll/allgather/spread.h"

static void build_read(struct oci_builder *b)
{
	if (oci_spread_begin(b))
		oci_build_ring_read(b, 1, 1);
}

static void build_write(struct oci_builder *b)
{
	const struct oci_plan_key *key = oci_builder_key(b);
	bool bcast = key->collective == OC_BCAST;
	struct oci_range mine = oci_pieces(key, key->v, 1);

	if (bcast)
		oci_build_parts(b, key->size);
	/* Peers write from now on, into other places than mine. */
	oci_build_post(b, OCI_POST_ADDRESS, 1, 0);
	if (!bcast) {
		oci_build_copy(b, oci_own_piece(key, key->v), mine);
	} else if (key->v) {
		oci_build_wait_post(b, 0, 1, 1, 0);
		oci_build_pull(b, mine, 0, mine);
	}
	for (uint32_t i = 1; i < key->size; i++) {
		uint32_t target = oci_next(key, i);

		if (!oci_is_reader(key, target)) /* the root has it all */
			continue;
		oci_build_wait_post(b, target, 1, 1, 0);
		oci_build_push(b, oci_own_piece(key, key->v), target, mine);
	}
	oci_build_signal(b, 1, 0);
	oci_build_wait_others_ack(b, 1);
}

static void cost_read(struct oci_costing *c)
{
	size_t n = c->shape->bytes;
	double others = c->shape->size - 1.0;

	if (c->shape->collective == OC_BCAST) {
		n = oci_cost_part(c->shape);
		oci_cost_flags(c, 1);
		oci_cost_blocks(c, OCI_MODEL_PULL, 1, n, others);
		oci_cost_flags(c, others - 1);
	} else {
		oci_cost_touch(c, OCI_TOUCH_OWN, OCI_BY_ONE, 1, n);
		oci_cost_flags(c, others);
	}
	oci_cost_copies_all(c, OCI_MODEL_PULL, others, n);
	oci_spread_cost_end(c, others, 1 + 2 * others);
}

static void cost_write(struct oci_costing *c)
{
	/* The root, which reads nothing, writes one part more than the others. */
	size_t n = oci_spread_cost(c);
	double others = c->shape->size - 1.0;
	double written = c->shape->collective == OC_BCAST ? others - 1 : others;

	oci_cost_flags(c, written);
	oci_cost_copies_all(c, OCI_MODEL_PUSH, written, n);
	oci_spread_cost_end(c, others, 1 + 2 * others);
}

const struct oci_algorithm oci_allgather_ring_source_read = {
	.name = "ring-source-read",
	.idea = "in step i each rank reads the block of rank - i at its source",
	.build = build_read,
	.cost = cost_read,
	.single_copy = true,
};

const struct oci_algorithm oci_bcast_scatter_allgather = {
	.name = "scatter-allgather",
	.idea = "p parts: read mine from the root, the others from those who have them",
	.build = build_read,
	.cost = cost_read,
	.single_copy = true,
};

const struct oci_algorithm oci_allgather_ring_source_write = {
	.name = "ring-source-write",
	.idea = "in step i each rank writes its block to rank + i",
	.build = build_write,
	.cost = cost_write,
	.single_copy = true,
};

const struct oci_algorithm oci_bcast_scatter_ring_write = {
	.name = "scatter-ring-source-write",
	.idea = "p parts: read mine from the root, then write it to all others in turn",
	.build = build_write,
	.cost = cost_write,
	.single_copy = true,
};
