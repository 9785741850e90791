/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operands are copied into the slots; rank v combines part v from there and leaves the result in
 * its own slot, from where everyone takes it.
 *
 * Wins between the flat form and the single copies: the reduction is shared, and no system call is
 * made. Part v of slot v is read by rank v alone, so the result may take its place.
 * Cost: n memcpy, (p - 1) n/p reduced, n/p memcpy, (p - 1) n/p memcpy out.
 */
#include "coll/build.h"

static void build(struct oci_builder *b)
{
	const struct oci_plan_key *key = oci_builder_key(b);
	struct oci_range part = oci_part(OCI_BUF_SLOT, key->v, 1);
	struct oci_reduction r = {
		.mine = oci_part(OCI_BUF_SEND, key->v, 1),
		.remote = part,
		.acc = oci_part(OCI_BUF_ACC, key->v, 1),
		.step = 1,
		.rotated = true,
	};

	oci_build_parts(b, key->size);
	oci_build_segment(b, OCI_NEAR_SLOT_BYTES);
	oci_build_copy(b, oci_block(OCI_BUF_SEND, 0), oci_block(OCI_BUF_SLOT, 0));
	oci_build_post(b, OCI_POST_SLOT, 1, 0);
	oci_build_reduction(b, &r);
	oci_build_copy(b, r.acc, part);
	oci_build_signal(b, 1, 0);
	oci_build_copy(b, r.acc, oci_part(OCI_BUF_RECV, key->v, 1));
	for (uint32_t i = 1; i < key->size; i++) {
		uint32_t source = oci_next(key, i);

		oci_build_wait_ack(b, source, 1, 1, 0);
		oci_build_pull(b, oci_part(OCI_BUF_RECV, source, 1), source,
			       oci_part(OCI_BUF_SLOT, source, 1));
	}
}

static void cost(struct oci_costing *c)
{
	size_t n = c->shape->bytes, part = oci_cost_part(c->shape);
	double others = c->shape->size - 1.0;

	c->whole = n;
	oci_cost_touch(c, OCI_TOUCH_SLOT, OCI_BY_ONE, 1, n);
	oci_cost_flags(c, 2 * others);
	oci_cost_reduce(c, OCI_TOUCH_PEERS, others, part);
	oci_cost_touch(c, OCI_TOUCH_SLOT, OCI_BY_ONE, 1, part);
	oci_cost_touch(c, OCI_TOUCH_OWN, OCI_BY_ONE, 1, part);
	oci_cost_touch(c, OCI_TOUCH_PEERS, OCI_BY_ONE, others, part);
	c->whole = 0;
	oci_cost_ops(c, 5 + 4 * others);
}

const struct oci_algorithm oci_allreduce_cico_sliced = {
	.name = "cico-sliced",
	.idea = "each rank combines its part out of the slots and shares it there",
	.build = build,
	.cost = cost,
	.fits = oci_fits_slot_one,
};
