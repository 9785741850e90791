/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Scatter and Gather are mirrors: the blocks of the ranks lie with the root, and go from there or
 * to there. One file here has both directions of an algorithm; the key's collective says which.
 */
#ifndef OC_COLL_ROOTED_H
#define OC_COLL_ROOTED_H

#include "coll/build.h"

static inline bool oci_is_scatter(enum oc_collective collective)
{
	return collective == OC_SCATTER || collective == OC_SCATTERV;
}

/* In which the ranks copy; the root goes the other way. */
static inline enum oci_model_direction oci_rooted_direction(const struct oci_costing *c)
{
	return oci_is_scatter(c->shape->collective) ? OCI_MODEL_PULL : OCI_MODEL_PUSH;
}

/* Where the root has the block of rank v; of a v-variant, where its table says. */
static inline struct oci_range oci_rooted_there(const struct oci_plan_key *key, uint32_t v)
{
	switch (key->collective) {
	case OC_SCATTER:
		return oci_block_rel(OCI_BUF_SEND, v);
	case OC_GATHER:
		return oci_block_rel(OCI_BUF_RECV, v);
	case OC_SCATTERV:
		return oci_tabled(OCI_TABLE_SEND, oci_block_rel(OCI_BUF_SEND, v));
	default:
		return oci_tabled(OCI_TABLE_RECV, oci_block_rel(OCI_BUF_RECV, v));
	}
}

/* How many copy at a time: throttled, or `parallel`, which has no parameter, all others. */
static inline uint32_t oci_rooted_at_once(const struct oci_builder *b)
{
	const struct oci_plan_key *key = oci_builder_key(b);
	bool throttled = oci_building(b)->parameter_min;

	return throttled && key->parameter < key->size ? key->parameter : key->size - 1;
}

/* Where that rank has it. */
static inline struct oci_range oci_rooted_mine(const struct oci_plan_key *key)
{
	return oci_block(oci_is_scatter(key->collective) ? OCI_BUF_RECV : OCI_BUF_SEND, 0);
}

/* The root's own block. */
static inline void oci_rooted_copy(struct oci_builder *b)
{
	const struct oci_plan_key *key = oci_builder_key(b);

	if (oci_is_scatter(key->collective))
		oci_build_copy(b, oci_rooted_there(key, 0), oci_rooted_mine(key));
	else
		oci_build_copy(b, oci_rooted_mine(key), oci_rooted_there(key, 0));
}

#endif
