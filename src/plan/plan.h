/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A plan: what one rank of a team does in one collective, as a packed array of operations.
 *
 * An algorithm (src/coll) builds a plan and never copies or waits; executors run it. A plan holds
 * no pointer, no size in bytes and no absolute rank: its operands are affine in the run-time
 * parameters of a call (oci_params), so that one plan serves every size and every root.
 *
 *   rank v      ranks are relative to the root: v = (rank - root) mod p, the root is v = 0.
 *               A collective without a root has root 0.
 *   block       `bytes` long: what one rank contributes or receives (the message of a Bcast).
 *   part        ceil(bytes / nparts), rounded up to the unit of the call; the last parts of a
 *               block may be shorter or empty.
 *   segment     inside a loop, a range is cut to [i * segment, (i + 1) * segment) of itself.
 *   step        1..OCI_STEPS-1, per operation and rank; a flag only grows within an operation.
 *
 * Ranks are joined by POST/WAIT_POST and SIGNAL/WAIT_ACK alone; the order of the array is the
 * order inside a rank. Rules that the checker (lab/check/check.h) proves for every algorithm:
 *   - no access outside of a buffer, no deadlock, every awaited step is raised by its rank;
 *   - two accesses of one byte by different ranks, at least one a write, are ordered by flags;
 *     the two ends of a SHARE are one writer;
 *   - a rank ends only after every access to a buffer whose ADDRESS it posted is over: what it
 *     posted inline or in its slot it need not wait for, the lane protects that.
 */
#ifndef OC_PLAN_PLAN_H
#define OC_PLAN_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <onecopy/collectives.h>

#include "base/limits.h"

enum oci_buf {
	OCI_BUF_SEND, /* the caller's send buffer */
	OCI_BUF_RECV, /* the caller's receive buffer (of a Bcast: the only one, also as SEND) */
	OCI_BUF_SLOT, /* this rank's slot in shared memory, of as many bytes as its ranges need */
	OCI_BUF_WORK, /* of so many blocks as oci_build_work() says; peers reach it as they do SEND
		       */
	OCI_BUF_TEMP, /* private, one segment: offsets of ranges are dropped */
	OCI_BUF_ACC, /* where a reduction accumulates: RECV, or a second TEMP when RECV is absent or
		      * also the source (MPI_IN_PLACE) */
	OCI_BUF_INLINE, /* the payload of this rank's POST line, OCI_INLINE_BYTES */
	OCI_BUF_COUNT
};

/* Where the blocks of a range lie: one after the other, or where a table of the call says. */
enum oci_table {
	OCI_TABLE_NONE,
	OCI_TABLE_SEND,
	OCI_TABLE_RECV,
	/* As long as blocks of the receive table, from the start of the buffer on: the result of a
	 * Reduce_scatter, whose table says where the blocks of the input are. */
	OCI_TABLE_RECV_SIZES,
};

/*
 * Bytes of a buffer. start = index(block) * bytes + min(part * part_bytes, bytes);
 * with parts > 0 the end is index(block) * bytes + min((part + parts) * part_bytes, bytes), else
 * start + blocks * bytes. index(block) = (block + root) mod p when `relative`, else block.
 * With a `table` (of this rank's call, not the peer's), start = table[index(block)].offset and the
 * range ends with table[index(block) + blocks - 1]; it has no parts. Sums wrap: a table's offsets
 * may reach any address.
 * In a loop, a range with `segmented` is cut to the current segment; one of a slot with `halves`
 * too lies at the front of the half whose turn it is, (segment mod 2) * segment, so that a slot
 * serves any number of segments: as long as they do not grow.
 */
struct oci_range {
	uint8_t buf;
	uint8_t relative : 1;
	uint8_t segmented : 1;
	uint8_t table : 2; /* enum oci_table */
	uint8_t halves : 1;
	uint32_t block;
	uint32_t blocks;
	uint32_t part;
	uint32_t parts;
};

