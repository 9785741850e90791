/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The algorithms of Reduce_scatter_block and Reduce_scatter, in the order of the list: rank v gets
 * block v of the reduction. One builder for both: the blocks of a Reduce_scatter lie where the
 * table says, which all ranks have alike.
 */
#ifndef OC_COLL_REDUCE_SCATTER_H
#define OC_COLL_REDUCE_SCATTER_H

#include "coll/coll.h"

extern const struct oci_algorithm oci_reduce_scatter_inline, oci_reduce_scatter_cico,
	oci_reduce_scatter_sliced;

/* Bytes of the whole input: a call of Reduce_scatter is measured by them. */
static inline size_t oci_reduce_scatter_bytes(const struct oci_shape *shape)
{
	if (shape->collective == OC_REDUCE_SCATTER)
		return shape->bytes;
	return shape->bytes <= SIZE_MAX / shape->size ? shape->bytes * shape->size : SIZE_MAX;
}

/* Blocks in the input, or at the same places in slot or payload. */
static inline struct oci_range oci_reduce_scatter_input(const struct oci_plan_key *key,
							enum oci_buf buf, uint32_t block,
							uint32_t blocks)
{
	bool table = key->collective == OC_REDUCE_SCATTER;

	return oci_tabled(table ? OCI_TABLE_RECV : OCI_TABLE_NONE, oci_blocks(buf, block, blocks));
}

/* This rank's block alone in a buffer. */
static inline struct oci_range oci_reduce_scatter_result(const struct oci_plan_key *key,
							 enum oci_buf buf)
{
	if (key->collective == OC_REDUCE_SCATTER)
		return oci_tabled(OCI_TABLE_RECV_SIZES, oci_block(buf, key->v));
	return oci_block(buf, 0);
}

#endif
