/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * Dual BSD/GPL. A graph, as graph.c runs it and graph_make.c makes it.
 *
 * Invariants of one that is active:
 *   waits[n] = edges into n from nodes that are not over
 *   lane->at = its first node that is not over
 *   ready[] = CALCs that are not over and whose waits are 0
 */
#ifndef ONECOPY_KERNEL_GRAPH_H
#define ONECOPY_KERNEL_GRAPH_H

#include "onecopy.h"

#include <linux/net.h>
#include <linux/wait.h>

#define ONECOPY_NONE U32_MAX

struct onecopy_link {
	struct wait_queue_entry wait;
	struct onecopy_graph *graph;
	struct socket *socket; /* NULL: there is no such peer */
	unsigned long wants;   /* bits: ONECOPY_RECV, ONECOPY_SEND; that a lane waits for */
};

enum { ONECOPY_RECV, ONECOPY_SEND };

struct onecopy_lane {
	u32 number; /* 2 * peer + ONECOPY_RECV or ONECOPY_SEND */
	u32 first, at;
	u64 moved; /* bytes, of the node `at` */
};

struct onecopy_graph {
	struct onecopy_file *file;
	const struct cred *cred;
	struct work_struct work;
	struct mutex lock;
	bool active;
	bool stopping; /* whoever has set it waits for the lock to end it; read without that */
	bool gone;     /* memory of its buffers: it has none any more */
	u32 word, lane_word;
	void *packed;
	u32 nodes, edge_count;
	const struct onecopy_graph_node *node;
	const u32 *edges;
	u32 link_count, buffer_count, lane_count;
	struct onecopy_link *link;
	struct onecopy_region *region[ONECOPY_GRAPH_BUFFERS_MOST]; /* NULL: no node uses it */
	struct onecopy_lane *lane;
	u32 left, ready_count;
	/* Of one allocation, the first. */
	u32 *waits;	 /* [nodes] */
	u32 *ready;	 /* [nodes] */
	u32 *lane_next;	 /* [nodes] the next of its lane */
	u32 *next_begin; /* [nodes + 1] what waits for node n: next[] from here to that of n + 1 */
	u32 *next;	 /* [edges] */
};

static inline u32 onecopy_edges_begin(const struct onecopy_graph *graph, u32 node)
{
	return node ? graph->node[node - 1].edges_end : 0;
}

/* graph_make.c: checks all that the process says, and takes what it names. 0 or -errno; what was
 * taken is to be given back by onecopy_graph_empty() in either case. May sleep. */
int onecopy_graph_fill(struct onecopy_graph *graph, const struct onecopy_graph_create *call);
/* Its buffers' memory, as soon as nobody copies it any more. */
void onecopy_graph_leave_buffers(struct onecopy_graph *graph);
void onecopy_graph_empty(struct onecopy_graph *graph);

#endif
