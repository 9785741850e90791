/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The root writes one block after the other (paper 002, IV-A2): no contention, p - 1 steps.
 *
 * Wins where concurrent readers of one process are slower than one copier. A rank leaves when its
 * block is there. The root's own block comes last, as nobody waits for it.
 * Cost: T_gather(address) + (p - 1) (alpha + n beta + l ceil(n / s)) + T_bcast(ack), and the memcpy
 * of n, which overlaps with nothing, unless MPI_IN_PLACE.
 */
#include "coll/build.h"
#include "coll/cost.h"
#include "coll/scatter/scatter.h"

static void build(struct oci_builder *b)
{
	const struct oci_plan_key *key = oci_builder_key(b);

	if (key->v) {
		oci_build_post(b, OCI_POST_ADDRESS, 1, 0);
		oci_build_wait_ack(b, 0, 1, (uint16_t)key->v, 0);
		return;
	}
	for (uint32_t v = 1; v < key->size; v++) {
		oci_build_wait_post(b, v, 1, 1, 0);
		oci_build_push(b, oci_block_rel(OCI_BUF_SEND, v), v, oci_block(OCI_BUF_RECV, 0));
		oci_build_signal(b, (uint16_t)v, 0);
	}
	oci_build_copy(b, oci_block_rel(OCI_BUF_SEND, 0), oci_block(OCI_BUF_RECV, 0));
}

static void cost(struct oci_costing *c)
{
	size_t n = c->shape->bytes;
	double others = c->shape->size - 1.0;

	oci_cost_flags(c, others);
	oci_cost_pushes(c, others, n, 1);
	oci_cost_memcpy(c, 1, n, n);
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
