/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operands ride in the flags' cache lines; rank v combines those of ranks 0 to v (Exscan: v - 1).
 *
 * Wins up to OCI_INLINE_BYTES: nobody waits for a result of another.
 * Cost: v line transfers and v n reduced on rank v.
 */
#include "coll/build.h"
#include "coll/cost.h"
#include "coll/scan/scan.h"

static void build(struct oci_builder *b)
{
	const struct oci_plan_key *key = oci_builder_key(b);
	bool scan = key->collective == OC_SCAN;
	struct oci_range recv = oci_block(OCI_BUF_RECV, 0);
	struct oci_reduction r = {
		.mine = oci_block(OCI_BUF_SEND, 0),
		.remote = oci_block(OCI_BUF_INLINE, 0),
		.acc = scan ? oci_block(OCI_BUF_ACC, 0) : recv,
		.step = 1,
	};

	oci_build_segment(b, OCI_INLINE_BYTES);
	if (key->v + 1 < key->size) {
		oci_build_copy(b, r.mine, r.remote);
		oci_build_post(b, OCI_POST_FLAG, 1, 0);
	}
	if (key->v) {
		oci_build_prefix(b, &r, key->v + scan);
		/* An Exscan is never given its operand in RECV. */
		if (scan)
			oci_build_copy(b, r.acc, recv);
	} else if (scan) {
		oci_build_copy(b, r.mine, recv);
	}
}

static void cost(struct oci_costing *c)
{
	/* The last rank combines all the others' operands. */
	size_t n = c->shape->bytes;
	double others = c->shape->size - 1.0;

	oci_cost_memcpy(c, 2, n, n);
	oci_cost_flags(c, others);
	/* An Exscan leaves out its own. */
	oci_cost_reduce_from(c, c->shape->collective == OC_SCAN ? others : others - 1, n, n);
	oci_cost_ops(c, 4 + 2 * others);
}

const struct oci_algorithm oci_scan_inline = {
	.name = "inline",
	.idea = "operands ride in the flags' cache lines",
	.build = build,
	.cost = cost,
	.fits = oci_fits_inline_one,
};
