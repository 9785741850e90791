/* SPDX-License-Identifier: BSD-3-Clause */
/* Between uring.c, which has the ring, and chains.c, which fills it. */
#ifndef OC_GRAPH_URING_H
#define OC_GRAPH_URING_H

#include "graph/graph.h"

#include <liburing.h>

/*
 * Requests that are under way at a time. A graph of more (a thousand segments that are handed to
 * two children) is handed over in parts, later ones in the program's calls.
 */
enum { OCI_URING_MOST = 8192 };
/* Of one request: what the kernel takes at most, rounded down. Less in a test. */
extern uint64_t oci_uring_bytes;

/* user_data: a node, or one of these. */
#define OCI_URING_TOKEN ((uint64_t)1 << 32)
#define OCI_URING_CANCEL ((uint64_t)2 << 32)
#define OCI_URING_TICK ((uint64_t)3 << 32)
#define OCI_URING_NOTHING ((uint64_t)4 << 32)

/* `after` begins behind `before`, which is in another chain: by a token of a pipe. */
struct oci_token {
	uint32_t before, after, pipe, next; /* next: of the same `before` */
};

/* The tokens from one chain to another go through one pipe, in the order of both. */
struct oci_pair {
	uint32_t from, to, pipe, awaited; /* place in `from` that `to` has waited for last */
};

/* What is handed over at once. */
struct oci_chains {
	uint32_t *chain;    /* [nodes] NONE: the node is not among these */
	uint32_t *place;    /* [nodes] in its chain */
	uint32_t *behind;   /* [nodes] the next one in its chain */
	uint32_t *token_of; /* [nodes] the first token that is written behind it */
	uint32_t
		*tokens_begin; /* [nodes] the first token that is read before it, if there is one */
	uint32_t *lane_back;   /* [nodes] the one before it in its lane; for ever */
	uint32_t *first, *last;	  /* [chain_count] */
	struct oci_token *tokens; /* by `after` */
	struct oci_pair *pairs;
	int (*pipes)[2];
	struct io_uring_sqe **put; /* [entries] what was handed over last */
	uint32_t put_count;
	uint32_t chain_count, token_count, token_room, pair_count, pair_room;
	uint32_t pipes_used, pipe_count, pipe_room;
	uint32_t over; /* nodes up to here were over when last looked at */
};

struct oci_uring {
	struct io_uring ring;
	uint32_t entries;
	uint32_t flying; /* requests that have not come back */
	bool broken;	 /* one came back without its end: all are to, then they go again */
	bool cancelled;
	bool ticking;	 /* a tick is under way; it does not count as flying */
	bool tick_put;	 /* it was put into the ring, and has not come back */
	bool cancel_put; /* likewise */
	bool moved;	 /* something has come back since it was asked for */
	bool still;	 /* nothing came while it was last slept for */
	struct oci_chains chains;
};

int oci_chains_create(struct oci_chains *chains, const struct oc_graph_run *run, uint32_t entries);
void oci_chains_destroy(struct oci_chains *chains);
/* Hands over all that can go on without the program. 0 or -errno. */
int oci_chains_submit(struct oc_graph_run *run);
/* After requests were cancelled: none is under way. */
void oci_chains_reset(struct oci_chains *chains);

#endif
