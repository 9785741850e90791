/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Mapped memory: a peer's shared arena lies in our address space, so its buffers are copied, or
 * reduced from in place, by plain loads and stores.
 *
 * Not a mechanism that a pair agrees on: it goes before the agreed one wherever the peer's buffer
 * lies in the peer's arena. That is exact, not a guess (team/arena.h), and one rank's own business,
 * as every transfer is run by one rank.
 */
#ifndef OC_COPY_MAP_H
#define OC_COPY_MAP_H

#include "copy/copy.h"
#include "team/arena.h"

/* Publishes the arena that this process was started with or has loaded since, if it has one, and if
 * ONECOPY_MECHANISM lets peers use it. Thread safe, and cheap once it is done. */
void oci_map_publish(void);
/* By ONECOPY_MECHANISM. */
bool oci_map_is_allowed(void);

/*
 * Where `bytes` from `address` on of rank `peer` lie here, to be read; NULL: not in an arena that
 * is mapped here.
 */
uint8_t *oci_map_reach(struct oci_team *team, uint32_t peer, uint64_t address, size_t bytes);
/* Is that so of a buffer, whose address may be a place in a layout (copy/layout.h)? Of one in
 * pieces that is a guess: there is an arena, which most of them lie in. */
bool oci_map_covers(struct oci_team *team, uint32_t peer, uint64_t place, size_t bytes);

/*
 * Copies between the pieces, from the front on, until a remote one is not in the peer's arena.
 * Bytes moved; 0: not even the first. Fenced as struct oci_copy says.
 */
size_t oci_map_copy(struct oci_team *team, uint32_t peer, enum oci_direction direction,
		    const struct iovec *local, unsigned int locals, const struct iovec *remote,
		    unsigned int remotes, size_t whole);

/* The same of a mapping of somebody's; and copies of pieces for which that is not NULL, all of
 * them: the bytes. */
uint8_t *oci_map_at(struct oci_mapping *mapping, uint64_t address, size_t bytes);
size_t oci_map_move(struct oci_mapping *mapping, enum oci_direction direction,
		    const struct iovec *local, unsigned int locals, const struct iovec *remote,
		    unsigned int remotes, size_t whole);

/* Bytes that this process has copied to and from mapped memory, or read there by an operation:
 * whoever reads after oci_map_reach() counts them. */
uint64_t oci_map_moved_bytes(void);
void oci_map_count(size_t bytes);

/* Copies that went another way than by mapped memory, though we have a shared heap or the other
 * rank has: why. */
enum oci_map_miss {
	OCI_MISS_OUTSIDE, /* that buffer does not lie in its rank's heap */
	OCI_MISS_REFUSED, /* the heap cannot be mapped here */
	OCI_MISS_NO_HEAP, /* that rank has published none */
	OCI_MISSES
};
struct oci_map_misses {
	uint64_t copies, bytes;
};
/* Counts one copy of so many bytes; what is no copy (0, -errno) is not counted. */
void oci_map_missed(struct oci_team *team, uint32_t peer, ssize_t bytes);
struct oci_map_misses oci_map_misses(enum oci_map_miss why);
/* A sentence. */
const char *oci_map_miss_text(enum oci_map_miss why);

#endif
