/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The `user` executor: runs a plan in the caller's thread, blocking or polled.
 *
 * oci_exec_run() goes on until something must be waited for and says what; oci_exec_turn() waits
 * in between. The same state serves a blocking call and an outstanding request.
 */
#ifndef OC_PLAN_EXEC_H
#define OC_PLAN_EXEC_H

#include <onecopy/onecopy.h>
#include <string.h>

#include "copy/copy.h"
#include "copy/layout.h"
#include "plan/bound.h"
#include "plan/load.h"
#include "plan/plan.h"
#include "team/team.h"

/* How bytes moved, for the statistics. */
enum oci_moved {
	OCI_MOVED_INLINE = 1,
	OCI_MOVED_SLOT = 2,
	OCI_MOVED_CMA = 4,
	OCI_MOVED_SHM = 8,
	OCI_MOVED_MAP = 16,
	OCI_MOVED_KMOD = 32,
};

/* Grouped by how they get their values, as setting them is most of what an execution costs. */
struct oci_exec {
	/* The same in all such calls, copied from a ready one. */
	struct oci_team *team;
	const struct oci_plan *plan;
	struct oci_bound *bound; /* NULL, or the plan bound to this kind of call */
	size_t unit;
	struct oci_record record;
	struct oci_params params;
	uint64_t signature; /* of the record */
	uint32_t polls;	    /* looks at a flag before a wait is reported */

	/* Zero at first. From here on private to exec*.c and bound.c but for what is marked. */
	uint32_t blocked; /* turns waited, to look for requests now and then */
	uint64_t segment;
	uint32_t pc;
	uint32_t at; /* peers of the current operation that are through */
	bool started, announced, published, in_transfer;
	bool in_share;	/* SHARE has chosen the way of its chunks */
	bool way_tried; /* how long the operation takes is to be told */
	bool is_loaded; /* `load` is there */
	bool acc_in_recv;
	bool polled;	    /* by a request: large copies pause, so that others move; set by it */
	bool unlocked;	    /* other threads may run operations of the team meanwhile; likewise */
	uint8_t moved;	    /* enum oci_moved; read by the statistics */
	uint32_t payload;   /* bytes behind my POST flag */
	uint32_t slot_room; /* bytes of my slot that were asked for */
	uint32_t slot_used; /* up to where they hold something */
	uint32_t recovered; /* transfers that shm finished for a failed mechanism; as moved */
	uint8_t *temp;
	const struct oci_layouts *layouts; /* NULL: send and recv are addresses, else places; the
					    * caller's */
	struct oci_foreign *foreign;	   /* layouts of peers; NULL: none was needed */
	const uint64_t *waited_on;	   /* by x->wait */
	struct oci_wait wait;

	/* Of each call: the caller's, then oci_exec_init()'s. */
	union {
		struct {
			uint8_t *send, *recv;
			uint8_t *inline_bytes; /* of my POST line */
		};
		uint8_t *buffer[3]; /* by enum oci_bound_buf */
	};
	const struct oc_op *op; /* of a reduction */
	uint64_t seq;
	uint64_t base; /* seq * OCI_STEPS */
	struct oci_lane *lane;

	/* Below: written before they are read, so nobody sets them. */
	int64_t slot_offset;
	uint8_t *slot, *acc, *work;
	struct oci_transfer transfer;
	struct oci_load load;
	struct {		   /* exec_way.c */
		bool slots, tries; /* of the copy that is under way */
		uint8_t index;	   /* what is tried in this operation, if way_tried */
		uint32_t gone;	   /* by enum oci_mechanism: how, ... */
		size_t bytes;	   /* ... so many, ... */
		uint64_t ns;	   /* ... in so much time in the MPI, ... */
		uint64_t last;	   /* ... up to then */
	} way;
	uint64_t share_chunk; /* that SHARE is copying; or the count it waits for */
	struct {
		uint64_t remote; /* the block there */
		size_t at, end;	 /* in the block: moved so far, and all of this end's part */
	} trade;
	struct oci_awaited awaited;
};

/*
 * Prepares executions of `plan` for one kind of call: the caller has filled team, plan, params
 * (bytes, root, size), unit and record and zeroed the rest.
 */
