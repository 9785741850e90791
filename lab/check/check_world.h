/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside of the checker (lab/check/check.h): the state of a team between two steps.
 *
 *   actor    a rank: which call, which operation, its vector clock
 *   place    what a rank has in a lane: user buffers, slot, POST line, flags, claim
 *   memory   a region: symbols per byte, and the accesses that later ones must be ordered after
 *
 * check_memory.c regions and the order of accesses; check_step.c operations; check_call.c the begin
 * and end of a call; check_blocks.c blocks of different sizes; check_symbol.c symbols and reference
 * results; check.c schedules, the exhaustive search and the entry.
 */
#ifndef OC_PLAN_CHECK_WORLD_H
#define OC_PLAN_CHECK_WORLD_H

#include "lab/check/check.h"
#include "lab/check/walk.h"

/* What a step returns when the rank has to wait; faults are -EPROTO, with a sentence. */
#define OCI_BLOCKED 1

/* Index of an operation in an access that is the user's: before and after the call. */
#define OCI_OP_BEGIN UINT32_MAX
#define OCI_OP_AFTER (UINT32_MAX - 1)

/* The symbol of a byte. */
struct oci_symbol {
	uint64_t value;
	uint64_t tree; /* hash of how it was associated; the value where it is no result */
};

struct oci_access {
	uint32_t begin, end;
	uint32_t rank, epoch;
	uint32_t call, op;
	uint32_t helped; /* rank + 1 of the SHARE end that this copy was made for, else 0 */
	bool write;
};

struct oci_memory {
	const char *name;
	uint32_t owner;
	bool is_private;  /* no other rank can reach it: no log */
	uint64_t garbage; /* a hash */
	size_t limit;	  /* bytes that may be accessed */
	size_t room;	  /* cells in use; those beyond are garbage yet */
	size_t capacity;
	struct oci_symbol *cells;
	struct oci_access *log;
	uint32_t logged, log_room;
};

/* A buffer of a plan: bytes [base, base + bytes) of a region; region is NULL if it is absent. */
struct oci_view {
	struct oci_memory *region;
	size_t base, bytes;
	bool no_offset; /* TEMP: offsets of ranges are dropped */
};

/* Bytes that an operation means. */
struct oci_span {
	struct oci_memory *region;
	size_t from, bytes;
};

enum oci_seen { OCI_SEEN_POST = 1, OCI_SEEN_ADDRESS = 2, OCI_SEEN_SLOT = 4 };

/* The cooperative copy whose SHARE end is this place's rank. */
struct oci_claim {
	bool shared, helped; /* which ends have come to it; whoever is first fills the rest */
	bool done;	     /* the SHARE has ended */
	uint32_t helper;
	struct oci_span source, target;
	size_t chunk;
	size_t front, back; /* bytes claimed from either end */
};

/* What an offer has in a cell, beside the bytes. */
struct oci_check_cell {
	bool large;
	struct oci_span span; /* of a LARGE block */
};

#define OCI_PLACE_REGIONS 5

struct oci_place {
	union {
		struct {
			struct oci_memory user[2]; /* SEND and RECV, or the first for both */
			struct oci_memory slot, line, work;
		};
		struct oci_memory region[OCI_PLACE_REGIONS]; /* all of these */
	};
	struct oc_block *send_blocks, *recv_blocks; /* p, of a v-variant */
	struct oci_check_cell *cells;		    /* p, of the offer */
	uint32_t cell_count;			    /* 0: nothing is offered */
	bool addresses;				    /* for GIVE */
	struct oci_view send, recv;
	struct oci_events flags[OCI_FLAGS];
	struct oci_claim claim;
	uint32_t begin_epoch; /* the rank's own, when it began this lane's call */
	/* Clock at the end of a call, by (call / lanes) % 2: the next but one waits for everybody.
	 */
	uint32_t done_clock[2];
};

struct oci_actor {
	uint32_t rank, v;
	uint32_t call; /* calls finished so far; this one is running, or the next */
	bool running;
	uint32_t pc;
	uint64_t segment;
	uint32_t cursor; /* of a wait or the gate: peers found ready, which they remain */
	const struct oci_plan *plan;
	struct oci_params params;
	uint32_t *clock; /* p */
	uint8_t *seen;	 /* p: enum oci_seen, of the running call */
	struct oci_memory temp, acc;
};

/* Of a lane's running call: what the reference says, and what the first rank had. */
struct oci_expect {
	uint32_t call; /* + 1 */
	struct oci_symbol *fold;
	size_t fold_room;
	bool tree_set;
	uint32_t tree_rank;
};

struct oci_world {
	uint32_t size, lanes; /* that there is room for: the check's ranks, at least its lanes */
	const struct oci_check *check;
	struct oci_check_result result;
	struct oci_actor *actors;
	struct oci_place *places;   /* lane * p + rank */
	struct oci_expect *expects; /* by lane */
	uint32_t *clocks;	    /* pool of clocks of p each */
	size_t clocks_used, clocks_room;
	uint32_t finished; /* actors that have ended all calls */
	uint64_t random;
	char *why;
	size_t why_bytes;
};

static inline const struct oci_check_call *oci_world_call(const struct oci_world *w, uint32_t call)
{
	return &w->check->calls[call];
}

