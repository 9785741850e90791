/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The shared memory of a team, as it lies in the segment of each of its ranks.
 *
 * A rank's region: one progress block, OCI_LANES lanes and a card. Only its owner writes it, but
 * for what is marked. All words are reached through base/atomic.h, all positions are offsets.
 *
 *   bytes of a region = 256 + OCI_LANES * 768 + about 1.3 KiB + p; of a team: p times that.
 *
 * Operation n (counted alike on all ranks) owns lane n % OCI_LANES on every rank until all ranks
 * have finished it: oci_progress_block.done of each says so. Flags hold n * OCI_STEPS + step, so
 * nothing is ever reset and a late reader of an old flag waits on, never passes.
 */
#ifndef OC_TEAM_LANE_H
#define OC_TEAM_LANE_H

#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/limits.h"
#include "team/learned.h"
#include "topo/topo.h"

#define OCI_LANES 8
#define OCI_LINE 64

struct oci_post_line {
	uint64_t flag;
	uint64_t signature; /* of the call: differs => the ranks disagree */
	union {
		uint8_t inline_bytes[OCI_INLINE_BYTES];
		/* By enum oci_buf, SEND, RECV, SLOT and WORK: where the owner has them, or the
		 * offset of the slot in its segment. They share the line of the flag. */
		uint64_t address[4];
	};
} __attribute__((aligned(128)));

/* A call in full, for the sentence on a mismatch; written before the flag that it explains. */
struct oci_record {
	uint32_t collective;
	uint32_t algorithm;
	uint32_t parameter;
	uint32_t root;
	uint64_t bytes; /* UINT64_MAX for a v-variant */
	uint32_t op;
	uint16_t unit;
	uint16_t in_place; /* of an Alltoall(v) */
};

struct oci_ack_line {
	uint64_t flag;
	/* "Please copy for me" (copy/shm.c): number of the request, then its terms. */
	uint64_t request;
	uint64_t request_address;
	uint64_t request_bytes;
	uint64_t request_slot;	/* offset of my slot, the bounce buffer */
	uint64_t request_turns; /* halves that I filled (push) or emptied (pull) */
	uint64_t request_whom;	/* the peer, and which way: copy/shm.c */
	uint64_t near;		/* CPU + 1 on which it was written: team/near.c */
	struct oci_record record;
	uint32_t post_waiters; /* processes asleep on post.flag; written by peers */
	uint32_t ack_waiters;  /* and on ack.flag */
	uint64_t layouts; /* address of the owner's struct oci_layouts, when a handle needs it */
	uint64_t writing; /* rank + 1 of whose buffer I write to, 0 nobody's: team/revoke.c */
	uint64_t looks;	  /* at a nonblocking operation: they go on while the owner is in the MPI */
} __attribute__((aligned(128)));

/* Words that others write: the two ends of a shared copy, and the helper of a request. */
struct oci_aux_line {
	uint64_t claim, helped; /* of a SHARE: copy/chunks.h */
	uint8_t pad0[48];
	uint64_t
		served; /* turns done by the peer that a request names; copy/shm.c: both write it */
	uint8_t pad1[56];
} __attribute__((aligned(128)));

struct oci_lane {
	struct oci_post_line post;
	struct oci_ack_line ack;
	struct oci_aux_line aux;
};

#define OCI_HISTORY 4
/* Copies of all ranks, or those of ranks that share a cache with the owner alone. */
enum { OCI_STREAMS_ALL = 1, OCI_STREAMS_NEAR = 2 };

struct oci_progress_block {
	uint64_t tag;  /* of this use of the region: another tag means that the owner has left */
	uint64_t done; /* every operation below this number is finished here */
	uint64_t left; /* the owner has destroyed its team */
	uint64_t unused;
	/* history[d % OCI_HISTORY]: hash over the signatures of all operations below d, for the
	 * last values that `done` had. In the line of `done`, so comparing costs no transfer. */
	uint64_t history[OCI_HISTORY];
	/* Of messages (p2p/channel.h): where the owner's table of channels lies, 0 none; and how
	 * many channels to the owner its peers have opened, which they count. */
	uint64_t p2p_directory;
	/* 0, or the error that ended the team here: see oci_poison. Peers look at it after each
	 * copy from or to the owner's buffers: not in the line of `done`, which every operation
	 * writes. */
	uint64_t poison;
	/* OCI_STREAMS_...: the owner's receives are so many bytes at once that who copies to them
	 * goes past the caches; beside what is looked at then anyway. */
	uint64_t p2p_streams;
	uint8_t pad0[40];
	uint64_t p2p_opened;
	uint8_t pad1[56];
};

