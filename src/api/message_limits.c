/* SPDX-License-Identifier: BSD-3-Clause */
/* Where a message changes its way. */
#include "api/engine.h"

#include <string.h>

#include "base/options.h"

#define PIECE_BYTES ((size_t)1 << 20)

/* Of large messages, where an option asks for a way; a pipe is never chosen by itself. */
static enum oci_p2p_method method(void)
{
	const char *name = oci_options()->p2p;

	if (!strcmp(name, "shm"))
		return OCI_P2P_STREAM;
	if (!strcmp(name, "vmsplice"))
		return OCI_P2P_VMSPLICE;
	return !strcmp(name, "writev") ? OCI_P2P_WRITEV : OCI_P2P_COPY;
}

void oci_message_limits(const struct oci_model *model, struct oci_p2p_limits *limits)
{
	(void)model;
	*limits = (struct oci_p2p_limits){ .eager_bytes = 8192,
					   .stream_eager_bytes = 16384,
					   .piece_bytes = PIECE_BYTES,
					   .method = method() };
}