enum oci_opcode {
	OCI_OP_END,
	/* Publish: handles of SEND, RECV and WORK when `address`, of SLOT when `slot`; payload as
	 * it is. POST flag to `step` (+ loop). At most one publication of handles per plan; later
	 * POSTs of the same plan only raise the flag. */
	OCI_OP_POST,
	OCI_OP_SIGNAL,	  /* ACK flag to `step` (+ loop) */
	OCI_OP_WAIT_POST, /* until the POST flags of peers [peer, peer + peers) reach `step` (+
			     loop) */
	OCI_OP_WAIT_ACK,  /* the same of the ACK flags */
	OCI_OP_PULL,	  /* local <- remote of peer, whose POST was awaited */
	OCI_OP_PUSH,	  /* local -> remote of peer */
	OCI_OP_SHARE,  /* as PULL (or PUSH when `push`), by both ends: the peer has a HELP with this
			* rank among its peers */
	OCI_OP_HELP,   /* the other end, for the SHAREs of peers [peer, peer + peers), in whatever
			* order they come; awaits their POSTs itself. Local to remote, or remote to
			* local when `push` (as the SHAREs have it). Ends when no chunk of any of the
			* SHAREs is left to claim and what it claimed is copied: the SHAREs may go on
			*/
	OCI_OP_COPY,   /* local -> second (both mine); nothing when they are the same bytes */
	OCI_OP_REDUCE, /* second = local (op) second */
	OCI_OP_REDUCE_FROM, /* second = remote slot or payload of peer (op) second */
	OCI_OP_OFFER,	    /* fills my offer, see below; the POST that publishes it is another */
	OCI_OP_TAKE,	    /* local <- the block that peer's offer has for me, awaited */
	OCI_OP_GIVE,	    /* local -> where peer's offer of addresses says; when LARGE */
	/* local <-> remote of peer, or, `offered`, the block that its offer has for me, which are
	 * equally long: they change places, a segment at a time through TEMP. The peer has a TRADE
	 * of the same two; of the bytes each end moves its part, oci_trade_part(). */
	OCI_OP_TRADE,
	OCI_OP_LOOP, /* for each segment of range `local`: up to the matching NEXT */
	OCI_OP_NEXT,
	OCI_OP_COUNT
};

/*
 * An offer: what a rank publishes where blocks differ in size and place, as in the v-variants. It
 * has a cell for each peer (or one for all, or for each rank). Which way a block goes follows from
 * its own size, which both ends know: a tiny one lies in its cell; a small one in the owner's slot,
 * at small_bytes * cell; a LARGE one stays where it is, and the cell holds its address and length.
 *
 * The layout is a function of the number of cells alone. The POST line's payload begins with the
 * slot's offset; then, where they fit, a bit for each cell that says LARGE, and the cells. Else
 * these lie in the slot, and no block is small.
 */
struct oci_offer {
	uint32_t cell; /* TAKE, GIVE: which */
	uint32_t cell_bytes, small_bytes;
	uint16_t first; /* byte of payload or slot where cell 0 begins */
	uint8_t in_slot;
};

/* A cell of a LARGE block. */
struct oci_offered {
	uint64_t address, bytes;
};

/* In the payload; with in_slot only the slot's offset is, and the bits begin the slot. */
struct oci_offer_head {
	uint64_t slot, large;
};

/* Can there be an offer with so many cells? 1 .. about 4000. */
bool oci_offer_fits(uint32_t cells);
/* All 0 where it does not fit. */
struct oci_offer oci_offer_layout(uint32_t cells, uint32_t cell);
/* The largest block that is not LARGE. */
static inline uint32_t oci_offer_limit(const struct oci_offer *offer)
{
	return offer->small_bytes > offer->cell_bytes ? offer->small_bytes : offer->cell_bytes;
}

static inline uint32_t oci_offer_most(uint32_t cells)
{
	struct oci_offer offer = oci_offer_layout(cells, 0);

	return oci_offer_limit(&offer);
}

/* On what size of a block an operation depends: that of `local`. */
enum oci_when {
	OCI_WHEN_ALWAYS,
	OCI_WHEN_FILLED, /* bytes > 0 */
	OCI_WHEN_SMALL,	 /* 0 < bytes <= limit */
	OCI_WHEN_LARGE,	 /* bytes > limit */
};

static inline bool oci_when_holds(enum oci_when when, size_t bytes, uint32_t limit)
{
	switch (when) {
	case OCI_WHEN_FILLED:
		return bytes;
	case OCI_WHEN_SMALL:
		return bytes && bytes <= limit;
	case OCI_WHEN_LARGE:
		return bytes > limit;
	default:
		return true;
	}
}

