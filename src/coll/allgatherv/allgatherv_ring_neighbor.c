/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Each rank writes to one neighbour alone, rank + j: in step i the block that it got in step i - 1
 * (paper 002, V-A1). It writes where Allgather's reads: the places of blocks are each rank's own,
 * and the one who has them offers them.
 *
 * Wins where most copies are to stay in a socket: j = 1 with neighbours side by side. All blocks go
 * by a single copy, however small.
 * Cost: that of Allgather ring-neighbor for each block that is not empty.
 * Restrictions: a ring of all ranks needs a j that has no divisor with p in common; a cell for each
 * peer must fit (oci_offer_fits).
 */
#include "coll/build.h"

static void build(struct oci_builder *b)
{
	const struct oci_plan_key *key = oci_builder_key(b);
	uint32_t p = key->size, j = key->parameter % p;
	uint32_t target = oci_next(key, j), source = oci_previous(key, j);
	struct oci_range mine = oci_block(OCI_BUF_SEND, 0);
	struct oci_range any = oci_tabled(OCI_TABLE_RECV, oci_block(OCI_BUF_RECV, 0));

	if (!oci_is_ring(p, j)) {
		oci_build_refuse(b);
		return;
	}
	if (p > 1)
		oci_build_offer_addresses(b, any, p - 1, 0);
	oci_build_post(b, OCI_POST_FLAG, 1, 0);
	oci_build_copy(b, mine, oci_tabled(OCI_TABLE_RECV, oci_block(OCI_BUF_RECV, key->v)));
	if (p == 1)
		return;
	oci_build_wait_post(b, target, 1, 1, 0);
	for (uint32_t i = 1; i < p; i++) {
		uint32_t block = oci_previous(key, (uint32_t)((uint64_t)(i - 1) * j % p));

		if (i == 1) {
			oci_build_give(b, mine, target, p - 1, 0);
		} else {
			any.block = block;
			oci_build_wait_ack(b, source, 1, (uint16_t)(i - 1), 0);
			oci_build_give_block(b, any, target, block, p - 1, 0);
		}
		oci_build_signal(b, (uint16_t)i, 0);
	}
	oci_build_wait_ack(b, source, 1, (uint16_t)(p - 1), 0);
}

static bool fits(const struct oci_shape *shape, uint32_t parameter)
{
	return oci_is_ring(shape->size, parameter) && oci_fits_offer_others(shape, parameter);
}

const struct oci_algorithm oci_allgatherv_ring_neighbor = {
	.name = "ring-neighbor",
	.idea = "a ring: each rank writes to rank + j alone, what it got before",
	.build = build,
	.fits = fits,
	.needs = OCI_NEEDS_RING,
	.parameter_default = 1,
	.parameter_min = 1,
	.single_copy = true,
};