void oci_exec_ready(struct oci_exec *x);
/* Makes x an execution like `ready`. */
static inline void oci_exec_copy(struct oci_exec *x, const struct oci_exec *ready)
{
	/* Two short moves: compilers write them out, and not as one long one by `rep movs`. */
	memcpy(x, ready, offsetof(struct oci_exec, blocked));
	memset(&x->blocked, 0,
	       offsetof(struct oci_exec, buffer) - offsetof(struct oci_exec, blocked));
}

/*
 * Makes such a one operation number `seq`; send, recv (NULL where the rank has no such buffer) and
 * op are filled.
 */
void oci_exec_init(struct oci_exec *x, uint64_t seq);
/*
 * Runs a plan, in its bound form where it has one.
 * 1: this rank's part is over, the caller calls oci_team_finish(); 0: blocked; -errno: the team
 * has failed, or (-EMSGSIZE) this call alone. Gives back what it took when it is over.
 */
int oci_exec_run_plan(struct oci_exec *x);
static inline int oci_exec_run(struct oci_exec *x)
{
	return x->bound ? oci_bound_run(x) : oci_exec_run_plan(x);
}
/*
 * After a blocked run: serves the peers, looks now and then whether they live, and, if it may,
 * waits for one turn. 0, or -errno as above.
 */
int oci_exec_turn(struct oci_exec *x, bool may_wait);
/* Gives back what an execution took that will not be run again. */
void oci_exec_over(struct oci_exec *x);

/* exec_way.c: the way of a large copy, as the team has learned it. */
void oci_exec_way_choose(struct oci_exec *x, uint32_t peer, uint64_t remote, size_t bytes);
/* For how many looks an operation that is polled waits for the help of an owner who is away. */
uint32_t oci_exec_way_patience(const struct oci_exec *x, uint64_t remote, size_t bytes);
/* The operation is over in which a way was tried. */
void oci_exec_way_tell(struct oci_exec *x);
/* Of one that is polled: a run of it begins, or has ended. */
void oci_exec_way_begin(struct oci_exec *x);
void oci_exec_way_end(struct oci_exec *x);
/* Does the peer take a copy that both may share through slots, as far as this end can tell? What is
 * `mine` is remote to the peer. */
bool oci_exec_way_by_slots(const struct oci_exec *x, uint32_t peer, uint64_t mine, uint64_t remote,
			   size_t bytes);

/* exec_share.c: the two ends of a cooperative copy. As oci_exec_run. */
int oci_exec_share(struct oci_exec *x, const struct oci_op *op);
int oci_exec_help(struct oci_exec *x, const struct oci_op *op);

/* exec_offer.c: blocks of different sizes. As oci_exec_run. */
int oci_exec_offer(struct oci_exec *x, const struct oci_op *op);
int oci_exec_offered(struct oci_exec *x, const struct oci_op *op);
/* Where the LARGE block of `bytes` is that the peer's offer has for me. 1 or -errno. */
int oci_exec_offered_at(struct oci_exec *x, const struct oci_op *op, uint32_t peer, size_t bytes,
			uint64_t *address);

/* exec_trade.c: my part of two blocks that change places. As oci_exec_run. */
int oci_exec_trade(struct oci_exec *x, const struct oci_op *op);

/* exec_reduce.c: REDUCE and REDUCE_FROM. */
void oci_exec_reduce(struct oci_exec *x, const struct oci_op *op);
/*
 * A PULL into TEMP and the REDUCE from there, its only reader, as one: where the peer's buffer is
 * mapped here, the operation reads it in place. The bits are those of the two. 1; 0: `op` is not
 * such a PULL, or the buffer is not mapped; or -errno, the team has failed.
 */
int oci_exec_reduce_mapped(struct oci_exec *x, const struct oci_op *op, uint32_t peer,
			   uint64_t remote, size_t bytes);

/* exec_mismatch.c --------------------------------------------------------------------------------
 */

/* What two ranks called in operation seq, as the error of the team. */
int oci_exec_mismatch(struct oci_team *team, uint64_t seq, uint32_t peer);
/*
 * The peer that x awaits has posted another call. -EMSGSIZE where the two differ in the length
 * alone and nobody waits for this rank, as it reads what the root left: its call fails, and the
 * team goes on. Else the error of the team.
 */
int oci_exec_differs(struct oci_exec *x, uint32_t peer);
/* A rank has finished other operations than we: which one is it, if the lanes still tell? */
int oci_exec_stranger(struct oci_team *team);
/* Has the peer that we wait for called something else in this operation? 0 or an error. */
int oci_exec_look_for_mismatch(struct oci_exec *x);

