/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A small plan compiled for one kind of call: a few steps whose ranks, places and lengths are
 * numbers.
 *
 * At a few bytes most of our own time goes into evaluating symbolic operands. Programs call the
 * same again and again, so the plans whose bytes all ride beside flags are compiled once, when the
 * call is decided. Each operation becomes steps, in the order of the plan:
 * src/coll/coll_bound_test.c proves that for every algorithm. What cannot be compiled runs as it
 * is.
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
	OCI_BOUND_POST, /* the only one, as OCI_POST_FLAG */
	OCI_BOUND_SIGNAL,
	OCI_BOUND_WAIT,	       /* until the POST of a peer is up */
	OCI_BOUND_MOVE,	       /* to = from, `length` bytes, both mine */
	OCI_BOUND_TAKE,	       /* the same, from the peer's payload */
	OCI_BOUND_REDUCE,      /* to = from (op) to, `length` elements, both mine */
	OCI_BOUND_REDUCE_FROM, /* the same, from the peer's payload */
	/* Of the v-variants: */
	OCI_BOUND_HEAD,	      /* begins an offer: no slot, nothing LARGE */
	OCI_BOUND_WAIT_BLOCK, /* WAIT, where the block `to` has bytes */
	OCI_BOUND_MOVE_BLOCK, /* MOVE; `from` or `to` or both are blocks, whose length it is. Out of
			       * a peer's offer, `length` is the cell and `step` the place of the
			       * operation in the plan. */
};

/* PAYLOAD is my own, but of what is taken from a peer. */
enum oci_bound_buf { OCI_BOUND_SEND, OCI_BOUND_RECV, OCI_BOUND_PAYLOAD };

/* Where bytes lie. */
struct oci_bound_place {
	uint8_t buf;   /* enum oci_bound_buf */
	uint8_t table; /* enum oci_table, of a v-variant's block; NONE: params.bytes from the start
			* on */
	uint32_t at;   /* with a table the index of the block there, else an offset */
};

struct oci_bound_step {
	uint8_t code; /* enum oci_bound_code */
	uint16_t step;
	uint32_t length;
	uint32_t peer; /* an absolute rank */
	struct oci_bound_place from, to;
	struct oci_region *region; /* of the peer, else my own */
};

/* A block that must have at most so many bytes for the bound form to be the plan. */
struct oci_bound_limit {
	struct oci_bound_place block;
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
 * Compiles the plan of a ready execution (exec.h): the bound form, with one user; NULL when it has
 * none, or no memory for it.
 */
struct oci_bound *oci_bound_create(const struct oci_exec *ready);

static inline void oci_bound_put(struct oci_bound *bound)
{
	if (bound && !--bound->users)
		free(bound);
}

/* Are the blocks of the call, whose tables are set, those that the form is for? */
bool oci_bound_fits(const struct oci_exec *x);

/* Runs the bound form of an execution: as oci_exec_run(). */
int oci_bound_run(struct oci_exec *x);

#endif
