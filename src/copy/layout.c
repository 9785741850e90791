/* SPDX-License-Identifier: BSD-3-Clause */
#include "copy/layout.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "copy/copy.h"

/* Index of the piece that holds dense byte `at`: the last one that begins at or before it. */
static size_t piece_find(const struct oc_layout *layout, size_t at)
{
	size_t low = 0, high = layout->count;

	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (layout->pieces[middle].at <= at)
			low = middle;
		else
			high = middle;
	}
	return low;
}

unsigned int oci_layout_cut(const struct oc_layout *layout, size_t at, size_t bytes,
			    struct iovec *pieces, unsigned int room)
{
	size_t i = piece_find(layout, at);
	unsigned int count = 0;

	for (; bytes && count < room && i < layout->count; i++) {
		/* The list ends with an entry that has only `at`: the total. */
		size_t into = at - layout->pieces[i].at;
		size_t length = layout->pieces[i + 1].at - at;

		if (length > bytes)
			length = bytes;
		if (!length)
			continue;
		pieces[count++] = (struct iovec){
			.iov_base = (uint8_t *)layout->pieces[i].address + into,
			.iov_len = length,
		};
		at += length;
		bytes -= length;
	}
	return count;
}

const struct oc_layout *oci_place_layout(const struct oci_team *team, uint64_t seq, uint64_t place)
{
	const struct oci_layouts *mine = &team->layouts[seq % OCI_LANES];

	if (!oci_is_laid_out(place))
		return NULL;
	return place & OCI_LAID_OUT_RECV ? &mine->recv : &mine->send;
}

unsigned int oci_place_cut(const struct oc_layout *layout, uint64_t place, size_t bytes,
			   struct iovec *pieces, unsigned int room)
{
	if (layout)
		return oci_layout_cut(layout, place & OCI_LAID_OUT_OFFSET, bytes, pieces, room);
	pieces[0] = (struct iovec){ (void *)(uintptr_t)place, bytes };
	return 1;
}

size_t oci_pieces_bytes(const struct iovec *pieces, unsigned int count)
{
	size_t bytes = 0;

	for (unsigned int i = 0; i < count; i++)
		bytes += pieces[i].iov_len;
	return bytes;
}

unsigned int oci_cursor_cut(const struct oci_cursor *from, size_t *bytes, struct iovec *pieces,
			    unsigned int room)
{
	struct oci_cursor c = *from;
	unsigned int count = 0;
	size_t held = 0, length;

	for (; held < *bytes && count < room && (length = oci_cursor_rest(&c));
	     held += length, c.at += length) {
		length = length < *bytes - held ? length : *bytes - held;
		pieces[count++] = (struct iovec){ oci_cursor_byte(&c), length };
	}
	*bytes = held;
	return count;
}

/* One end of a copy by this core: what follows at `at`, in one piece. */
struct copy_end {
	uint8_t *at;
	size_t bytes;
	const struct oc_piece *next, *end; /* the pieces behind it; as many as none: it is dense */
};

static struct copy_end copy_end_at(const struct oci_team *team, uint64_t seq, uint64_t place,
				   size_t bytes)
{
	const struct oc_layout *layout = oci_place_layout(team, seq, place);
	const struct oc_piece *piece;
	size_t into;

	if (!layout)
		return (struct copy_end){ (uint8_t *)(uintptr_t)place, bytes, NULL, NULL };
	place &= OCI_LAID_OUT_OFFSET;
	piece = &layout->pieces[piece_find(layout, place)];
	into = place - piece->at;
	return (struct copy_end){ (uint8_t *)piece->address + into, piece[1].at - piece->at - into,
				  piece + 1, layout->pieces + layout->count };
}

/* False: its list is at its end. */
static bool copy_end_move(struct copy_end *c, size_t bytes)
{
	c->at += bytes;
	c->bytes -= bytes;
	for (; !c->bytes && c->next < c->end; c->next++) {
		c->at = (uint8_t *)c->next->address;
		c->bytes = c->next[1].at - c->next->at;
	}
	return c->bytes;
}

void oci_place_copy(const struct oci_team *team, uint64_t seq, uint64_t to, uint64_t from,
		    size_t bytes)
{
	struct copy_end source = copy_end_at(team, seq, from, bytes);
	struct copy_end target = copy_end_at(team, seq, to, bytes);
	bool more = bytes && copy_end_move(&source, 0) && copy_end_move(&target, 0);

	while (more) {
		size_t length = source.bytes < target.bytes ? source.bytes : target.bytes;

		length = length < bytes ? length : bytes;
		memcpy(target.at, source.at, length);
		bytes -= length;
		more = bytes && copy_end_move(&source, length) && copy_end_move(&target, length);
	}
}

/* Reads a peer's memory: 0 or -errno. */
static int read_all(struct oci_team *team, const struct oci_transfer *how, void *to, uint64_t from,
		    size_t bytes)
{
	struct oci_transfer t = *how;
	int result;

	t.direction = OCI_PULL;
	t.local = (uintptr_t)to;
	t.remote = from;
	t.bytes = t.whole = bytes;
	t.alone = true;
	result = oci_transfer_run(team, &t, false);
	return result < 0 ? result : 0;
}

int oci_layout_fetch(struct oci_team *team, const struct oci_transfer *how, uint64_t place,
		     size_t count, struct oc_layout *layout)
{
	/* Behind the pieces is an entry that has only the total. */
	size_t bytes = (count + 1) * sizeof(struct oc_piece);
	struct oc_piece *pieces = malloc(bytes);
	int error = pieces ? read_all(team, how, pieces, place, bytes) : -ENOMEM;

	if (error) {
		free(pieces);
		return error;
	}
	*layout = (struct oc_layout){ pieces, count };
	return 0;
}

void oci_layout_free(struct oc_layout *layout)
{
	free((void *)(uintptr_t)layout->pieces);
	layout->pieces = NULL;
}

int oci_foreign_get(struct oci_team *team, struct oci_foreign *foreign, uint32_t peer, uint64_t seq,
		    uint64_t place, const struct oc_layout **layout)
{
	bool which = place & OCI_LAID_OUT_RECV;
	struct oci_transfer how = { .peer = peer };
	const struct oc_layout *listed;
	struct oci_layouts theirs;
	int error;

	if (!foreign)
		return -ENOMEM;
	if (foreign->peer != peer)
		oci_foreign_free(foreign);
	foreign->peer = peer;
	*layout = &foreign->layout[which];
	if (foreign->layout[which].pieces)
		return 0;
	/* Written before the POST flag that this rank has awaited. */
	error = read_all(team, &how, &theirs, oci_team_lane(team, peer, seq)->ack.layouts,
			 sizeof(theirs));
	if (!error && !oci_read_holds(team, peer))
		error = -ECANCELED;
	if (error)
		return error;
	listed = which ? &theirs.recv : &theirs.send;
	error = oci_layout_fetch(team, &how, (uintptr_t)listed->pieces, listed->count,
				 &foreign->layout[which]);
	if (!error && !oci_read_holds(team, peer)) {
		oci_layout_free(&foreign->layout[which]);
		error = -ECANCELED;
	}
	return error;
}

void oci_foreign_free(struct oci_foreign *foreign)
{
	oci_layout_free(&foreign->layout[0]);
	oci_layout_free(&foreign->layout[1]);
}