struct oci_op {
	uint8_t code;
	uint8_t address : 1; /* POST: publish the addresses of SEND, RECV and WORK; OFFER: LARGE
			      * ones alone are put in, for peers to GIVE */
	uint8_t slot : 1;    /* POST: publish the slot */
	uint8_t push : 1;    /* SHARE, HELP: the SHARE end holds the source */
	uint8_t by_peer : 1; /* HELP: block of `local` = rank of the helped peer (Scatter, Gather);
			      * OFFER, and WAIT_* that depend on a size: = rank of each peer */
	uint8_t when : 2;    /* enum oci_when; of WAIT_*, TAKE, TRADE */
	uint8_t offered : 1; /* TRADE: with the peer's offer */
	uint16_t step;
	uint16_t step_loop; /* added to step, times the index of the current segment */
	uint16_t jump;	    /* LOOP: index of its NEXT; NEXT: index of its LOOP */
	uint32_t peer;	    /* v of the first peer; a sequence wraps at p. OFFER: cell i is its */
	uint32_t peers;
	uint32_t limit; /* OFFER, TAKE, GIVE, TRADE, `when`: the largest block that is not LARGE */
	struct oci_range local;
	union {
		struct oci_offer offer;	 /* OFFER, TAKE, GIVE, TRADE */
		struct oci_range remote; /* PULL, PUSH, SHARE, HELP, REDUCE_FROM, TRADE: in the
					  * peer's buffers */
		struct oci_range second; /* COPY, REDUCE; REDUCE_FROM keeps its target in `local` */
	};
};

/* What a plan is for: everything a builder may look at. No size. */
struct oci_plan_key {
	uint8_t collective;  /* enum oc_collective */
	uint8_t algorithm;   /* index in the collective's list */
	uint8_t commutative; /* of the reduction operation: order may be chosen, see coll/README.md
			      */
	/* Of an Alltoall(v): SEND is RECV, on all ranks, and its table is that of RECV. What a rank
	 * gives lies where it gets what its peer gives. */
	uint8_t in_place;
	uint32_t parameter; /* k of knomial:k, throttle factor ...; 0 when it has none */
	uint32_t v;	    /* this rank, relative to the root */
	uint32_t size;	    /* p */
	/* The root where ranks matter to a rooted plan (a Reduce that does not commute, a plan by
	 * hierarchy): rank of v is then known to the builder. Else 0, and the plan serves every
	 * root.
	 */
	uint32_t root;
	/* Who sits where, if that matters to the plan: the number of a hierarchy of the process
	 * (topo/hierarchy.h), which lives as long as the team. 0: flat, or it does not. */
	uint32_t hierarchy;
};

struct oci_plan {
	struct oci_plan_key key;
	uint32_t nparts; /* part_bytes = ceil(bytes / nparts) rounded to the unit; 0: no parts */
	uint32_t segment_bytes; /* of its loops; rounded down to the unit, at least one unit */
	/* Of its loops, beyond which a step would not fit a flag: segments grow. 0: any number. The
	 * ends of a flag that is raised in loops have the same step and step_loop. */
	uint32_t most_segments;
	uint32_t count;	      /* operations, END included */
	uint32_t work_blocks; /* of WORK */
	/* Its SLOT holds so many blocks; 0: as many bytes as there are in one. */
	uint32_t slot_blocks;
	uint8_t uses_slot;
	uint8_t uses_temp;
	uint8_t uses_acc;	 /* needs memory only where RECV cannot accumulate */
	uint8_t posts_addresses; /* of SEND, RECV or WORK, or of blocks in them */
	uint8_t posts;		 /* has a POST: others announce themselves when they start */
	uint8_t uses_share;
	struct oci_op ops[];
};

/* Run-time parameters of one call on one rank. */
struct oci_params {
	size_t bytes;	   /* of a block */
	size_t part_bytes; /* from oci_params_derive */
	size_t segment_bytes;
	uint32_t root;
	uint32_t size;
	/* One for each rank; NULL where no range of the plan has this table. */
	const struct oc_block *send_blocks, *recv_blocks;
};

/* What the plan uses of a slot, with blocks of so many bytes. */
static inline size_t oci_plan_slot_bytes(const struct oci_plan *plan, size_t bytes)
{
	return plan->slot_blocks ? plan->slot_blocks * bytes : OCI_SLOT_BYTES;
}

/* Fills part_bytes and segment_bytes. unit: bytes of one element of a reduction, else 1. */
void oci_params_derive(struct oci_params *params, const struct oci_plan *plan, size_t unit);

