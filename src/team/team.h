/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A team: the ranks of one communicator on one node, and what they share.
 *
 * create.c brings it up (a state machine over the bootstrap), wait.c waits in it, segment.c and
 * peer.c own the memory. A team is used by one thread at a time, except what
 * oci_team_refresh() reads and writes: oci_slot_acquire() of any thread calls it.
 */
#ifndef OC_TEAM_TEAM_H
#define OC_TEAM_TEAM_H

#include <onecopy/onecopy.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "team/lane.h"
#include "team/segment.h"
#include "topo/hierarchy.h"
#include "topo/topo.h"

/* Grows whenever something that ranks share changes its layout or meaning. */
#define OCI_ABI 21
#define OCI_SENTENCE_BYTES 512

/* Mechanisms in order of preference, unless ONECOPY_MECHANISM or the model says kmod; copy/copy.h
 * has their operations. MAP is no pair's: it goes before the pair's own for each buffer that it
 * reaches.
 */
enum oci_mechanism { OCI_MECH_CMA, OCI_MECH_KMOD, OCI_MECH_SHM, OCI_MECH_MAP, OCI_MECHANISMS };

struct oci_member {
	struct oci_peer *peer;
	struct oci_region *region;
	uint64_t tag; /* of the region when the team was created */
	pid_t pid;
	uint8_t mechanism; /* enum oci_mechanism, agreed by both ends */
	uint8_t instead;   /* the one for what that does not reach, likewise; or the same */
	bool is_told;	   /* its place says who shares its caches */
	struct oci_topo_place place;
};

enum oci_team_state {
	OCI_TEAM_START,
	OCI_TEAM_HELLO,	  /* the allgather of struct oci_hello is under way */
	OCI_TEAM_HERE,	  /* are the others here? */
	OCI_TEAM_VERDICT, /* what can they do? */
	OCI_TEAM_READY,
	OCI_TEAM_REFUSED,
};

/*
 * Tries the single-copy mechanisms on a peer, on words in its segment: bit m set when enum
 * oci_mechanism m pulled the peer's nonce and pushed it to the cell. Writes a sentence when one
 * failed that is missed.
 */
typedef uint32_t (*oci_probe_fn)(const struct oci_peer *peer, char *why, size_t why_bytes);

/* Of one operation's buffers that have gaps; peers read it: copy/layout.h. */
struct oci_layouts {
	struct oc_layout send, recv;
};

struct oci_team {
	uint32_t rank, size;
	enum oci_team_state state;
	bool oversubscribed; /* more ranks on the node than CPUs for them; alike on all ranks */
	bool single_copy;    /* no pair has to fall back to shm; alike on all ranks */
	bool kmod;	     /* and these are all by the kernel module; likewise */
	enum oci_topo_level common; /* the closest that all ranks share, as far as is known; alike
				     * on all ranks */
	bool large_slots;	    /* both ranks have one for this team; alike on both */
	unsigned int large_calls;   /* that would gain by them; alike on both */
	bool may_part; /* ranks are not bound, and the CPUs they may use are more; alike on all
			  ranks */
	bool mapped;   /* every rank has a shared heap that peers may map; alike on all ranks.
			* Whether a buffer lies in it is its owner's affair alone. */
	uint64_t model_hash; /* of what choices go by; set before the first step, must be alike */
	bool prefers_kmod;   /* by that the module is quicker than cma; likewise */
	bool check_calls;    /* ranks compare what they call */
	bool has_large_slot; /* slots.c */
	bool has_slots;	     /* slots.c: they are guaranteed */
	bool any_kmod;	     /* some pair of mine copies by kmod: what it may copy is registered */
	bool any_shm;	     /* some pair of mine copies by shm: look for its requests often; atomic
			      */
	struct oci_region *own;
	struct oci_member *member;	       /* size */
	const struct oci_hierarchy *hierarchy; /* of the members' places; NULL: flat; alike on all
						* ranks */

	struct oci_layouts layouts[OCI_LANES]; /* of the operation in that lane, if it has any */
	uint64_t next;			       /* number of the next operation */
	uint64_t done;			       /* all operations below are finished here */
	uint64_t min_done;	       /* lower bound of every rank's done; relaxed atomic */
	uint64_t finished;	       /* bit n % OCI_LANES: operation n >= done is finished here */
	uint64_t signature[OCI_LANES]; /* of the operations in `finished` */
	uint64_t history[2 * OCI_LANES]; /* as in oci_progress_block, by d % (2 * OCI_LANES) */
	uint32_t stranger;		 /* rank + 1 whose history is another; relaxed atomic */

