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
	oci_build_slot_parts(b, true, true);
}

static void cost(struct oci_costing *c)
{
	c->whole = c->shape->bytes;
	oci_cost_touch(c, OCI_TOUCH_OWN, OCI_BY_ONE, 1, oci_cost_part(c->shape));
	c->whole = 0;
	oci_cost_slot_parts(c);
}

const struct oci_algorithm oci_allreduce_cico_sliced = {
	.name = "cico-sliced",
	.idea = "each rank combines its part out of the slots and shares it there",
	.build = build,
	.cost = cost,
	.fits = oci_fits_slot_one,
};
