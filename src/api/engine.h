/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The engine behind the public API: teams with their plans, requests and counters.
 *
 *   team.c     create, destroy, force
 *   call.c     one call: checked, resolved to buffers, chosen
 *   blocking.c run to its end
 *   request.c  outstanding operations and progress
 *   helper.c   a thread that runs them while the program computes
 *   message.c  point-to-point
 *   stats.c    what was served, what was handed back
 *   inspect.c  what the command shows
 */
#ifndef OC_API_ENGINE_H
#define OC_API_ENGINE_H

#include <onecopy/onecopy.h>
#include <pthread.h>

#include "coll/coll.h"
#include "coll/select.h"
#include "p2p/p2p.h"
#include "plan/cache.h"
#include "plan/exec.h"
#include "team/team.h"

/* Calls that were served alike. */
struct oci_count {
	uint64_t key; /* collective, algorithm, parameter and mechanisms: stats.c */
	uint64_t calls, bytes, recovered;
};

struct oci_counts {
	struct oci_count *count;
	unsigned int used, room;
};

/* What else than a call's arguments decides about it, alike on all ranks. */
enum oci_form {
	OCI_BLOCKING,
	OCI_LARGE, /* blocking, and it may put OCI_NEAR_SLOT_BYTES into a slot */
	OCI_NONBLOCKING,
};

/*
 * The last decision for a collective, as an execution ready but for its number and buffers:
 * programs call the same again and again.
 */
struct oci_recent {
	struct oci_exec ready;
	enum oci_form form;	   /* of the calls it was decided for */
	struct oci_cached *cached; /* NULL: none; counted as a user of the plan */
	/* Where such calls are counted, when their bytes moved in the ways of `moved`. */
	unsigned int count;
	uint8_t moved;
	bool counted;
	/* The last ones that the selector left to the MPI; if there were any. */
	struct {
		bool is, in_place;
		enum oci_form form;
		size_t bytes, unit;
	} left;
};

struct oc_team {
	struct oci_team team; /* first: teams that are left are released through it */
	struct oci_plan_cache cache;
	struct oci_forced forced[OC_COLLECTIVES];
	const struct oci_model *model; /* its hash is agreed at creation */
	struct oci_choices choices;    /* by the model */
	bool serves_all;	       /* what would be the MPI's, too */
	struct oci_recent
		*recent[OC_COLLECTIVES]; /* NULL before the first: most are never called */
	struct oci_counts counts;
	/* Requests of this team. Changed under engine.lock; while it is not 0, whoever uses the
	 * team holds that lock too, as its requests may be in another thread's progress. */
	unsigned int outstanding;
	struct oc_team *next, **link;
	/* Messages. Whoever uses p2p holds engine.lock while `outstanding` is not 0, as above. */
	struct oci_p2p *p2p;			    /* NULL: none was sent or received yet */
	struct oc_request *message, **message_last; /* under way, in order of start */
	struct oc_request *message_ended;	    /* whose owners do not know yet */
	bool messaging;				    /* on the engine's list of teams with such */
	struct oc_team *messaging_next;
};

/* What users hold of an operation or of a message that is under way: either begins with it. */
struct oc_request {
	bool message;
	bool left;  /* it is its owner's alone; atomic */
	int result; /* as oc_test() returns it */
	struct oc_team *team;
	struct oc_request *next, **link; /* in its list; next alone while it is spare */
};

/* An operation resolved to buffers and a plan. */
struct oci_operation {
	struct oci_exec x;
	struct oci_cached *cached;
	struct oci_layouts layouts; /* of the call, when it has any */
	/* Of a call in place whose input peers read until it is over: the result, until it may take
	 * its place in `result`. */
	void *temporary, *result;
	size_t result_bytes;
};

/* Guards the lists of teams and requests, and what a request shares with its team. */
struct oci_engine {
	pthread_mutex_t lock;
	struct oc_team *teams;
	struct oc_request *first, **last;
	struct oc_request *spare[2]; /* requests that are not in use, by `message` */
	struct oc_team *messaging;
	unsigned int pending; /* requests; also read without the lock */
	bool alone;	      /* oc_set_threads(0): no thread comes beside another, but the helper,
			       * which ends this before it begins */
	bool inside;	      /* what the lock is then: this thread is behind it */
};
extern struct oci_engine oci_engine;

