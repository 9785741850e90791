/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The root copies one block after the other: no contention, p - 1 steps. Scatter sequential-write
 * and Gather sequential-read (paper 002, IV-A2 and IV-B2).
 *
 * Wins where concurrent copies from or to one process are slower than one copier. A rank leaves
 * when its block is copied. The root's own block comes last, as nobody waits for it.
 * Cost: T_gather(address) + (p - 1) (alpha + n beta + l ceil(n / s)) + T_bcast(ack), and the memcpy
 * of n, which overlaps with nothing, unless MPI_IN_PLACE.
 */
#include "coll/rooted/rooted.h"

static void build(struct oci_builder *b)
{
	const struct oci_plan_key *key = oci_builder_key(b);
	struct oci_range mine = oci_rooted_mine(key);

	if (key->v) {
		oci_build_post(b, OCI_POST_ADDRESS, 1, 0);
		oci_build_wait_ack(b, 0, 1, (uint16_t)key->v, 0);
		return;
	}
	for (uint32_t v = 1; v < key->size; v++) {
		oci_build_wait_post(b, v, 1, 1, 0);
		if (oci_is_scatter(key->collective))
			oci_build_push(b, oci_rooted_there(key, v), v, mine);
		else
			oci_build_pull(b, oci_rooted_there(key, v), v, mine);
		oci_build_signal(b, (uint16_t)v, 0);
	}
	oci_rooted_copy(b);
}

static void cost(struct oci_costing *c)
{
	size_t n = c->shape->bytes;
	double others = c->shape->size - 1.0;

	oci_cost_flags(c, others);
	oci_cost_copies(c, oci_is_scatter(c->shape->collective) ? OCI_MODEL_PUSH : OCI_MODEL_PULL,
			others, n, 1);
	oci_cost_touch(c, OCI_TOUCH_OWN, OCI_BY_ONE, 1, n);
	oci_cost_flags(c, 1);
	oci_cost_ops(c, 1 + 3 * others);
}

const struct oci_algorithm oci_scatter_sequential_write = {
	.name = "sequential-write",
	.idea = "the root writes one block after the other",
	.build = build,
	.cost = cost,
	.fits = oci_fits_step_each,
	.single_copy = true,
};

const struct oci_algorithm oci_gather_sequential_read = {
	.name = "sequential-read",
	.idea = "the root reads one block after the other",
	.build = build,
	.cost = cost,
	.fits = oci_fits_step_each,
	.single_copy = true,
};
