/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Links, and runs on them, as the executors see them.
 *
 * A lane is one direction of a link: the SENDs to a peer, or the RECVs from one. A lane belongs to
 * one run at a time, its owner: the oldest issued one that has nodes left there. Of those the
 * first, in the order of the nodes, moves next.
 *
 * Invariants of a run that is under way:
 *   waits[n] = edges into n from nodes that are not over
 *   lane_at[l] = the first node of lane l that is not over
 * A SEND or RECV can move when waits is 0, it is lane_at of its lane, and the run owns the lane.
 *
 * links->lock guards everything here but what says otherwise. Whose turn it is to drive a run goes
 * by its executor: those of `thread` the links' thread, all others the program's calls. The thread
 * gives the lock away where a call of the program's wants it (oci_links_lock), when each of its
 * runs has done a step: one CALC, and one call of the kernel for each lane.
 */
#ifndef OC_GRAPH_GRAPH_H
#define OC_GRAPH_GRAPH_H

#include "graph/packed.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>

#define OCI_GRAPH_NONE UINT32_MAX

enum oci_graph_status { OCI_GRAPH_IDLE, OCI_GRAPH_ACTIVE }; /* negative: failed, -errno */
enum oci_graph_state { OCI_GRAPH_WAITING, OCI_GRAPH_FLYING, OCI_GRAPH_OVER };

struct oci_uring;
struct oci_kmod;

struct oc_graph_run {
	/*
	 * First, as oc_graph_test() of the public header reads it, without the lock. The word is
	 * written by the program's calls alone; what was seen of it also by the links' thread, with
	 * the lock.
	 */
	struct oc_graph_watch watch;
	struct oc_graph_links *links;
	struct oc_graph_run *next; /* on links->runs, in the order of issue */
	enum oc_graph_executor executor;
	/*
	 * Written with release when the run is over, so that who reads its end with acquire,
	 * without the lock (oc_graph_test), sees the bytes and the state that the thread left.
	 */
	_Atomic int status;
	void *packed;
	size_t packed_bytes;
	struct oci_graph_view view;
	struct oc_graph_buffer *buffers;
	struct oc_op *ops;
	uint32_t buffer_count, op_count;
	uint64_t tcp_bytes; /* that its nodes send and receive over TCP */
	uint32_t left;	    /* nodes that are not over */
	uint8_t *state;	    /* [nodes] enum oci_graph_state */
	uint32_t *waits;
	uint32_t *next_of; /* [edges] the nodes behind node n: from next_begin[n] to next_begin[n +
			      1] */
	uint32_t *next_begin;
	uint32_t *lane_next; /* [nodes] the next one of its lane */
	uint32_t *ready;     /* [calcs] whose waits are 0 */
	uint32_t ready_count;
	/* Of the lanes that this graph uses. */
	uint32_t lane_count;
	uint32_t *lanes;      /* [lane_count] which they are */
	uint32_t *lane_first; /* [lane_count] */
	uint32_t *lane_at;    /* [lane_count] */
	uint64_t *lane_moved; /* [lane_count] bytes of lane_at that have moved */
	uint32_t *lane_of;    /* [nodes] index into lanes[]; NONE: a CALC */
	bool stale; /* something has changed since all that can go on was handed to the kernel */
	struct oci_uring *uring; /* made when it is first wanted */
	struct oci_kmod *kmod;	 /* likewise */
	int kmod_refused;	 /* -errno: the module does not take it */
};

struct oc_graph_links {
	pthread_mutex_t lock;
	pthread_mutex_t turn;	      /* held while one waits for `lock`: nobody overtakes */
	_Atomic unsigned int wanting; /* calls of the program's that wait for `lock` */
	uint32_t peers;
	int *sockets;			   /* [peers] -1: none */
	bool *tcp;			   /* [peers] */
	struct oc_graph_run **owner;	   /* [2 * peers] of a lane; NULL: nobody */
	struct oc_graph_run *runs, **last; /* issued and not over */
	unsigned int prepared;		   /* runs that exist */
	unsigned int driven; /* of `runs` by the program's calls; written by these alone */
	int error;	     /* 0, or why nothing goes on */
	char sentence[256];
	/* The thread, if one has been started. */
	bool has_thread, stop;
	pthread_t thread;
	int thread_wake; /* eventfd: something has begun, or can move, that the thread drives */
	int owner_wake;	 /* eventfd: the same for the program's calls */
};