static inline void oci_engine_lock(void)
{
	if (oci_engine.alone)
		oci_engine.inside = true;
	else
		pthread_mutex_lock(&oci_engine.lock);
}

/* False: another thread is behind it, or this one further up its stack. */
static inline bool oci_engine_trylock(void)
{
	if (!oci_engine.alone)
		return !pthread_mutex_trylock(&oci_engine.lock);
	if (oci_engine.inside)
		return false;
	oci_engine.inside = true;
	return true;
}

static inline void oci_engine_unlock(void)
{
	if (oci_engine.alone)
		oci_engine.inside = false;
	else
		pthread_mutex_unlock(&oci_engine.lock);
}

/* message.c */
/* Drives the messages of all teams; with the lock held. */
int oci_messages_progress(void);
/* Takes a team without messages off their list; with the lock held. */
void oci_messaging_remove(struct oc_team *team);

/* request.c, for both kinds; all with the lock held. */
/* One of so many bytes, whose rest is as it was left, or zeros; NULL: no memory. */
struct oc_request *oci_request_new(bool message, size_t bytes);
void oci_request_free(struct oc_request *request);
/* Counts it as outstanding and appends it to a list, whose end *last is; takes it off the list. */
void oci_request_add(struct oc_request *request, struct oc_request ***last);
void oci_request_unlink(struct oc_request *request, struct oc_request ***last);
/* From then on its owner may free it. */
void oci_request_leave(struct oc_request *request);

/* call.c: drives creation until it is over. */
void oci_team_await(struct oc_team *team);
/* request.c: oc_progress(), as others that wait drive it. Not 0: something is outstanding, for
 * which peers may wait. */
int oci_engine_drive(void);
/* team.c: so that children of fork() begin afresh. */
void oci_engine_watch_forks(void);
/* memory.c */
void oci_memory_fork_child(void);
/* team.c: what ONECOPY_<COLLECTIVE> says in this process. */
const struct oci_forced *oci_forced_by_environment(enum oc_collective collective);

/* call.c */
/* A call as the engine has it: places (copy/layout.h) instead of buffers that have gaps; of a
 * Reduce_scatter the bytes of the whole input, which all ranks know. In `room` where that differs.
 */
const struct oc_call *oci_call_inside(const struct oc_team *team, const struct oc_call *call,
				      struct oc_call *room);
/* Checks such a call and waits for the team. 0: the engine serves it, unless the selector says
 * otherwise; OC_HAND_BACK, counted; or -errno. */
int oci_call_enter(struct oc_team *team, const struct oc_call *call);
/* 0, OC_HAND_BACK (counted) or -errno. Takes the team's next operation number on 0. */
int oci_operation_prepare(struct oc_team *team, const struct oc_call *call, enum oci_form form,
			  struct oci_operation *operation);
/* call->op must live as long as the operation. After the last run: counts it (result 1) and gives
 * back what prepare took. */
void oci_operation_over(struct oc_team *team, struct oci_operation *operation, int result);
/* blocking.c: the two ends of a blocking call, around the run: checks, waits for the team, locks
 * where requests may run meanwhile. As the two above. */
int oci_operation_begin(struct oc_team *team, const struct oc_call *call,
			struct oci_operation *operation);
void oci_operation_end(struct oc_team *team, struct oci_operation *operation, int result);
/* Forgets the recent decisions: something that they depend on has changed. */
void oci_recent_forget(struct oc_team *team);

/* stats.c */
void oci_stats_fork_child(void);
void oci_counts_add(struct oc_team *team, const struct oci_exec *x);
/* Adds a team's counts to the process's; with engine.lock held. */
void oci_counts_merge(struct oci_counts *counts);
void oci_count_back(enum oc_collective collective, const char *reason);
/* The same with OC_LEFT_TO_MPI, in some nanoseconds. */
void oci_count_left(enum oc_collective collective);

#endif
