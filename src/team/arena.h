/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared arenas: memory of a process that its peers map whole, to reach the buffers in it by plain
 * loads and stores (copy/map.c, docs/adr/0011).
 *
 * A process publishes its arena in its segment, at any time, once. Base and bytes never change, so
 * an address in [base, base + bytes) of that process is byte address - base of the file for every
 * peer, for ever: nobody has to be told which buffers lie in it. What the owner gives back to the
 * system vanishes from our mapping too; touching it anew costs a page fault and no more.
 */
#ifndef OC_TEAM_ARENA_H
#define OC_TEAM_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct oci_peer;

/* How a peer finds an arena, and knows that it is the one. */
struct oci_arena_id {
	uint8_t nonce[16]; /* also the first bytes of the file */
	uint64_t base;	   /* address in the owner */
	uint64_t bytes;
	int32_t fd;
	uint32_t reserved;
};

/* Tells the peers of our arena, those of later teams and those of teams that are there. Thread
 * safe; what is told first stays. */
void oci_arena_publish(const struct oci_arena_id *id);
/* Is there one? */
bool oci_arena_published(void);
/* What was told, or NULL. */
const struct oci_arena_id *oci_arena_self_id(void);
/* Does this address of ours lie in our arena? */
bool oci_arena_holds(uint64_t address);
/* In a child of fork(2): the parent's arena is not ours. */
void oci_arena_fork_child(void);

/* A peer's arena, mapped here. Our own process's is where it is anyway. */
struct oci_mapping {
	uint64_t base, bytes; /* in the owner */
	uint8_t *at;	      /* here */
	bool own;
};

/*
 * The mapping of a peer's arena, made when first asked for. NULL: it has published none, or it
 * cannot be mapped here, which is said once at ONECOPY_LOG=info.
 */
struct oci_mapping *oci_mapping_get(struct oci_peer *peer);
/* It has published one, which cannot be mapped here. */
bool oci_mapping_refused(const struct oci_peer *peer);
/* With the last user of the peer. */
void oci_mapping_free(struct oci_mapping *mapping);

/* For the statistics: arenas of other processes that were mapped so far, and the address space that
 * the present ones take. */
struct oci_mapping_counts {
	uint64_t made, bytes;
};
struct oci_mapping_counts oci_mapping_counts(void);

#endif