/* Of exec.c, for the other files of the executor ----------------------------------------------- */

/* Rank of the i-th peer of an operation. */
uint32_t oci_exec_peer(const struct oci_exec *x, const struct oci_op *op, uint32_t i);
/* Range `local` of an operation, whose block is that of each peer where it says so. */
struct oci_range oci_exec_block_of(const struct oci_op *op, uint32_t peer);
/* Where the bytes of a range of a peer's slot or payload can be read in place. */
const uint8_t *oci_exec_shared(const struct oci_exec *x, uint32_t peer,
			       const struct oci_range *range, size_t *bytes);
/* Address of a range in my buffers, and its length. */
uint8_t *oci_exec_local(const struct oci_exec *x, const struct oci_range *range, size_t *bytes);
/* Is the POST flag of rank `peer` at `step`? Checks its call. 1, 0 (awaited is set) or -errno. */
int oci_exec_posted(struct oci_exec *x, uint32_t peer, uint64_t step);
/* A copy from or to the buffers of this peer met -ECANCELED: the error that its team has. */
int oci_exec_gave_up(struct oci_exec *x, uint32_t peer);
/* Nothing of a peer's in particular is waited for: the caller tries again. */
void oci_exec_await_nobody(struct oci_exec *x);
/* oci_slot_acquire() has returned `error`: 0, it is tried again; or -errno, the team has failed. */
int oci_exec_no_slot(struct oci_exec *x, int error);
/* exec_transfer.c --------------------------------------------------------------------------------
 */

/* Address of a range in the buffers that `peer` posted: 0 or -errno (the team has failed). */
int oci_exec_remote(struct oci_exec *x, uint32_t peer, const struct oci_range *range, size_t bytes,
		    uint64_t *address);
/* Where layouts of peers are kept; NULL when `place` needs none or there is no memory. */
struct oci_foreign *oci_exec_foreign(struct oci_exec *x, uint64_t place);
/* enum oci_moved of a set of mechanisms, bits by enum oci_mechanism. */
uint8_t oci_exec_moved_by(uint32_t mechanisms);
/* What the CPU copied in this operation, were such a copy its: struct oci_end. */
size_t oci_exec_by_cpu(struct oci_exec *x, uint32_t peer, size_t bytes);
/* Starts (unless it is under way) and moves x->transfer, a part of `whole`. 1, 0 or -errno. */
int oci_exec_transfer(struct oci_exec *x, uint32_t peer, enum oci_direction direction,
		      uint8_t *local, uint64_t remote, size_t bytes, size_t whole);

/* Of exec.c and bound.c -------------------------------------------------------------------------
 */

/* Waits for the lane, takes what the plan uses. 1, 0 or -errno. */
int oci_exec_start(struct oci_exec *x);

/* Writes who calls what into my lines, for the peers' check. */
static inline void oci_exec_announce(struct oci_exec *x)
{
	x->lane->ack.record = x->record;
	x->lane->post.signature = x->signature;
	x->announced = true;
}

/* memcpy, without a call for the sizes of one number; both may be the same. */
static inline void oci_copy_few(void *to, const void *from, size_t bytes)
{
	if (bytes == 4)
		memcpy(to, from, 4);
	else if (bytes == 8)
		memcpy(to, from, 8);
	else if (to != from)
		memcpy(to, from, bytes);
}

/* The same between places. */
static inline void oci_exec_copy_bytes(const struct oci_exec *x, void *to, const void *from,
				       size_t bytes)
{
	if (__builtin_expect(x->layouts != NULL, 0))
		oci_place_copy(x->team, x->seq, (uintptr_t)to, (uintptr_t)from, bytes);
	else
		oci_copy_few(to, from, bytes);
}

/* The next operation will most likely post as much as this one did: its lines, whose last readers
 * still hold them, are fetched while nobody waits for them. */
static inline void oci_exec_fetch_lines(const struct oci_exec *x, uint32_t payload)
{
	const struct oci_post_line *next = &x->team->own->lane[(x->seq + 1) % OCI_LANES].post;
	const uint8_t *end = next->inline_bytes + payload;

	for (const uint8_t *line = (const uint8_t *)next; line < end; line += OCI_LINE)
		oci_prefetch_write(line);
}

#endif