	int error;     /* why the team is unusable, or 0 */
	bool failing;  /* a thread has begun to say why */
	int dead_rank; /* named by -EOWNERDEAD, else -1 */
	char sentence[OCI_SENTENCE_BYTES];

	uint32_t *names; /* the bootstrap's; NULL: ranks */
	struct oc_bootstrap bootstrap;
	oci_probe_fn probe;
	struct oci_creation *creation; /* buffers of the state machine; NULL when over */
	int64_t region_offset;
	struct oci_learned *learned; /* OCI_LEARNED_WORDS; NULL before the first copy that may go
				      * either way */
	struct oci_team *leaving_next;
};

/* ---- life (team.c, create.c) ---------------------------------------------------------------- */

int oci_team_init(struct oci_team *team, const struct oc_bootstrap *bootstrap, oci_probe_fn probe);
/* One look at the state machine. 1 ready, 0 under way, -errno refused. Never blocks. */
int oci_team_step(struct oci_team *team);
/*
 * Leaves. The struct lives on until all members have left: `release` is called then (at once, or
 * from a later oci_team_collect()), in whatever thread collects.
 */
void oci_team_leave(struct oci_team *team, void (*release)(struct oci_team *team));
/* In a child of fork(2): the parent's segment, mappings, slots and teams are not ours. */
void oci_team_fork_child(void);
/* Gives back what all members have left. Called by oci_team_init() too. */
void oci_team_collect(void);

/* Acquire: pairs with the release in create.c, so that who finds READY finds all that calls go by.
 */
static inline enum oci_team_state oci_team_state(const struct oci_team *team)
{
	return __atomic_load_n(&team->state, __ATOMIC_ACQUIRE);
}

/* Remembers why the team is unusable (the first reason stays), tells the peers, logs. error.
 * culprit: the rank that died, or whose calls differ from ours; -1: none in particular. */
