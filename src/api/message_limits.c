/* SPDX-License-Identifier: BSD-3-Clause */
/* Where a message changes its way. */
#include "api/engine.h"

#define PIECE_BYTES ((size_t)1 << 20)

void oci_message_limits(const struct oci_model *model, struct oci_p2p_limits *limits)
{
	(void)model;
	*limits = (struct oci_p2p_limits){ .eager_bytes = 8192,
					   .stream_eager_bytes = 16384,
					   .piece_bytes = PIECE_BYTES,
					   .method = OCI_P2P_COPY };
}
