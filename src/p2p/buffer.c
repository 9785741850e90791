/* SPDX-License-Identifier: BSD-3-Clause */
/* The bytes of a message, dense or with gaps, and its end. */
#include <errno.h>
#include <string.h>

#include "copy/layout.h"
#include "copy/memcpy.h"
#include "p2p/p2p.h"

/* Copies between the pieces of a buffer with gaps and dense bytes. */
static void copy_pieces(const struct oci_message *m, size_t at, uint8_t *dense, size_t bytes,
			bool to_pieces)
{
	struct iovec pieces[OCI_LAYOUT_CUT];
	unsigned int count;

	while (bytes && (count = oci_layout_cut(&m->layout, at, bytes, pieces, OCI_LAYOUT_CUT))) {
		for (unsigned int i = 0; i < count; i++) {
			size_t length = pieces[i].iov_len;

			if (to_pieces)
				memcpy(pieces[i].iov_base, dense, length);
			else
				memcpy(dense, pieces[i].iov_base, length);
			dense += length;
			at += length;
			bytes -= length;
		}
	}
}

void oci_message_gather(void *to, const struct oci_message *m, size_t at, size_t bytes)
{
	/* Where the compiler knows a bound it copies by a string instruction, not by memcpy(). */
	__asm__("" : "+r"(bytes));
	if (m->layout.pieces)
		copy_pieces(m, at, to, bytes, false);
	else if (bytes)
		memcpy(to, (const uint8_t *)m->buffer + at, bytes);
}

void oci_message_scatter(const struct oci_message *m, size_t at, const void *from, size_t bytes)
{
	size_t room = at < m->bytes ? m->bytes - at : 0;

	if (bytes > room)
		bytes = room;
	if (m->layout.pieces)
		copy_pieces(m, at, (uint8_t *)(uintptr_t)from, bytes, true);
	else if (bytes)
		oci_memcpy((uint8_t *)m->buffer + at, from, bytes, m->whole);
}

void oci_message_move(const struct oci_message *to, const struct oci_message *from)
{
	struct iovec piece = { from->buffer, from->bytes };

	for (size_t at = 0; at < from->bytes; at += piece.iov_len) {
		if (from->layout.pieces &&
		    !oci_layout_cut(&from->layout, at, from->bytes - at, &piece, 1))
			return;
		oci_message_scatter(to, at, piece.iov_base, piece.iov_len);
	}
}

void oci_message_finish(struct oci_message *m, int result)
{
	m->result = result;
	if (m->over)
		m->over(m);
}

void oci_receive_finish(struct oci_message *m, uint32_t source, int32_t tag, size_t whole)
{
	if (m->status)
		*m->status = (struct oc_status){ .source = source, .tag = tag, .bytes = whole };
	oci_message_finish(m, whole > m->bytes ? -EMSGSIZE : 1);
}
