/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Each rank puts all its blocks beside its flag; everyone takes its own from each.
 *
 * Wins while p blocks fit OCI_INLINE_BYTES. Cost: (p - 1) line transfers a rank.
 */
#include "coll/alltoall/alltoall.h"
#include "coll/build.h"

static void build(struct oci_builder *b)
{
	const struct oci_plan_key *key = oci_builder_key(b);

	oci_build_copy(b, oci_blocks(OCI_BUF_SEND, 0, key->size),
		       oci_blocks(OCI_BUF_INLINE, 0, key->size));
	oci_build_post(b, OCI_POST_FLAG, 1, 0);
	oci_build_copy(b, oci_block(OCI_BUF_SEND, key->v), oci_block(OCI_BUF_RECV, key->v));
	for (uint32_t i = 1; i < key->size; i++) {
		uint32_t source = oci_next(key, i);

		oci_build_wait_post(b, source, 1, 1, 0);
		oci_build_pull(b, oci_block(OCI_BUF_RECV, source), source,
			       oci_block(OCI_BUF_INLINE, key->v));
	}
}

const struct oci_algorithm oci_alltoall_inline = {
	.name = "inline",
	.idea = "all blocks ride in their rank's flag lines",
	.build = build,
	.fits = oci_fits_inline_all,
};