static inline uint32_t oci_rank_of(const struct oci_params *params, uint32_t v)
{
	uint32_t rank = v + params->root;

	return rank >= params->size ? rank - params->size : rank;
}

static inline const struct oc_block *oci_table(const struct oci_range *range,
					       const struct oci_params *params)
{
	return range->table == OCI_TABLE_SEND ? params->send_blocks : params->recv_blocks;
}

/* Start and length of a range; *offset in its buffer (of TEMP it is dropped). */
static inline void oci_range_eval(const struct oci_range *range, const struct oci_params *params,
				  uint64_t segment, size_t *offset, size_t *length)
{
	uint32_t block = range->relative ? oci_rank_of(params, range->block) : range->block;
	size_t base = (size_t)block * params->bytes;
	size_t start = 0, end = (size_t)range->blocks * params->bytes;

	if (__builtin_expect(range->table, 0)) {
		const struct oc_block *first = oci_table(range, params) + block;
		const struct oc_block *last = first + range->blocks - 1;

		base = first->offset;
		end = last->offset + last->bytes - base;
		if (range->table == OCI_TABLE_RECV_SIZES)
			base = 0;
	} else if (range->parts) {
		start = (size_t)range->part * params->part_bytes;
		end = start + (size_t)range->parts * params->part_bytes;
		if (end > params->bytes)
			end = params->bytes;
		if (start > end)
			start = end;
	}
	if (range->segmented) {
		size_t from = start + segment * params->segment_bytes;

		if (from > end)
			from = end;
		if (end - from > params->segment_bytes)
			end = from + params->segment_bytes;
		start = from;
		if (range->halves) {
			*offset = (size_t)(segment & 1) * params->segment_bytes;
			*length = end - start;
			return;
		}
	}
	*offset = base + start;
	*length = end - start;
}

/* What one end of a TRADE moves: [*from, *to). Half of it, from a page's start where it is more. */
static inline void oci_trade_part(size_t bytes, bool lower_rank, size_t *from, size_t *to)
{
	size_t half = bytes / 2;

	if (half >= 4096)
		half -= half % 4096;
	*from = lower_rank ? 0 : half;
	*to = lower_rank ? half : bytes;
}

/* Segments of a range: trip count of a LOOP over it. */
uint64_t oci_range_segments(const struct oci_range *range, const struct oci_params *params);

/* ---- builder ------------------------------------------------------------------------------- */

struct oci_builder;

/*
 * A builder keeps the first error (-ENOMEM, -EINVAL for a malformed plan) until
 * oci_builder_finish() returns it, so that algorithms need not look at every call.
 */
struct oci_builder *oci_builder_create(const struct oci_plan_key *key);
/* The plan (caller frees with free()) or NULL and *error; destroys the builder. */
struct oci_plan *oci_builder_finish(struct oci_builder *b, int *error);

const struct oci_plan_key *oci_builder_key(const struct oci_builder *b);
/* There is no such plan: the algorithm cannot run with this key. */
void oci_build_refuse(struct oci_builder *b);
void oci_build_parts(struct oci_builder *b, uint32_t nparts);
void oci_build_segment(struct oci_builder *b, uint32_t bytes);
/* Before any range of WORK. On all ranks alike. */
void oci_build_work(struct oci_builder *b, uint32_t blocks);

/* Most bytes of memory of its own that an algorithm may ask for in a call (WORK): what more there
 * is to do must do without, as a rank that lacks memory ends the call for all. */
#define OCI_WORK_MOST ((size_t)16 << 20)

enum oci_post { OCI_POST_FLAG, OCI_POST_ADDRESS, OCI_POST_SLOT };
void oci_build_post(struct oci_builder *b, enum oci_post what, uint16_t step, uint16_t step_loop);
void oci_build_signal(struct oci_builder *b, uint16_t step, uint16_t step_loop);
/* peers = 0 adds nothing. A sequence of peers wraps at p. */
void oci_build_wait_post(struct oci_builder *b, uint32_t peer, uint32_t peers, uint16_t step,
			 uint16_t step_loop);
void oci_build_wait_ack(struct oci_builder *b, uint32_t peer, uint32_t peers, uint16_t step,
			uint16_t step_loop);
void oci_build_pull(struct oci_builder *b, struct oci_range local, uint32_t peer,
		    struct oci_range remote);
