/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Buffers with gaps: an address that may be an offset into a layout.
 *
 * A PLACE is an address in some process or, with OCI_LAID_OUT, an offset into the dense bytes of
 * the send or receive buffer of an operation there, whose pieces the owner knows. Adding to a place
 * moves it on, either way, so ranges, blocks and chunks need not know which of the two they cut.
 * Only whoever touches the bytes asks: here.
 */
#ifndef OC_COPY_LAYOUT_H
#define OC_COPY_LAYOUT_H

#include <onecopy/onecopy.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "team/team.h"

#define OCI_LAID_OUT (1ull << 63) /* no user-space address has it */
#define OCI_LAID_OUT_RECV (1ull << 62)
#define OCI_LAID_OUT_OFFSET (OCI_LAID_OUT_RECV - 1)

static inline bool oci_is_laid_out(uint64_t place)
{
	return place & OCI_LAID_OUT;
}

/* Pieces that one system call takes on each side; they fit the stack. */
#define OCI_LAYOUT_CUT 128

/*
 * The pieces of the dense bytes [at, at + bytes), at most `room` of them: fewer bytes then. Returns
 * their number; 0 only where the layout ends before.
 */
unsigned int oci_layout_cut(const struct oc_layout *layout, size_t at, size_t bytes,
			    struct iovec *pieces, unsigned int room);

/* The layout of a place of mine in operation `seq`; NULL: the place is an address. */
const struct oc_layout *oci_place_layout(const struct oci_team *team, uint64_t seq, uint64_t place);
/* The pieces of a place in that layout, or of an address where it is NULL, in the same way. */
unsigned int oci_place_cut(const struct oc_layout *layout, uint64_t place, size_t bytes,
			   struct iovec *pieces, unsigned int room);

/* Copies between two places of mine that do not overlap. */
void oci_place_copy(const struct oci_team *team, uint64_t seq, uint64_t to, uint64_t from,
		    size_t bytes);

/* The bytes of a list. */
size_t oci_pieces_bytes(const struct iovec *pieces, unsigned int count);

/* A place in a list: byte `at` of the first of the pieces that are left. */
struct oci_cursor {
	const struct iovec *piece;
	unsigned int left;
	size_t at;
};

/* What is left of the piece in front; 0: of the list. */
static inline size_t oci_cursor_rest(struct oci_cursor *c)
{
	for (; c->left && c->at == c->piece->iov_len; c->at = 0) {
		c->piece++;
		c->left--;
	}
	return c->left ? c->piece->iov_len - c->at : 0;
}

static inline uint8_t *oci_cursor_byte(const struct oci_cursor *c)
{
	return (uint8_t *)c->piece->iov_base + c->at;
}

/* The pieces of the next bytes, at most *bytes, which becomes what they hold. */
unsigned int oci_cursor_cut(const struct oci_cursor *from, size_t *bytes, struct iovec *pieces,
			    unsigned int room);

/* ---- a peer's layout ------------------------------------------------------------------------- */

struct oci_transfer;

/*
 * A list of `count` pieces at a place of rank how->peer, by the ways that `how` leaves. 0 or
 * -errno. Freed by oci_layout_free(), which may be told again.
 */
int oci_layout_fetch(struct oci_team *team, const struct oci_transfer *how, uint64_t place,
		     size_t count, struct oc_layout *layout);
void oci_layout_free(struct oc_layout *layout);

/* Copies of the lists of one peer in one operation, fetched when first needed. */
struct oci_foreign {
	uint32_t peer;
	struct oc_layout layout[2]; /* SEND, RECV; pieces NULL: not fetched */
};

/*
 * The layout of a laid-out place of rank `peer`, fetched by the pair's mechanism unless it is here
 * already. 0 or -errno: then the peer must copy. `foreign` NULL: there was no memory for one.
 */
int oci_foreign_get(struct oci_team *team, struct oci_foreign *foreign, uint32_t peer, uint64_t seq,
		    uint64_t place, const struct oc_layout **layout);
void oci_foreign_free(struct oci_foreign *foreign);

#endif