static inline uint32_t oci_graph_lane(const struct oci_graph_node *node)
{
	return 2 * node->peer + (node->kind == OCI_GRAPH_SEND);
}

static inline char *oci_graph_bytes(const struct oc_graph_run *run,
				    const struct oci_graph_node *node)
{
	return (char *)run->buffers[node->buffer].base + node->offset;
}

/* build.c: the packed form in memory of the caller's. NULL: there is none. */
struct oc_graph;
void *oci_graph_pack(const struct oc_graph *graph, size_t *bytes);
/* Room for one element more than `count`; *array is a pointer to what malloc() gave. 0 or -ENOMEM.
 */
int oci_graph_grow(void *array, uint32_t count, uint32_t *room, size_t bytes);

/* links.c: takes links->lock, by a call of the program's. */
void oci_links_lock(struct oc_graph_links *links);
/* The same by the links' thread, which does not overtake such a call. */
void oci_links_relock(struct oc_graph_links *links);

/* ---- run.c: what is over, what can begin -------------------------------------------------------
 */

/* A node is over: what waits for it may begin. */
void oci_run_over(struct oc_graph_run *run, uint32_t node);
/* A CALC whose turn it is. Was there one? */
bool oci_run_calc(struct oc_graph_run *run);
/* All nodes of lanes[i] are: by an executor that does not tell of each. */
void oci_run_lane_over(struct oc_graph_run *run, uint32_t i);
/* The node of lanes[i] that can move now; NONE: none can. */
uint32_t oci_run_movable(const struct oc_graph_run *run, uint32_t i);
/* Takes a run that is over, or has failed, off the links. */
void oci_run_end(struct oc_graph_run *run, int status);
/* Nothing on these links goes on; the streams end, so that peers hear of it. Says why, once. */
void oci_links_fail(struct oc_graph_links *links, int error, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Sentence and error of a socket's -errno; 0: the peer has closed it. */
void oci_links_fail_peer(struct oc_graph_links *links, uint32_t peer, bool sending, int error);

/* ---- move.c: by this thread, without waiting ---------------------------------------------------
 */

/* Moves what can be moved of all runs that `thread` is (or is not) to drive. True: the thread has
 * stopped before that, as the program wants the lock. */
bool oci_links_move(struct oc_graph_links *links, bool thread);
/* What to poll(2) for until more can be moved, at most most of them; returns how many. */
unsigned int oci_links_wanted(struct oc_graph_links *links, bool thread, struct pollfd *wanted,
			      unsigned int most);

/* ---- thread.c ----------------------------------------------------------------------------------
 */

int oci_thread_start(struct oc_graph_links *links);
void oci_thread_stop(struct oc_graph_links *links);
/* Whoever sleeps in poll looks again. */
void oci_wake(int eventfd);
void oci_forget_wake(int eventfd);

/* ---- uring.c -----------------------------------------------------------------------------------
 */

/* A ring for the run, if it has none. 0 or -errno. */
int oci_uring_prepare(struct oc_graph_run *run);
/* Takes what the kernel has completed, and hands it what can go on. */
void oci_uring_move(struct oc_graph_run *run);
/* Sleeps until the kernel has completed something, 2 ms at most; links->lock is not held. */
void oci_uring_sleep(struct oc_graph_run *run);
/* Is there a request that the kernel has refused, and is to be asked for again? */
bool oci_uring_asks(const struct oc_graph_run *run);
/* The word that changes when something comes back of what is under way, if all that has come was
 * taken when it was *seen. */
const uint32_t *oci_uring_word(const struct oc_graph_run *run, uint32_t *seen);
/* The descriptor that can be read when something is completed; -1: nothing is under way. */
int oci_uring_descriptor(const struct oc_graph_run *run);
void oci_uring_free(struct oc_graph_run *run);

/* ---- kmod.c ------------------------------------------------------------------------------------
 */

/* The module has the graph, at its beginning; or -errno: it does not take it. */
int oci_kmod_prepare(struct oc_graph_run *run);
/* Begins it, grants lanes, takes what is over. */
void oci_kmod_move(struct oc_graph_run *run);
/* The word that is ONECOPY_STATUS_PENDING, 1, while it runs. NULL: it has not begun. */
const uint32_t *oci_kmod_word(const struct oc_graph_run *run);
void oci_kmod_free(struct oc_graph_run *run);

#endif
