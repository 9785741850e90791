/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The root writes the whole message to one rank after the other (paper 002, V-B1).
 *
 * Wins where one copier is as fast as many, as nobody ever contends for a page table's lock, or
 * where the others come late: each has its message soon after it came. A rank leaves when its own
 * write is over, it need not wait for those of others.
 * Cost: T_gather(address) + (p - 1) (alpha + n beta + l ceil(n / s)) + T_bcast(ack).
 */
#include "coll/build.h"

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
		oci_build_push(b, oci_block(OCI_BUF_SEND, 0), v, oci_block(OCI_BUF_RECV, 0));
		oci_build_signal(b, (uint16_t)v, 0);
	}
}

static void cost(struct oci_costing *c)
{
	size_t n = c->shape->bytes;
	double others = c->shape->size - 1.0;

	oci_cost_flags(c, others);
	oci_cost_copies(c, OCI_MODEL_PUSH, others, n, 1);
	oci_cost_flags(c, 1);
	oci_cost_ops(c, 3 * others);
}

const struct oci_algorithm oci_bcast_direct_write = {
	.name = "direct-write",
	.idea = "the root writes to one rank after the other",
	.build = build,
	.cost = cost,
	.fits = oci_fits_step_each,
	.single_copy = true,
};