void oci_build_push(struct oci_builder *b, struct oci_range local, uint32_t peer,
		    struct oci_range remote);
enum oci_share { OCI_SHARE_PULL, OCI_SHARE_PUSH }; /* what the SHARE end does */
void oci_build_share(struct oci_builder *b, enum oci_share direction, struct oci_range local,
		     uint32_t peer, struct oci_range remote);
void oci_build_help(struct oci_builder *b, enum oci_share direction, struct oci_range local,
		    bool by_peer, uint32_t peer, uint32_t peers, struct oci_range remote);
void oci_build_copy(struct oci_builder *b, struct oci_range from, struct oci_range to);
void oci_build_reduce(struct oci_builder *b, struct oci_range in, struct oci_range inout);
void oci_build_reduce_from(struct oci_builder *b, uint32_t peer, struct oci_range remote,
			   struct oci_range inout);
/*
 * Offers. Rank u's cell in the offer of rank v is (u - v - 1) mod p; one cell for all is cell 0 of
 * 1.
 *
 * oci_build_offer: `block` of all peers (its number is that of the peer) or, with one cell, as it
 * is. oci_build_offer_addresses: for GIVE, of the blocks above `limit`; once the block is there it
 * can be taken from there as well.
 */
void oci_build_offer(struct oci_builder *b, struct oci_range block, uint32_t cells);
void oci_build_offer_addresses(struct oci_builder *b, struct oci_range block, uint32_t cells,
			       uint32_t limit);
/* peer's offer has `cells` cells; 1: one for all. Nothing unless `when` holds for `local`. */
void oci_build_take(struct oci_builder *b, struct oci_range local, uint32_t peer, uint32_t cells,
		    enum oci_when when);
void oci_build_give(struct oci_builder *b, struct oci_range local, uint32_t peer, uint32_t cells,
		    uint32_t limit);
/* WAIT_POST or WAIT_ACK of those peers for whom `when` holds: for `block` of the number of the
 * peer, or (by_peer false) for `block` as it is. */
void oci_build_wait_when(struct oci_builder *b, enum oci_opcode code, uint32_t peer, uint32_t peers,
			 uint16_t step, enum oci_when when, struct oci_range block, bool by_peer,
			 uint32_t limit);
/* Segments are those of oci_build_segment(). The second: nothing unless `local` is LARGE. */
void oci_build_trade(struct oci_builder *b, struct oci_range local, uint32_t peer,
		     struct oci_range remote);
void oci_build_trade_offered(struct oci_builder *b, struct oci_range local, uint32_t peer,
			     uint32_t cells, uint32_t limit);
void oci_build_loop(struct oci_builder *b, struct oci_range over);
void oci_build_next(struct oci_builder *b);

/* Ranges. Blocks are absolute ranks' unless _rel, where block 0 is the root's. */
static inline struct oci_range oci_block(enum oci_buf buf, uint32_t block)
{
	return (struct oci_range){ .buf = buf, .block = block, .blocks = 1 };
}

static inline struct oci_range oci_block_rel(enum oci_buf buf, uint32_t block)
{
	return (struct oci_range){ .buf = buf, .relative = 1, .block = block, .blocks = 1 };
}

static inline struct oci_range oci_blocks(enum oci_buf buf, uint32_t block, uint32_t blocks)
{
	return (struct oci_range){ .buf = buf, .block = block, .blocks = blocks };
}

static inline struct oci_range oci_part(enum oci_buf buf, uint32_t part, uint32_t parts)
{
	return (struct oci_range){ .buf = buf, .blocks = 1, .part = part, .parts = parts };
}

/* Blocks where a table of the call says. */
static inline struct oci_range oci_tabled(enum oci_table table, struct oci_range range)
{
	range.table = (uint8_t)table & 3;
	return range;
}

static inline struct oci_range oci_segmented(struct oci_range range)
{
	range.segmented = 1;
	return range;
}

/* The half of a slot for the current segment of a block. */
static inline struct oci_range oci_slot_half(void)
{
	return (struct oci_range){ .buf = OCI_BUF_SLOT, .segmented = 1, .halves = 1, .blocks = 1 };
}

/* ---- names --------------------------------------------------------------------------------- */

const char *oci_buf_name(enum oci_buf buf);
const char *oci_opcode_name(enum oci_opcode code);

#endif
