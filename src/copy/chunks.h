/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A copy with two ends: meet in the middle.
 *
 * It is cut into chunks (oci_chunk_bytes()). One end, whose copy it is, takes them from the front,
 * the other end helps from the back, each chunk by one compare-and-swap of `claim`. So a late end
 * costs nothing, and an idle one helps. The back counts what it has copied in `helped`; the front
 * is through when all that the back took is in that count.
 *
 *   claim   low half: chunks taken from the front, high half: from the back; both write it
 *   helped  chunks that the back has copied; with OCI_HELP_FAILED: and the next one failed. It
 *           takes no more, and the word is the front's, which copies that one
 *
 * Both are 0 before the back may look at them. A claim orders nothing by itself: chunks are
 * disjoint. The helped bytes are the front's with the count.
 */
#ifndef OC_COPY_CHUNKS_H
#define OC_COPY_CHUNKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OCI_HELP_FAILED (1ull << 63)

struct oci_chunks {
	uint64_t *claim, *helped;
	size_t bytes, size; /* of the whole copy, of a chunk */
	uint64_t count;
};

/* In so many chunks, as far as oci_chunk_bytes() has it. */
struct oci_chunks oci_chunks_of(uint64_t *claim, uint64_t *helped, size_t bytes,
				unsigned int chunks);

/* Where a chunk begins, and the length of so many from there. */
static inline size_t oci_chunk_at(const struct oci_chunks *c, uint64_t index)
{
	return index * c->size;
}

static inline size_t oci_chunk_lengths(const struct oci_chunks *c, uint64_t index, uint64_t count)
{
	size_t rest = c->bytes - index * c->size;

	return rest < count * c->size ? rest : count * c->size;
}

static inline size_t oci_chunk_length(const struct oci_chunks *c, uint64_t index)
{
	return oci_chunk_lengths(c, index, 1);
}

/* ---- the front ------------------------------------------------------------------------------- */

enum oci_chunks_state {
	OCI_CHUNKS_OVER,  /* all is copied, and the back's part visible */
	OCI_CHUNKS_TAKEN, /* *index is to be copied */
	OCI_CHUNKS_WAIT,  /* until `helped` is *index, or has OCI_HELP_FAILED */
};
enum oci_chunks_state oci_chunks_take(const struct oci_chunks *c, uint64_t *index);
/* All at once that neither end has taken: how many, from *index. */
uint64_t oci_chunks_take_rest(const struct oci_chunks *c, uint64_t *index);
/* It is copied. */
void oci_chunks_taken(const struct oci_chunks *c, uint64_t index);
/* The front copies no more: the back gets no more, either. */
void oci_chunks_stop(const struct oci_chunks *c);
/* The first of the chunks that the back has copied; the copy's count when it has none. */
uint64_t oci_chunks_helped_from(const struct oci_chunks *c);

/* How many the back has copied, whose bytes are the front's. */
uint64_t oci_chunks_given(const struct oci_chunks *c);
/* The back has taken more than that. */
bool oci_chunks_are_under_way(const struct oci_chunks *c);

/* ---- the back -------------------------------------------------------------------------------- */

/* False: there is nothing to do. Else oci_chunks_helped() follows. */
bool oci_chunks_help(const struct oci_chunks *c, uint64_t *index);
void oci_chunks_helped(const struct oci_chunks *c, bool copied);

#endif
