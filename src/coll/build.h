/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of algorithms include: lists, costs, and what several builders have in common. */
#ifndef OC_COLL_BUILD_H
#define OC_COLL_BUILD_H

#include "coll/cost.h"
#include "coll/list.h"

/* Piece of a message that is copied into a slot while the previous one is copied out: small enough
 * to stay in a level-1 cache of 32 KiB with its destination. */
#define OCI_PIPELINE_BYTES 16384
/* Of those in which one end fills what the other one empties, so that there is more to overlap. */
#define OCI_PIPELINE_ROOT_BYTES 8192
/* Piece that a reduction pulls and combines while it is in the level-2 cache. */
#define OCI_REDUCE_BYTES 262144
/* Piece that changes places with one of a peer's: likewise. */
#define OCI_TRADE_BYTES 262144
/* The parameter of what is pipelined by hierarchy, in bytes: from a page to more than any message
 * that gains by it (paper 000 tried 4 KiB to 2 MiB, and found this default best up to 2 MiB). */
#define OCI_SEGMENT_DEFAULT 16384
#define OCI_SEGMENT_MIN 4096
#define OCI_SEGMENT_MAX 16777216
/* Piece that is handed on along a chain of ranks: the next one waits for all of it. */
#define OCI_CHAIN_BYTES 65536

static inline uint32_t oci_next(const struct oci_plan_key *key, uint32_t i)
{
	return (key->v + i) % key->size;
}

static inline uint32_t oci_previous(const struct oci_plan_key *key, uint32_t i)
{
	return (key->v + key->size - i) % key->size;
}

/* Whom a rank sends to and gets from in step 1 .. p - 1 of a pairwise exchange: one and the same
 * where p is a power of two. */
static inline uint32_t oci_pairwise_target(const struct oci_plan_key *key, uint32_t i)
{
	return key->size & (key->size - 1) ? oci_next(key, i) : key->v ^ i;
}

static inline uint32_t oci_pairwise_source(const struct oci_plan_key *key, uint32_t i)
{
	return key->size & (key->size - 1) ? oci_previous(key, i) : key->v ^ i;
}

/* The same of an Alltoall in place, where both have to be one: step 0 .. p - 1, in one of which, or
 * in two, it is the rank itself, which then has nothing to do. */
static inline uint32_t oci_pairwise_partner(const struct oci_plan_key *key, uint32_t i)
{
	return key->size & (key->size - 1) ? (i + key->size - key->v) % key->size : key->v ^ i;
}

static inline void oci_build_wait_others_ack(struct oci_builder *b, uint16_t step)
{
	const struct oci_plan_key *key = oci_builder_key(b);

	oci_build_wait_ack(b, oci_next(key, 1), key->size - 1, step, 0);
}

static inline void oci_build_wait_others_post(struct oci_builder *b, uint16_t step)
{
	const struct oci_plan_key *key = oci_builder_key(b);

	oci_build_wait_post(b, oci_next(key, 1), key->size - 1, step, 0);
}

/* Do `blocks` blocks fit a payload, a slot? */
static inline bool oci_fits_inline(size_t blocks, const struct oci_shape *shape)
{
	return shape->bytes <= OCI_INLINE_BYTES / blocks;
}

/* One block of a blocking call of two near ranks may have a larger slot. */
static inline bool oci_fits_slot(size_t blocks, const struct oci_shape *shape)
{
	if (blocks == 1 && shape->large_slots)
		return shape->bytes <= OCI_NEAR_SLOT_BYTES;
	return shape->bytes <= OCI_SLOT_BYTES / blocks;
}

/* Do `blocks` blocks fit what a plan may have as memory of its own? */
static inline bool oci_fits_work(size_t blocks, const struct oci_shape *shape)
{
	return shape->bytes <= OCI_WORK_MOST / blocks;
}

bool oci_fits_work_one(const struct oci_shape *shape, uint32_t parameter);
/* The same for one block, and for one block for each other rank. */
bool oci_fits_inline_one(const struct oci_shape *shape, uint32_t parameter);
bool oci_fits_inline_others(const struct oci_shape *shape, uint32_t parameter);
bool oci_fits_slot_one(const struct oci_shape *shape, uint32_t parameter);
bool oci_fits_slot_others(const struct oci_shape *shape, uint32_t parameter);

/* Do steps of j lead through all of p ranks? */
bool oci_is_ring(uint32_t p, uint32_t j);
#define OCI_NEEDS_RING "a parameter that has no divisor in common with the number of ranks"

/* Is there a step of a flag for each other rank? */
bool oci_fits_step_each(const struct oci_shape *shape, uint32_t parameter);

/* Does an offer with a cell for each other rank? */
bool oci_fits_offer_others(const struct oci_shape *shape, uint32_t parameter);

/*
 * Stages: where bytes wait for their readers. `inline` puts them beside the flag, `cico` in the
 * slot, piece by piece; the plan is the same. An algorithm with a `piece` is of the second kind.
 */
static inline struct oci_range oci_by_piece(const struct oci_builder *b, struct oci_range range)
{
	return oci_building(b)->piece ? oci_segmented(range) : range;
}

/* The place in my stage, or a peer's. */
static inline struct oci_range oci_stage(const struct oci_builder *b)
{
	bool slot = oci_building(b)->piece;

	return oci_by_piece(b, oci_block(slot ? OCI_BUF_SLOT : OCI_BUF_INLINE, 0));
}

/* What lies between these two is done for each piece of `over`. */
void oci_stage_begin(struct oci_builder *b, struct oci_range over);
void oci_stage_end(struct oci_builder *b);
/* My piece is there; that of a peer is awaited. */
void oci_stage_post(struct oci_builder *b);
void oci_stage_wait(struct oci_builder *b, uint32_t peer);

/*
 * Accumulates the operands into `acc`: mine from `mine`, a peer's either in place from its slot or
 * payload (`shared`: remote.buf is SLOT or INLINE), or pulled into TEMP first. Waits for the POST
 * of each peer at `step` (+ step_loop).
 *
 * The operands are combined from the right: each step is one apply(in = next operand, inout = the
 * result so far). Their order is that of the absolute ranks, unless `rotated` and the operation
 * commutes: then mine comes first in the expression, so last to be applied and never copied, and
 * the others from rank v + 1 on, so that the ranks pull from different peers. Only where one rank
 * alone computes these bytes of the result: else the ranks would associate differently.
 */
struct oci_reduction {
	struct oci_range mine, remote, acc, temp;
	uint16_t step, step_loop;
	bool rotated;
	/* A peer's POST for me is at the step that I am behind it in the ring: step counts for
	 * none. */
	bool step_by_distance;
};
void oci_build_reduction(struct oci_builder *b, const struct oci_reduction *r);

/* That of whole messages in stages, into ACC; begins the plan. */
struct oci_reduction oci_staged_reduction(struct oci_builder *b);

/* A plan of messages in slots: rank v combines part v of all of them. Who `gives` leaves it in its
 * own slot, from where who `takes` the result has the parts. */
void oci_build_slot_parts(struct oci_builder *b, bool gives, bool takes);

/* The same of ranks 0 .. operands - 1 alone, always in that order. */
void oci_build_prefix(struct oci_builder *b, const struct oci_reduction *r, uint32_t operands);

#endif
