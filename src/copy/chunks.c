/* SPDX-License-Identifier: BSD-3-Clause */
#include "copy/chunks.h"

#include "base/atomic.h"
#include "base/limits.h"

struct oci_chunks oci_chunks_of(uint64_t *claim, uint64_t *helped, size_t bytes,
				unsigned int chunks)
{
	size_t size = oci_chunk_bytes(bytes, chunks);

	return (struct oci_chunks){ claim, helped, bytes, size, (bytes + size - 1) / size };
}

/* One chunk more in the caller's half of the word, of which `step` is one. *before: what it was.
 * False: none is left. */
static bool claim(const struct oci_chunks *c, uint64_t step, uint64_t *before)
{
	uint64_t seen = oci_load_relaxed(c->claim);

	do {
		if ((seen & UINT32_MAX) + (seen >> 32) >= c->count)
			return false;
	} while (!oci_compare_exchange(c->claim, &seen, seen + step));
	*before = seen;
	return true;
}

enum oci_chunks_state oci_chunks_take(const struct oci_chunks *c, uint64_t *index)
{
	uint64_t before, helped, count, taken;

	if (claim(c, 1, &before)) {
		*index = before & UINT32_MAX;
		return OCI_CHUNKS_TAKEN;
	}
	/* Acquire: the back's bytes are in place. Pairs with the release in oci_chunks_helped(). */
	helped = oci_load_acquire(c->helped);
	count = helped & ~OCI_HELP_FAILED;
	taken = oci_load_relaxed(c->claim) >> 32;
	if (count >= taken)
		return OCI_CHUNKS_OVER;
	*index = helped & OCI_HELP_FAILED ? c->count - 1 - count : taken;
	return helped & OCI_HELP_FAILED ? OCI_CHUNKS_TAKEN : OCI_CHUNKS_WAIT;
}

uint64_t oci_chunks_take_rest(const struct oci_chunks *c, uint64_t *index)
{
	uint64_t seen = oci_load_relaxed(c->claim), count;

	do {
		*index = seen & UINT32_MAX;
		count = c->count - *index - (seen >> 32);
		if (!count)
			return 0;
	} while (!oci_compare_exchange(c->claim, &seen, seen + count));
	return count;
}

void oci_chunks_taken(const struct oci_chunks *c, uint64_t index)
{
	uint64_t helped = oci_load_relaxed(c->helped);

	/* What the back took and could not copy is counted for it, which has left the word. */
	if (helped & OCI_HELP_FAILED && index >= c->count - (oci_load_relaxed(c->claim) >> 32))
		oci_store_relaxed(c->helped, helped + 1);
}

void oci_chunks_stop(const struct oci_chunks *c)
{
	uint64_t index;

	oci_chunks_take_rest(c, &index);
}

uint64_t oci_chunks_helped_from(const struct oci_chunks *c)
{
	return c->count - (oci_load_relaxed(c->helped) & ~OCI_HELP_FAILED);
}

uint64_t oci_chunks_given(const struct oci_chunks *c)
{
	/* Acquire: the back's bytes are in place. Pairs with the release in oci_chunks_helped(). */
	return oci_load_acquire(c->helped) & ~OCI_HELP_FAILED;
}

bool oci_chunks_are_under_way(const struct oci_chunks *c)
{
	uint64_t given = oci_chunks_given(c);

	/* Relaxed: a claim orders nothing. */
	return oci_load_relaxed(c->claim) >> 32 > given;
}

bool oci_chunks_help(const struct oci_chunks *c, uint64_t *index)
{
	uint64_t before;

	if (oci_load_relaxed(c->helped) & OCI_HELP_FAILED || !claim(c, 1ull << 32, &before))
		return false;
	*index = c->count - 1 - (before >> 32);
	return true;
}

void oci_chunks_helped(const struct oci_chunks *c, bool copied)
{
	uint64_t helped = oci_load_relaxed(c->helped);

	/* Release: our bytes come before the count. Pairs with the acquire in oci_chunks_take(). */
	oci_store_release(c->helped, copied ? helped + 1 : helped | OCI_HELP_FAILED);
}