int oci_team_fail(struct oci_team *team, int error, int culprit, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* What sentences call a rank. */
static inline uint32_t oci_team_name(const struct oci_team *team, uint32_t rank)
{
	return team->names ? team->names[rank] : rank;
}
/* Keeps a sentence without making the team unusable (a refused argument). The error. */
int oci_team_say(struct oci_team *team, int error, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* ---- operations ------------------------------------------------------------------------------ */

static inline struct oci_lane *oci_team_lane(const struct oci_team *team, uint32_t rank,
					     uint64_t seq)
{
	return &team->member[rank].region->lane[seq % OCI_LANES];
}

/* Has this member destroyed its team? */
static inline bool oci_member_has_left(const struct oci_member *member)
{
	const struct oci_progress_block *block = &member->region->progress;

	/* Acquire: all that it did before was done before. Pairs with oci_team_leave(). Another
	 * tag: the owner has already reused the region, so it had left. */
	return oci_load_acquire(&block->left) || oci_load_acquire(&block->tag) != member->tag;
}

/* Has every rank finished all operations below `below`? Reads the peers' words only when needed. */
bool oci_team_all_done(struct oci_team *team, uint64_t below);
/* Re-reads the peers' done words, and compares what they called with what we did. Any thread. */
void oci_team_refresh(struct oci_team *team);
/* Operation seq, whose call had this signature, is finished here: publishes what is complete. */
void oci_team_finish(struct oci_team *team, uint64_t seq, uint64_t signature);

/*
 * ---- whose buffers they are when a team has failed (revoke.c) -----------------------------------
 *
 * Around each write into memory of rank `peer` by operation seq, beside its own lines. False: its
 * team has failed, and nothing may be written. Then oci_team_look() says so.
 */
bool oci_write_begin(struct oci_team *team, uint64_t seq, uint32_t peer);
void oci_write_end(struct oci_team *team, uint64_t seq);
/* After reading such memory. False: it may have been another's meanwhile, likewise. */
bool oci_read_holds(const struct oci_team *team, uint32_t peer);
/*
 * Our team has failed: when this returns nobody writes to the buffers of operation seq any more.
 * Waits for the copies that are under way, of peers that live.
 */
void oci_team_revoke(struct oci_team *team, uint64_t seq);

/* ---- how the ranks lie (near.c) ----------------------------------------------------------------
 */

/* Writes the lines by whose way peers tell how far this rank is; before they know the region. */
void oci_near_offer(struct oci_region *own);
/*
 * The closest level that this rank finds all ranks to share: from their places, where these are
 * told, else by how long a line of the next rank's takes. Of what all ranks find, the widest holds.
 */
enum oci_topo_level oci_near_find(struct oci_team *team);
/* Do this rank and a peer share a cache? */
bool oci_near_peer(const struct oci_team *team, uint32_t peer);
/* Is it certain that they share none? By their places, or by the time of the lines between two
 * ranks that are alone. */
bool oci_apart_peer(const struct oci_team *team, uint32_t peer);
/* Would these ranks gain by large slots? Who shares a heap or a CPU needs none. */
static inline bool oci_near_gains_by_large(const struct oci_team *team)
{
	return team->size == 2 && oci_topo_near(team->common) && !team->mapped &&
	       !team->oversubscribed;
}

/* A blocking operation of such a team has its number that would gain by them: sets large_slots, for
 * those behind it, when both ranks know. */
void oci_near_count_large(struct oci_team *team);
/*
 * A line comes to a near rank in less: 20 ns between two threads of a core, 120 where nothing is
 * shared (docs/results/flag-distance.csv). Who is near by mistake loses more than who is
 * far by mistake, so it is nearer to the first.
 */
#define OCI_NEAR_NS 60
/* What it goes by; tests dictate it. */
struct oci_near_source {
	bool by_places;
	bool by_cpus;				   /* ranks that share CPUs or may part are far */
	uint64_t (*line_ns)(const uint64_t *word); /* in which a word of a lane's `near` comes */
};
extern struct oci_near_source oci_near_source;

/* ---- waiting (wait.c) ------------------------------------------------------------------------ */

/* The state of one wait; zero it when something has moved. */
struct oci_wait {
	uint32_t polls;
	uint32_t sleep_us;
	uint64_t next_look_ns;
};

/* What is waited for: `word` of rank `peer` is still below `target`. */
struct oci_awaited {
	uint64_t *word;
	uint32_t *waiters; /* count of sleepers on word, NULL: its writer wakes nobody */
	uint64_t target;
	uint32_t peer;
};

/*
 * One turn of a wait: pauses, yields or sleeps, drives the MPI and other operations. True now and
 * then, when milliseconds have passed: time to look for what may be wrong, with oci_team_look().
 */
bool oci_wait_turn(struct oci_team *team, struct oci_wait *wait, const struct oci_awaited *awaited);
/* A team of more ranks than CPUs is made. */
void oci_wait_crowd(void);
/*
 * One unsuccessful turn of a loop that polls for several things and drives all of them in each
 * turn: gives the CPU away, unless it `stays`, as others may ask something of it at any moment;
 * where there are more ranks than CPUs, and nothing has moved for a while, for longer than a yield.
 */
void oci_wait_polled(bool stays);
/* Is it such a time? For polled operations, which do not wait here. */
bool oci_wait_is_long(struct oci_wait *wait);
/*
 * Does the peer live, has its team failed, has it left? 0; or -EOWNERDEAD, the error that ended the
 * team at the peer, or -EPROTO: the team has failed here too.
 */
int oci_team_look(struct oci_team *team, const struct oci_awaited *awaited);
/* Has the team failed at any member? What is awaited may be so only through a chain of others, who
 * would tell each other one look after the other. 0, or the error, and it has failed here too. */
int oci_team_hear(struct oci_team *team, const struct oci_awaited *awaited);

/* Raises a flag of mine; wakes sleepers only when the team is oversubscribed. */
void oci_team_raise(const struct oci_team *team, uint64_t *flag, uint32_t *waiters, uint64_t value);

/* The hook of oc_set_progress() and the engine's own progress, driven while waiting. True:
 * operations of the engine are outstanding, which peers may wait for. */
extern int (*oci_progress_hook)(void);
extern int (*oci_engine_hook)(void);
bool oci_wait_drive(void);

#endif
