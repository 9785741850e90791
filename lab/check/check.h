/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The checker: runs the plans of all ranks of a team in one process and proves them right.
 *
 * It shares no code with the user executor but the arithmetic of ranges (plan.h). It proves of a
 * sequence of collectives, each given by its p plans:
 *
 *   - no deadlock;
 *   - no access outside of SEND, RECV, WORK, SLOT, INLINE or one segment of TEMP, no handle used
 * before the POST that publishes it was awaited, no flag that does not grow or leaves its steps;
 *   - two accesses of one byte by different ranks, at least one a write, are ordered by flags or
 *     by the lanes' gate. The user is part of this: he writes SEND and RECV before his call and
 *     both again right after its end, so a rank that leaves too early is a race;
 *   - SEND is unchanged and every byte of RECV is right, those between blocks as they were;
 *   - no rank leaves a Barrier before it knows that all others are in it;
 *   - all ranks of an Allreduce associate alike, and the digest of all associations can be
 *     compared between runs;
 *   - rank 0 of an Exscan has no RECV that it could touch.
 *
 * How the proof is made stronger than one run:
 *
 *   Bytes are symbols. A byte of memory is a 64-bit value drawn from (call, rank, offset) and a
 *   64-bit hash of the tree by which it was reduced, so no wrong byte is right by chance. A
 *   reduction composes affine maps modulo 2^32 (associative, not commutative: rank order is
 *   proven) or, for commutative plans, adds modulo 2^64 (a lost or doubled contribution shows).
 *
 *   Orders are the weakest that flags give. Every rank has a vector clock. A flag carries a clock
 *   for each value it ever had, and a WAIT acquires that of the FIRST value that satisfies it,
 *   though the flag may stand further already. As flags only grow, which operations run and which
 *   clocks they see then do not depend on the schedule (SHARE apart): one run finds a race or a
 *   deadlock that any interleaving has. The schedules below confirm that by trying.
 *
 * Where plan.h leaves a choice, the checker decides:
 *   - a POST that does not grow its flag is an error, equal included;
 *   - a rank has one SHARE in a call, outside of a loop, and HELP awaits the peer's first POST,
 *     which must be the one that publishes: the claim word is one per lane and rank, and HELP has
 *     no step to await;
 *   - what a helper copied is ordered for others by the end of the SHARE, not by its HELP; the
 *     SHARE gives no other order between the two (the helper may have done nothing);
 *   - a SHARE without its HELP is an error, and a HELP without its SHARE;
 *   - source and target of a transfer are equally long; those of a COPY are the same bytes or do
 *     not overlap; those of a reduction are whole elements and do not overlap;
 *   - POST of addresses or of a slot overwrites the payload of the line.
 */
#ifndef OC_PLAN_CHECK_H
#define OC_PLAN_CHECK_H

#include "plan/plan.h"

struct oci_world;

/* One collective of a sequence, as its callers on all ranks agree on it. */
struct oci_check_call {
	enum oc_collective collective;
	bool commutative; /* of a reduction, as in the plans' key */
	/*
	 * MPI_IN_PLACE. Reduce: at the root; Allreduce, Scan: everywhere: SEND is RECV. Gather: at
	 * the root; Allgather: everywhere: SEND lies in RECV. Scatter: at the root: RECV lies in
	 * SEND. Alltoall(v): everywhere, as in the plans' key: SEND is RECV; of the sizes
	 * of each two ranks the one from the lower rank is that of both. Others have no such form:
	 * -EINVAL. (Of a Bcast SEND is always RECV. For a Reduce_scatter(_block) or an Exscan in
	 * place the caller of the plan has a second buffer.)
	 */
	bool in_place;
	uint32_t root;
	size_t bytes; /* of a block, as in plan.h; whole units; of the v-variants 0 */
	size_t unit;  /* bytes of an element of a reduction, else 1 */
	/*
	 * Of the v-variants: from_to[i * p + j] bytes go from rank i to rank j; of a Scatterv only
	 * row `root` counts, of a Gatherv column `root`, of an Allgatherv column 0. The blocks lie
	 * `gap` bytes apart; on odd ranks the last comes first.
	 */
	const size_t *from_to;
	size_t gap;
	/* Of a Reduce_scatter: where the p blocks of the input are, one after the other; `bytes`
	 * are those of all. Else NULL. */
	const struct oc_block *blocks;
};

enum oci_check_schedule {
	OCI_CHECK_ROUND_ROBIN,
	OCI_CHECK_RANDOM, /* by `seed` */
	OCI_CHECK_FIRST,  /* `favoured` runs whenever it can: it is ahead as far as the lanes allow
			   */
	OCI_CHECK_LAST,	  /* `favoured` runs only when no other can */
	/*
	 * Every interleaving of the ranks' operations (a SHARE or HELP counts as one for each
	 * chunk), up to 4 ranks: a depth-first search over the states that ranks can reach
	 * together. A state is where every rank stands and what is claimed, and is explored once:
	 * memory is a function of it, which is checked whenever a state is reached a second time.
	 */
	OCI_CHECK_EXHAUSTIVE,
};

struct oci_check {
	uint32_t size;	/* p */
	uint32_t lanes; /* L: call n uses lane n mod L */
	uint32_t count; /* of calls */
	const struct oci_check_call *calls;
	/* The plan of rank v relative to the root of call `call`; NULL fails the check. The caller
	 * keeps it alive. */
	const struct oci_plan *(*plan)(void *context, uint32_t call, uint32_t v);
	void *context;

	enum oci_check_schedule schedule;
	uint64_t seed;	   /* also of the symbols */
	uint32_t favoured; /* a rank, not relative */

	uint32_t segment_bytes; /* in place of that of plans that loop; 0: theirs */
	uint32_t slot_bytes;	/* size of the largest slot; 0: OCI_SLOT_BYTES */
	/* The largest tiny and small blocks of offers, if less than the plans'; 0: theirs. */
	uint32_t tiny_bytes, small_bytes;
	uint64_t max_states; /* of an exhaustive search; 0: 4 million */
	bool ungated; /* ranks enter a lane without waiting: to prove that lane reuse is looked at
		       */
	/*
	 * Where the checker leaves its memory for the next check, whose first use of it would be
	 * most of its time; NULL at first. The last one's goes to oci_check_forget(). May be NULL.
	 */
	struct oci_world **kept;
};

/* What a check did; all fields are written, also after a fault. */
struct oci_check_result {
	uint64_t steps;	 /* operations run */
	uint64_t states; /* of an exhaustive search, else 0 */
	uint64_t digest; /* of the associations of all reductions: alike for alike plans */
};

/*
 * Checks one sequence. 0, or with a sentence in why[0..n) that names call, rank, index and text of
 * the operation:
 *   -EPROTO  the plans are at fault
 *   -EINVAL  the description is: sizes, roots, an in_place that does not exist, a missing plan
 *   -E2BIG   an exhaustive search has more than max_states states
 *   -ENOMEM
 * result may be NULL. May be called from any thread; keeps nothing but c->kept.
 */
int oci_check_sequence(const struct oci_check *c, struct oci_check_result *result, char *why,
		       size_t n);
void oci_check_forget(struct oci_world *kept); /* may be NULL */

#endif