#define OCI_CPU_WORDS 128 /* 8192 CPUs, the largest that Linux can be built for (x86, arm64) */

/* What has been said on a card. */
enum oci_said {
	OCI_SAID_NOTHING,
	OCI_SAID_HERE,	  /* who the owner is; it has mapped the others and may be probed */
	OCI_SAID_VERDICT, /* what the owner can do to each, too */
	OCI_SAID_NO,	  /* the team is refused */
};

/* Why a team is refused. */
enum oci_no {
	OCI_NO_PART,	/* a rank cannot take part: error */
	OCI_NO_OPTIONS, /* it has other options than rank 0 */
	OCI_NO_MODEL,	/* or another cost model */
	OCI_NO_DIED,	/* a rank has died: the team is there, and its calls return that error */
};

/*
 * What a rank tells the others while the team is created (team/create.c): each reads the cards of
 * all.
 */
struct oci_card {
	uint64_t said;	  /* enum oci_said */
	uint32_t no;	  /* enum oci_no: what the owner knows of it, by itself or from others */
	uint32_t culprit; /* the rank that it is about */
	int32_t error;	  /* -errno */
	uint32_t reaches; /* bits of the mechanisms by which the owner reaches every other rank */
	uint64_t options, model; /* hashes of what must be alike */
	struct oci_topo_place place;
	double cgroup_cpus;
	uint32_t node_ranks;  /* as the front end of this rank counts them */
	uint32_t cpus_online; /* 0: not asked for, as the node has no other ranks */
	uint32_t has_arena;   /* peers may map the shared heap of this rank */
	uint32_t is_told;     /* the place says who shares caches */
	uint32_t common;      /* enum oci_topo_level, with the verdict: team/near.c */
	uint32_t has_large;   /* a large slot, some operations later: oci_near_count_large() */
	uint64_t cpus[OCI_CPU_WORDS];
	/* Of rank 0: how all ranks copy (team/learned.h); who has measured it writes it. */
	uint8_t ways[OCI_LEARNED_WORDS] __attribute__((aligned(OCI_LINE)));
};

/* Behind it lies a byte for each rank: oci_region_can(). */
struct oci_region {
	struct oci_progress_block progress;
	struct oci_lane lane[OCI_LANES];
	struct oci_card card;
} __attribute__((aligned(128)));

_Static_assert(sizeof(struct oci_post_line) == 512, "a POST line is eight cache lines");
_Static_assert(sizeof(struct oci_ack_line) == 128, "an ACK line is two cache lines");
_Static_assert(sizeof(struct oci_aux_line) == 128, "an auxiliary line is two cache lines");
_Static_assert(offsetof(struct oci_progress_block, p2p_directory) == OCI_LINE, "one line");
_Static_assert(offsetof(struct oci_progress_block, p2p_opened) == 2 * OCI_LINE, "its own");
_Static_assert(offsetof(struct oci_region, card) == 256 + OCI_LANES * 768, "as documented");
_Static_assert(sizeof(struct oci_region) < 8192 - 256, "two pages, in a team of 128 ranks");
/* The count of waiters and the call's record must not share the line of the flag. */
_Static_assert(offsetof(struct oci_ack_line, record) == OCI_LINE, "second line");

static inline size_t oci_region_bytes(uint32_t ranks)
{
	return sizeof(struct oci_region) + ranks;
}

/* What the owner can do to each rank: bits by enum oci_mechanism. */
static inline uint8_t *oci_region_can(struct oci_region *region)
{
	return (uint8_t *)(region + 1);
}

/* An error that all survivors report alike: -error in the low half, rank + 1 in the high half. */
static inline uint64_t oci_poison(int error, uint32_t rank)
{
	return (uint64_t)(rank + 1) << 32 | (uint32_t)-error;
}

static inline int oci_poison_error(uint64_t poison)
{
	return -(int)(uint32_t)poison;
}

static inline uint32_t oci_poison_rank(uint64_t poison)
{
	return (uint32_t)(poison >> 32) - 1;
}

#endif
