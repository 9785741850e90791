/* SPDX-License-Identifier: BSD-3-Clause */
/* Point-to-point messages with gaps: message.c with a layout in the place of a buffer. */
#include "api/engine.h"

static struct oci_message layout_of(uint32_t peer, int32_t tag, const struct oc_layout *layout,
				    struct oc_status *status)
{
	struct oci_message m = { .peer = peer, .tag = tag, .status = status };

	/* Without pieces it is a message without bytes, or check() refuses it. */
	m.bytes = layout && layout->pieces ? layout->pieces[layout->count].at : 1;
	if (layout && layout->pieces && layout->count)
		m.layout = *layout;
	return m;
}

int oc_sendv(struct oc_team *team, uint32_t destination, int32_t tag,
	     const struct oc_layout *layout)
{
	struct oci_message m = layout_of(destination, tag, layout, NULL);

	return oci_message_run(team, &m, true);
}

int oc_recvv(struct oc_team *team, uint32_t source, int32_t tag, const struct oc_layout *layout,
	     struct oc_status *status)
{
	struct oci_message m = layout_of(source, tag, layout, status);

	return oci_message_run(team, &m, false);
}

int oc_isendv(struct oc_team *team, uint32_t destination, int32_t tag,
	      const struct oc_layout *layout, struct oc_request **request)
{
	struct oci_message m = layout_of(destination, tag, layout, NULL);

	return oci_message_start(team, &m, true, request);
}

int oc_irecvv(struct oc_team *team, uint32_t source, int32_t tag, const struct oc_layout *layout,
	      struct oc_status *status, struct oc_request **request)
{
	struct oci_message m = layout_of(source, tag, layout, status);

	return oci_message_start(team, &m, false, request);
}
