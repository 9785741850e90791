/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared arenas: memory of a process that its peers map whole, to reach the buffers in it by plain
 * loads and stores (copy/map.c, docs/adr/0011).
 *
 * A process publishes its arena in its segment, at any time, once. Base and bytes never change, so
 * an address in [base, base + bytes) of that process is byte address - base of the file for every
 * peer, for ever: nobody has to be told which buffers lie in it. What the owner gives back to the
 * system vanishes from our mapping too; touching it anew costs a page fault and no more. What
 * nobody has copied from or to yet cannot be accessed, so that mlockall(2) does not fill it.
 */
#ifndef OC_TEAM_ARENA_H
#define OC_TEAM_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct oci_peer;

/* How a peer finds an arena, and knows that it is the one. */
struct oci_arena_id {
	uint8_t nonce[16]; /* also the first bytes of the file */
	uint64_t base;	   /* address in the owner */
	uint64_t bytes;
	int32_t fd;
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
	uint8_t *at;	      /* here; the first page, struct oci_arena_front, can be read */
	bool own;
	/* What can be accessed: what lies around all that was asked for so far, from (its lower
	 * half) to (its upper one), in OCI_MAPPING_STEPs. Atomic; only ever becomes more. 0:
	 * nothing. */
	uint64_t range;
	/* Of all mappings, which teams and oci_found_get() share. */
	struct oci_mapping *next;
	unsigned int users;
	uint8_t nonce[16];
};

/* By which more of a mapping is opened: a large page. */
#define OCI_MAPPING_STEP ((uint64_t)2 << 20)

/*
 * The mapping of a peer's arena, made when first asked for. NULL: it has published none, or it
 * cannot be mapped here, which is said once at ONECOPY_LOG=info.
 */
struct oci_mapping *oci_mapping_get(struct oci_peer *peer);
/*
 * The mapping of an arena of process pid that is not ours, with one more user, until
 * oci_mapping_free(). NULL and *error: -EAGAIN, another thread is at it; else it cannot be mapped.
 */
struct oci_mapping *oci_mapping_share(pid_t pid, const struct oci_arena_id *id, int *error);
/* Bytes [offset, offset + bytes) of it are to be accessed; false: they cannot be. No lock. */
bool oci_mapping_open(struct oci_mapping *mapping, uint64_t offset, uint64_t bytes);

static inline bool oci_mapping_is_open(const struct oci_mapping *mapping, uint64_t offset,
				       uint64_t bytes)
{
	/* Acquire: pairs with the release in oci_mapping_open(). */
	uint64_t range = __atomic_load_n(&mapping->range, __ATOMIC_ACQUIRE);

	return offset >= (range & UINT32_MAX) * OCI_MAPPING_STEP &&
	       offset + bytes <= (range >> 32) * OCI_MAPPING_STEP;
}

/* It has published one, which cannot be mapped here. */
bool oci_mapping_refused(const struct oci_peer *peer);
/* With one user of it. */
void oci_mapping_free(struct oci_mapping *mapping);

/* For the statistics: arenas of other processes that were mapped so far, and the address space that
 * the present ones take. */
struct oci_mapping_counts {
	uint64_t made, bytes;
};
struct oci_mapping_counts oci_mapping_counts(void);

#endif
