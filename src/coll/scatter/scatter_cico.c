/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The root copies each block into its slot and says how far it is; each rank takes its own.
 *
 * Wins while p - 1 blocks fit a slot. The root leaves without waiting.
 * Cost: (p - 1) n memcpy in by the root, overlapped with n memcpy out by each rank.
 */
#include "coll/build.h"
#include "coll/cost.h"
#include "coll/scatter/scatter.h"

static void build(struct oci_builder *b)
{
	const struct oci_plan_key *key = oci_builder_key(b);

	if (key->v == 0) {
		for (uint32_t v = 1; v < key->size; v++) {
			oci_build_copy(b, oci_block_rel(OCI_BUF_SEND, v),
				       oci_block(OCI_BUF_SLOT, v - 1));
			oci_build_post(b, v == 1 ? OCI_POST_SLOT : OCI_POST_FLAG, (uint16_t)v, 0);
		}
		oci_build_copy(b, oci_block_rel(OCI_BUF_SEND, 0), oci_block(OCI_BUF_RECV, 0));
		return;
	}
	oci_build_wait_post(b, 0, 1, (uint16_t)key->v, 0);
	oci_build_pull(b, oci_block(OCI_BUF_RECV, 0), 0, oci_block(OCI_BUF_SLOT, key->v - 1));
}

static void cost(struct oci_costing *c)
{
	size_t n = c->shape->bytes;

	oci_cost_fill(c, c->shape->size - 1.0, n, n);
	oci_cost_flags(c, 1);
	oci_cost_fetch(c, 1, n, n);
	oci_cost_ops(c, 2.0 * c->shape->size);
}

const struct oci_algorithm oci_scatter_cico = {
	.name = "cico",
	.idea = "through the root's slot in shared memory",
	.build = build,
	.cost = cost,
	.fits = oci_fits_slot_others,
};
