/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which is quicker in a team: to copy from a peer's buffer at once, or through slots, with its
 * help?
 *
 * That is a matter of the machine: where ranks share a cache slots are up to twice as fast, where
 * they are far apart they may take three times as long, and how dear a page is to the kernel
 * differs, too. So large blocks are copied at once, as the MPIs do, but through slots where they
 * have gaps at the peer's end, as the kernel looks up each piece by itself. After some calls both
 * are tried, and the team goes on with the one that was quicker; after many copies it looks again,
 * as ranks may be moved.
 *
 * All go the same way, as one that copies by itself keeps those waiting that want its help: who has
 * measured enough first decides for all, by a byte on rank 0's card. Right bytes come by either way
 * and in any mixture, so nobody waits for it.
 */
#ifndef OC_TEAM_LEARNED_H
#define OC_TEAM_LEARNED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "onecopy/onecopy.h"

/* Smaller copies hardly differ. */
#define OCI_LEARNED_LEAST_BYTES ((size_t)16 << 10)
/*
 * Copies of one collective and of about the same length have a byte of their own, and what a rank
 * has measured of them: collectives differ in what lies in a cache, and in how many copy at once.
 */
enum { OCI_LEARNED_LENGTHS = 5, OCI_LEARNED_WORDS = 2 * OC_COLLECTIVES * OCI_LEARNED_LENGTHS };
_Static_assert(OCI_LEARNED_WORDS <= 256, "an operation keeps the number of one in a byte");

/* What such a byte may be set to before the first copy; 0: at once, but what has gaps. */
enum { OCI_LEARNED_AT_ONCE = 2, OCI_LEARNED_SLOTS = 3 };

/* From this one on a copy is more than what most caches of one core hold. */
enum { OCI_LEARNED_EMPTIES = 3 };

/* Apart between the powers of two, near which lengths are that vary from call to call. */
static inline unsigned int oci_learned_length(size_t bytes)
{
	return (bytes > (size_t)96 << 10) + (bytes > (size_t)384 << 10) +
	       (bytes > (size_t)1536 << 10) + (bytes > (size_t)6 << 20);
}

/* Of which length an index is. */
static inline unsigned int oci_learned_length_of(unsigned int index)
{
	return index % OCI_LEARNED_LENGTHS;
}

static inline unsigned int oci_learned_index(enum oc_collective collective, size_t bytes,
					     bool nonblocking)
{
	return (collective + nonblocking * OC_COLLECTIVES) * OCI_LEARNED_LENGTHS +
	       oci_learned_length(bytes);
}

/* One thread at a time; zero at first. */
struct oci_learned {
	uint32_t best[2];      /* ps a byte at once, and through slots */
	uint32_t copies;       /* since this rank has decided, if it was this one */
	uint8_t operations[2]; /* measured of each way */
	bool begun, decided;
	uint8_t word; /* the team's byte, when this was begun, or as this rank has decided */
};

/* Through slots, in operation `seq`, a copy that at the peer's end has gaps or not? */
bool oci_learned_look(const uint8_t *word, unsigned int length, uint64_t seq, bool gaps);
/* That, of one copy more. *tries: oci_learned_tell() is to be told how long the operation took. */
bool oci_learned_way(struct oci_learned *learned, uint8_t *word, unsigned int length, uint64_t seq,
		     bool gaps, bool *tries);
/* What a longer copy's byte may be set to before the first one; 0: nothing is decided yet. */
uint8_t oci_learned_advice(const struct oci_learned *learned);
/* An operation of copies of that length, which copied so many bytes in all. */
void oci_learned_tell(struct oci_learned *learned, uint8_t *word, unsigned int length, bool slot,
		      size_t bytes, uint64_t ns);

#endif
