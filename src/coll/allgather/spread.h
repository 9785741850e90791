/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every rank comes by the pieces of all, one of which it begins with: what Allgather and the Bcasts
 * called scatter-... have in common. The pieces are blocks, each rank's own copied to its place; or
 * (Bcast) parts of the message, each rank's own read from the root, which has them all. One file
 * here has both forms of an algorithm; the key's collective says which.
 */
#ifndef OC_COLL_SPREAD_H
#define OC_COLL_SPREAD_H

#include "coll/build.h"

/* So many pieces, where they belong. */
static inline struct oci_range oci_pieces(const struct oci_plan_key *key, uint32_t first,
					  uint32_t count)
{
	return key->collective == OC_BCAST ? oci_part(OCI_BUF_RECV, first, count) :
					     oci_blocks(OCI_BUF_RECV, first, count);
}

/* Where others find my own piece from my first POST on: a block comes to its place after that. */
static inline struct oci_range oci_own_piece(const struct oci_plan_key *key, uint32_t v)
{
	return key->collective == OC_BCAST ? oci_pieces(key, v, 1) : oci_block(OCI_BUF_SEND, 0);
}

/* Do others have to wait until v has read from them? The root of a Bcast reads nothing. */
static inline bool oci_is_reader(const struct oci_plan_key *key, uint32_t v)
{
	return v || key->collective != OC_BCAST;
}

/* My own piece is there, and posted as step 1. False: nothing is left to do, as for the root of a
 * Bcast, whose POST is at whatever step is waited for. */
static inline bool oci_spread_begin(struct oci_builder *b)
{
	const struct oci_plan_key *key = oci_builder_key(b);
	struct oci_range mine = oci_pieces(key, key->v, 1);

	if (key->collective != OC_BCAST) {
		oci_build_post(b, OCI_POST_ADDRESS, 1, 0);
		oci_build_copy(b, oci_block(OCI_BUF_SEND, 0), mine);
		return true;
	}
	oci_build_parts(b, key->size);
	if (!key->v) {
		oci_build_post(b, OCI_POST_ADDRESS, OCI_STEPS - 1, 0);
		oci_build_wait_others_ack(b, 1);
		return false;
	}
	oci_build_wait_post(b, 0, 1, 1, 0);
	oci_build_pull(b, mine, 0, mine);
	oci_build_post(b, OCI_POST_ADDRESS, 1, 0);
	return true;
}

/* In step i each reads the piece of rank - i at its source, whose POST of `step` says that it is
 * there, and acknowledges all of it by `ack`. */
static inline void oci_build_ring_read(struct oci_builder *b, uint16_t step, uint16_t ack)
{
	const struct oci_plan_key *key = oci_builder_key(b);

	for (uint32_t i = 1; i < key->size; i++) {
		uint32_t source = oci_previous(key, i);

		oci_build_wait_post(b, source, 1, step, 0);
		oci_build_pull(b, oci_pieces(key, source, 1), source, oci_own_piece(key, source));
	}
	oci_build_signal(b, ack, 0);
	for (uint32_t i = 1; i < key->size; i++)
		if (oci_is_reader(key, oci_next(key, i)))
			oci_build_wait_ack(b, oci_next(key, i), 1, ack, 0);
}

/* What oci_spread_begin() costs; returns the bytes of a piece. */
static inline size_t oci_spread_cost(struct oci_costing *c)
{
	size_t n = c->shape->bytes;

	if (c->shape->collective != OC_BCAST) {
		oci_cost_touch(c, OCI_TOUCH_OWN, OCI_BY_ONE, 1, n);
		return n;
	}
	n = oci_cost_part(c->shape);
	oci_cost_flags(c, 1);
	oci_cost_copies(c, OCI_MODEL_PULL, 1, n, c->shape->size - 1.0);
	return n;
}

/* And in the end: acknowledgements of `readers`, of a Bcast of all to the root. */
static inline void oci_spread_cost_end(struct oci_costing *c, double readers, double ops)
{
	bool bcast = c->shape->collective == OC_BCAST;

	oci_cost_flag_row(c, bcast ? c->shape->size - 1.0 : readers);
	oci_cost_ops(c, 3.0 + bcast + ops);
}

#endif
