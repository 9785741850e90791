/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reduce_scatter_block and Reduce_scatter: rank v gets block v of the reduction. One builder for
 * both: the blocks of a Reduce_scatter lie where the table says, which all ranks have alike.
 */
#ifndef OC_COLL_REDUCE_SCATTER_H
#define OC_COLL_REDUCE_SCATTER_H

#include "coll/build.h"

/* Bytes of the whole input: a call of Reduce_scatter is measured by them. */
static inline size_t oci_reduce_scatter_bytes(const struct oci_shape *shape)
{
	if (shape->collective == OC_REDUCE_SCATTER)
		return shape->bytes;
	return shape->bytes <= SIZE_MAX / shape->size ? shape->bytes * shape->size : SIZE_MAX;
}

/* Bytes of a block; of a Reduce_scatter on average. */
static inline size_t oci_reduce_scatter_block(const struct oci_shape *shape)
{
	return shape->collective == OC_REDUCE_SCATTER ? shape->bytes / shape->size : shape->bytes;
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
