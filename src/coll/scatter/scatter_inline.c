/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All blocks ride beside the root's flag.
 *
 * Wins while p blocks fit OCI_INLINE_BYTES. The root leaves at once.
 * Cost: one line transfer a reader, all at once.
 */
#include "coll/build.h"
#include "coll/scatter/scatter.h"

static void build(struct oci_builder *b)
{
	const struct oci_plan_key *key = oci_builder_key(b);

	if (key->v == 0) {
		oci_build_copy(b, oci_blocks(OCI_BUF_SEND, 0, key->size),
			       oci_blocks(OCI_BUF_INLINE, 0, key->size));
		oci_build_post(b, OCI_POST_FLAG, 1, 0);
		oci_build_copy(b, oci_block_rel(OCI_BUF_SEND, 0), oci_block(OCI_BUF_RECV, 0));
		return;
	}
	oci_build_wait_post(b, 0, 1, 1, 0);
	oci_build_pull(b, oci_block(OCI_BUF_RECV, 0), 0, oci_block_rel(OCI_BUF_INLINE, key->v));
}

const struct oci_algorithm oci_scatter_inline = {
	.name = "inline",
	.idea = "all blocks ride in the flag's cache lines",
	.build = build,
	.fits = oci_fits_inline_all,
};
