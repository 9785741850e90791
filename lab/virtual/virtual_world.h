/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside of the `model` executor (virtual.h).
 *
 * A rank has a clock of its own and runs ahead of the others until it starts to move bytes that
 * others may slow down (a task), or has to wait for a flag that nobody has raised. Flags carry the
 * time of their raise, so running ahead changes nothing that others see; tasks start and end in
 * the order of time, by the queue.
 *
 *   virtual.c        create, the queue, the loop over events, the end
 *   virtual_task.c   tasks: what slows them, when they end
 *   virtual_step.c   flags and operations
 */
#ifndef OC_MODEL_VIRTUAL_WORLD_H
#define OC_MODEL_VIRTUAL_WORLD_H

#include "lab/check/walk.h"
#include "lab/virtual/virtual.h"

#define OCI_NOBODY UINT32_MAX

/* What a rank does with bytes right now. */
struct oci_virtual_task {
	bool active; /* its rate may depend on others */
	bool moving; /* through with alpha */
	/* What it shares with others, in world.shared: the process whose pages it locks, the
	 * domains whose bandwidth it uses; OCI_NOBODY: none. */
	uint32_t process, domain[2];
	double start_s;		/* when it began to move */
	double bytes_s, lock_s; /* undisturbed */
	double shared_s;	/* at least so long a byte, times the users of a domain */
	size_t bytes;
	double left;	/* of 1 */
	double whole_s; /* at the present rate */
	double since_s; /* `left` was true then */
	uint32_t at;	/* in world.moving */
};

enum oci_virtual_state {
	OCI_VIRTUAL_READY,
	OCI_VIRTUAL_WAITS,
	OCI_VIRTUAL_HELPS,
	OCI_VIRTUAL_OVER
};

/* The SHARE of a rank: chunks taken from either end. */
struct oci_virtual_claim {
	uint64_t front, back;
	double helped_s;  /* when the helper's last copy was told */
	uint32_t helping; /* copies of the helper under way */
	bool waits;	  /* the SHARE end, for the helper's last copy */
};

struct oci_virtual_rank {
	const struct oci_plan *plan;
	struct oci_params params;
	uint32_t v;
	uint32_t pc, at; /* at: peers of a wait that are through */
	uint64_t segment;
	bool row;   /* the last look was at a flag of the same operation */
	bool begun; /* the operation at pc has been charged */
	double now_s;
	enum oci_virtual_state state;
	uint32_t next_waiter;
	struct oci_virtual_task task;
	struct oci_virtual_claim claim;
	uint32_t helped; /* HELP: whose chunk is being copied */
	struct oci_events flags[OCI_FLAGS];
	uint32_t waiter[OCI_FLAGS]; /* for the next value: first of a list through next_waiter */
};

/* A process (by rank) or, behind these, a domain: how many tasks meet there. */
struct oci_virtual_shared {
	uint32_t users;
	bool changed; /* in this moment */
};

struct oci_virtual_world {
	const struct oci_virtual_call *call;
	const struct oci_model *model;
	double *gamma; /* [copiers] */
	uint32_t size, domains;
	struct oci_virtual_rank *ranks;
	struct oci_virtual_shared *shared; /* [size + domains] */
	bool changed;			   /* some of them */
	uint32_t *moving, moving_count;	   /* ranks whose tasks move */
	uint32_t *seen[OCI_FLAGS];	   /* [rank * size + peer]: values seen, a count */
	struct oc_block *blocks;	   /* of v-variants */
	/* The queue: heap of ranks by the time of their next event, and where each is in it. */
	uint32_t *heap, *heap_at, heap_count;
	double *event_s;
	uint32_t helpers; /* ranks in state HELPS */
	double now_s;
	bool failed; /* out of memory */
	struct oci_virtual_result result;
};

/* virtual.c: the event of a rank is at `at_s` from now on. */
void oci_queue_set(struct oci_virtual_world *w, uint32_t rank, double at_s);

/* virtual_task.c */
uint32_t oci_virtual_core(const struct oci_virtual_world *w, uint32_t rank);
/* A copy of bytes > 0 out of an `extent`, whose remote end is process `remote` (pages locked), from
 * the rank's clock on. It ends with an event of the rank. */
void oci_task_copy(struct oci_virtual_world *w, uint32_t rank, enum oci_model_direction direction,
		   uint32_t remote, size_t bytes, size_t extent);
/*
 * Bytes that the rank itself loads and stores, out of an `extent` that is in the cache or not:
 * there the clock alone goes on (true), else a task (false). `remote`: whose memory they come from,
 * or the rank.
 */
enum oci_touch { OCI_TOUCH_COPY, OCI_TOUCH_FILL /* of a slot */, OCI_TOUCH_REDUCE };
bool oci_task_touch(struct oci_virtual_world *w, uint32_t rank, uint32_t remote, size_t bytes,
		    size_t extent, enum oci_touch touch);
/* An event of the rank's task: true when it is over. */
bool oci_task_event(struct oci_virtual_world *w, uint32_t rank);
/* After all events of a moment: new rates where they changed. */
void oci_task_settle(struct oci_virtual_world *w);

/* virtual_step.c */
void oci_virtual_raise(struct oci_virtual_world *w, uint32_t rank, enum oci_flag flag,
		       uint64_t value);
/* Runs a rank on from its clock, until it waits, moves bytes or ends. */
void oci_virtual_go(struct oci_virtual_world *w, uint32_t rank);
/* The same when its task is over. */
void oci_virtual_go_on(struct oci_virtual_world *w, uint32_t rank);

#endif
