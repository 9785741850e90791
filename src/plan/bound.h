/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A small plan bound to one kind of call: a few steps whose ranges, ranks and counts are numbers.
 *
 * At a few bytes most of our own time goes into evaluating symbolic operands. Programs call the
 * same again and again, so the plans whose bytes all ride beside flags are evaluated once, when the
 * call is decided. A step is one operation of the plan, in its order: src/coll/coll_bound_test.c
 * proves that for every algorithm. What cannot be bound runs as it is.
 *
 * The v-variants' sizes are those of each call: their steps read them from its tables, and their
 * bound form is for calls whose blocks on this rank are all tiny (plan.h, offers): what depends on
 * a LARGE one is no step. Which form a rank runs is its own affair: flags and payload are the same.
 */
#ifndef OC_PLAN_BOUND_H
#define OC_PLAN_BOUND_H

#include <stdlib.h>

#include "plan/plan.h"
#include "team/team.h"

struct oci_exec;

#define OCI_BOUND_STEPS 24

enum oci_bound_code {
	OCI_BOUND_END,
	OCI_BOUND_POST,	       /* the only one, as OCI_POST_FLAG */
	OCI_BOUND_WAIT_POST,   /* of one peer */
	OCI_BOUND_COPY,	       /* mine to mine */
	OCI_BOUND_TAKE,	       /* of the peer's payload to mine */
	OCI_BOUND_REDUCE,      /* to = from (op) to, both mine */
	OCI_BOUND_REDUCE_FROM, /* the same, from the peer's payload */
	OCI_BOUND_SIGNAL,
	/* Of the v-variants; a block is one of a table, or the whole of a buffer. */
	OCI_BOUND_HEAD,	       /* begins an offer: no slot, nothing LARGE */
	OCI_BOUND_OFFER,       /* my block to a cell */
	OCI_BOUND_WAIT_FILLED, /* WAIT_POST where my block has bytes */
	OCI_BOUND_TAKE_CELL,   /* of the peer's offer to my block */
	OCI_BOUND_COPY_BLOCK,  /* mine to mine */
};

/* A block of a call with tables. */
struct oci_bound_block {
	uint8_t buf;	/* enum oci_bound_buf */
	uint8_t table;	/* enum oci_table; OCI_TABLE_NONE: params.bytes from the start on */
	uint16_t index; /* in the table */
};

/* Buffers of a step. Of TAKE and REDUCE_FROM, `from` is the payload of the peer. */
enum oci_bound_buf { OCI_BOUND_SEND, OCI_BOUND_RECV, OCI_BOUND_PAYLOAD };

struct oci_bound_step {
	uint8_t code;	  /* enum oci_bound_code */
	uint8_t from, to; /* enum oci_bound_buf */
	uint16_t step;
	uint32_t peer;	 /* an absolute rank */
	uint32_t length; /* bytes, or elements of a reduction; never 0 */
	union {
		struct {
			uint32_t from_offset, to_offset;
		};
		/* Of the v-variants: `length` is where the cell begins in the payload, and `step`
		 * of TAKE_CELL is its operation's place in the plan. */
		struct {
			struct oci_bound_block block, other; /* other: of COPY_BLOCK, its target */
		};
	};
	struct oci_region *region; /* of the peer, else my own */
};

/* A block that must have at most so many bytes for the bound form to be the plan. */
struct oci_bound_limit {
	struct oci_bound_block block;
	uint32_t most;
};

struct oci_bound {
	uint32_t users;	  /* as oci_cached.users, under the same locks */
	uint32_t payload; /* bytes behind my POST flag */
	uint8_t moved;	  /* enum oci_moved */
	bool posts;
	bool needs_recv; /* accumulates there: an execution whose acc_in_recv is not set cannot */
	uint8_t limits;	 /* how many of them; only v-variants have some */
	struct oci_bound_limit limit[OCI_BOUND_STEPS];
	struct oci_bound_step step[OCI_BOUND_STEPS];
};

/*
 * The bound form of a ready execution (exec.h), with one user; NULL when it has none, or no memory
 * for it.
 */
struct oci_bound *oci_bound_create(const struct oci_exec *ready);

static inline void oci_bound_put(struct oci_bound *bound)
{
	if (bound && !--bound->users)
		free(bound);
}

/* As oci_exec_run(), of an execution with a bound form. */
int oci_bound_run(struct oci_exec *x);

/* Are the blocks of the call, whose tables are set, those that the form is for? */
bool oci_bound_fits(const struct oci_exec *x);

/*
 * bound_blocks.c, for bound.c: the steps of one operation of a v-variant, whose sizes no step may
 * have. How many; -1: it cannot be bound.
 */
int oci_bound_blocks(const struct oci_exec *ready, const struct oci_op *op, struct oci_bound *bound,
		     struct oci_bound_step *step, uint32_t room);

#endif