static inline struct oci_place *oci_world_place(const struct oci_world *w, uint32_t call,
						uint32_t rank)
{
	return &w->places[(size_t)(call % w->check->lanes) * w->check->size + rank];
}

static inline const struct oci_op *oci_actor_op(const struct oci_actor *a)
{
	return &a->plan->ops[a->pc];
}

/* check_world.c */
struct oci_world *oci_world_begin(const struct oci_check *check, char *why, size_t n);
void oci_world_end(struct oci_world *w);
void oci_world_reset(struct oci_world *w); /* to before the first call */
/* Writes the sentence, prefixed with call, rank and operation of `a` if given; -EPROTO. */
int oci_world_fail(struct oci_world *w, const struct oci_actor *a, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Of all memory, for the exhaustive search. */
uint64_t oci_world_digest(const struct oci_world *w);

/* check_memory.c */
void oci_memory_init(struct oci_memory *r, const char *name, uint32_t owner, uint64_t garbage);
void oci_memory_fini(struct oci_memory *r);
/* All garbage, nothing accessed. */
void oci_memory_clear(struct oci_memory *r, uint64_t garbage);
/* All garbage; what was accessed is remembered. */
void oci_memory_garbage(struct oci_memory *r, uint64_t garbage);
/* The garbage of a byte. */
static inline uint64_t oci_memory_left(const struct oci_memory *r, size_t offset)
{
	return r->garbage + offset;
}
/* Resolves a range in the buffers of rank `owner`, as the running call of `a` means them; fails
 * if it lies outside. */
int oci_span_resolve(struct oci_world *w, const struct oci_actor *a, uint32_t owner,
		     const struct oci_range *range, struct oci_span *span);
/* Fails on a race, else remembers the access; to be called before any use of the bytes. helped:
 * see struct oci_access. */
int oci_span_access(struct oci_world *w, const struct oci_actor *a, const struct oci_span *span,
		    bool write, uint32_t helped);
/* Forgets what was copied for the SHARE end `rank`. */
void oci_span_drop_helped(const struct oci_span *span, uint32_t rank);
void oci_span_copy(const struct oci_span *target, const struct oci_span *source);
void oci_span_garbage(const struct oci_span *span, uint64_t garbage);
bool oci_span_overlap(const struct oci_span *a, const struct oci_span *b);

int oci_clock_save(struct oci_world *w, struct oci_actor *a, uint32_t *index); /* and advances */
void oci_clock_acquire(struct oci_world *w, struct oci_actor *a, uint32_t index);

/* check_symbol.c */
/* The finalizer of splitmix64 over both: neither commutative nor associative. */
static inline uint64_t oci_symbol_mix(uint64_t a, uint64_t b)
{
	uint64_t x = a * 0x9e3779b97f4a7c15u + (b ^ (b >> 31)) + 0x632be59bd9b4e019u;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}
/* Whose bytes are meant: a rank's in a call. */
static inline uint64_t oci_symbol_owner(const struct oci_world *w, uint32_t call, uint32_t rank)
{
	return oci_symbol_mix(w->check->seed + call, rank);
}
/* A byte of the owner's SEND. As an affine map it has an odd factor and can be undone: no
 * contribution is lost by chance. */
static inline uint64_t oci_symbol_user(uint64_t owner, size_t offset)
{
	return oci_symbol_mix(owner, offset) | (uint64_t)1 << 32;
}
void oci_symbol_reduce(bool commutative, const struct oci_span *in, const struct oci_span *inout);
/* Fails unless `bytes` at `at` of RECV are those from `from` on of a rank's SEND. */
int oci_symbol_block(struct oci_world *w, const struct oci_actor *a, const struct oci_view *recv,
		     size_t at, uint32_t rank, size_t from, size_t bytes);
/* Fails unless SEND and RECV of `a` are what its call should leave. */
int oci_symbol_check(struct oci_world *w, const struct oci_actor *a);

/* check_call.c */
int oci_call_begin(struct oci_world *w, struct oci_actor *a); /* OCI_BLOCKED at the gate */
int oci_call_end(struct oci_world *w, struct oci_actor *a);

/* check_step.c */
/* Runs one operation of `a`. choice: which of the peers that can be helped HELP takes, modulo
 * their number. 0, OCI_BLOCKED, or an error. */
int oci_actor_step(struct oci_world *w, struct oci_actor *a, uint32_t choice);
/* In how many ways the next step can be made, if at all: for HELP the peers that can be helped. */
uint32_t oci_actor_choices(const struct oci_world *w, const struct oci_actor *a);
/* What a rank that cannot step waits for, in words. */
void oci_actor_missing(const struct oci_world *w, const struct oci_actor *a, char *text, size_t n);
/* When all ranks have ended a call: every SHARE had its HELP and the reverse. */
int oci_share_check(struct oci_world *w, uint32_t call);

/* check_blocks.c */
/* Fills the table of what a rank sends, or receives, and says how far it reaches. */
size_t oci_blocks_place(const struct oci_world *w, const struct oci_check_call *call, uint32_t rank,
			bool sends, struct oc_block *blocks);
/* What the params of a rank say of its own block. */
size_t oci_blocks_mine(const struct oci_world *w, const struct oci_check_call *call, uint32_t rank);
/* Fails unless RECV is what a v-variant should leave. */
int oci_blocks_check(struct oci_world *w, const struct oci_actor *a, const struct oci_view *recv);

#endif
