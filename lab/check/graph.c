/* SPDX-License-Identifier: BSD-3-Clause */
#include "lab/check/graph.h"

#include "graph/packed.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NONE = -1 };

/* One direction of a link. */
struct lane {
	uint64_t sent, received;   /* bytes of all */
	uint8_t *held;		   /* [room], a ring */
	uint32_t send_at, recv_at; /* the nodes whose turn it is; past the end: there is none */
	uint64_t send_moved, recv_moved;
};

struct rank {
	struct oci_graph_view view;
	bool *over;
	uint64_t *before; /* [nodes][words] which nodes each one waits for, also through others */
};

struct world {
	const struct oci_graph_rank *given;
	struct rank *ranks;
	struct lane *lanes; /* [from * size + to] */
	uint32_t size;
	size_t room;
	uint64_t seed;
	char *sentence;
	size_t n;
};

static uint64_t draw(struct world *w, uint64_t below)
{
	w->seed ^= w->seed >> 12;
	w->seed ^= w->seed << 25;
	w->seed ^= w->seed >> 27;
	return (w->seed * 0x2545f4914f6cdd1du >> 16) % below;
}

/* The next node of that kind and peer from `at` on. */
static uint32_t find_node(const struct rank *rank, uint32_t at, enum oci_graph_kind kind,
			  uint32_t peer)
{
	const struct oci_graph_view *view = &rank->view;

	while (at < view->nodes && (view->node[at].kind != kind || view->node[at].peer != peer))
		at++;
	return at;
}

static bool may_begin(const struct rank *rank, uint32_t n)
{
	const struct oci_graph_view *view = &rank->view;

	if (n >= view->nodes || rank->over[n])
		return false;
	for (uint32_t e = oci_graph_edges_begin(view, n); e < view->node[n].edges_end; e++)
		if (!rank->over[view->edges[e]])
			return false;
	return true;
}

static uint8_t *bytes_of(const struct world *w, uint32_t rank, uint32_t n, uint64_t moved)
{
	const struct oci_graph_node *node = &w->ranks[rank].view.node[n];

	return (uint8_t *)w->given[rank].buffers[node->buffer].base + node->offset + moved;
}

/* A part of what the SEND has into the ring, or through to the RECV. Was there something to move?
 */
static bool step_lane(struct world *w, uint32_t from, uint32_t to)
{
	struct lane *lane = &w->lanes[from * w->size + to];
	struct rank *sender = &w->ranks[from], *receiver = &w->ranks[to];
	bool can_send = may_begin(sender, lane->send_at), moved = false;
	bool can_receive = may_begin(receiver, lane->recv_at);
	const struct oci_graph_node *send = can_send ? &sender->view.node[lane->send_at] : NULL;
	const struct oci_graph_node *recv = can_receive ? &receiver->view.node[lane->recv_at] :
							  NULL;
	uint64_t held = lane->sent - lane->received;

	if (can_receive && held) {
		uint64_t left = recv->count - lane->recv_moved, part = left < held ? left : held;

		part = 1 + draw(w, part);
		for (uint64_t i = 0; i < part; i++)
			bytes_of(w, to, lane->recv_at, lane->recv_moved)[i] =
				lane->held[(lane->received + i) % w->room];
		lane->received += part;
		lane->recv_moved += part;
		moved = true;
	} else if (can_send && (held < w->room || (!held && can_receive))) {
		uint64_t left = send->count - lane->send_moved, part = left;

		if (w->room) {
			part = part < w->room - held ? part : w->room - held;
			part = 1 + draw(w, part);
			for (uint64_t i = 0; i < part; i++)
				lane->held[(lane->sent + i) % w->room] =
					bytes_of(w, from, lane->send_at, lane->send_moved)[i];
		} else {
			left = recv->count - lane->recv_moved;
			part = 1 + draw(w, part < left ? part : left);
			memmove(bytes_of(w, to, lane->recv_at, lane->recv_moved),
				bytes_of(w, from, lane->send_at, lane->send_moved), part);
			lane->received += part;
			lane->recv_moved += part;
		}
		lane->sent += part;
		lane->send_moved += part;
		moved = true;
	}
	if (can_send && lane->send_moved == send->count) {
		sender->over[lane->send_at] = true;
		lane->send_at = find_node(sender, lane->send_at + 1, OCI_GRAPH_SEND, to);
		lane->send_moved = 0;
	}
	if (can_receive && lane->recv_moved == recv->count) {
		receiver->over[lane->recv_at] = true;
		lane->recv_at = find_node(receiver, lane->recv_at + 1, OCI_GRAPH_RECV, from);
		lane->recv_moved = 0;
	}
	return moved;
}

static bool step_calcs(struct world *w, uint32_t r)
{
	struct rank *rank = &w->ranks[r];
	bool any = false;

	for (uint32_t n = 0; n < rank->view.nodes; n++)
		if (rank->view.node[n].kind == OCI_GRAPH_CALC && may_begin(rank, n)) {
			oci_graph_calc(&rank->view.node[n], w->given[r].buffers, NULL);
			rank->over[n] = any = true;
		}
	return any;
}

/* Something that can move, from this rank to that; or what the rank computes. */
static bool step(struct world *w, uint32_t at)
{
	uint32_t from = at / w->size, to = at % w->size;

	return from == to ? step_calcs(w, from) : step_lane(w, from, to);
}

static void run(struct world *w)
{
	uint32_t places = w->size * w->size;
	bool any = true;

	while (any) {
		any = false;
		for (uint32_t i = 0; i < places; i++)
			any |= step(w, (uint32_t)draw(w, places));
		/* Nothing moved by chance: does anything? */
		for (uint32_t at = 0; at < places && !any; at++)
			any = step(w, at);
	}
}

static int say_stuck(struct world *w)
{
	static const char *const kinds[] = { "SEND", "RECV", "CALC" };

	for (uint32_t r = 0; r < w->size; r++)
		for (uint32_t n = 0; n < w->ranks[r].view.nodes; n++) {
			const struct oci_graph_node *node = &w->ranks[r].view.node[n];
			const struct lane *lane;
			char peer[32] = "";

			if (w->ranks[r].over[n])
				continue;
			lane = node->kind == OCI_GRAPH_SEND ? &w->lanes[r * w->size + node->peer] :
							      &w->lanes[node->peer * w->size + r];
			if (node->kind != OCI_GRAPH_CALC)
				snprintf(peer, sizeof(peer), " with peer %u", node->peer);
			snprintf(
				w->sentence, w->n,
				"rank %u waits for ever in node %u, a %s%s; on its link %llu bytes "
				"were sent and %llu received",
				r, n, kinds[node->kind], peer, (unsigned long long)lane->sent,
				(unsigned long long)lane->received);
			return -EINVAL;
		}
	for (uint32_t at = 0; at < w->size * w->size; at++)
		if (w->lanes[at].sent != w->lanes[at].received) {
			snprintf(w->sentence, w->n,
				 "rank %u sends %llu bytes to rank %u that it never receives",
				 at / w->size,
				 (unsigned long long)(w->lanes[at].sent - w->lanes[at].received),
				 at % w->size);
			return -EINVAL;
		}
	return 0;
}

/* ---- accesses ---------------------------------------------------------------------------------
 */

struct range {
	uint32_t buffer;
	uint64_t begin, end;
	bool writes;
};

static int ranges_of(const struct oci_graph_node *node, struct range out[2])
{
	uint64_t bytes =
		node->count * (node->kind == OCI_GRAPH_CALC ? oci_graph_type_bytes(node->type) : 1);

	out[0] = (struct range){ node->buffer, node->offset, node->offset + bytes,
				 node->kind != OCI_GRAPH_SEND };
	out[1] = (struct range){ node->from, node->from_offset, node->from_offset + bytes, false };
	return node->kind == OCI_GRAPH_CALC ? 2 : 1;
}

static bool do_meet(const struct oci_graph_node *a, const struct oci_graph_node *b)
{
	struct range of_a[2], of_b[2];
	int count_a = ranges_of(a, of_a), count_b = ranges_of(b, of_b);

	for (int i = 0; i < count_a; i++)
		for (int j = 0; j < count_b; j++)
			if (of_a[i].buffer == of_b[j].buffer && of_a[i].begin < of_b[j].end &&
			    of_b[j].begin < of_a[i].end && (of_a[i].writes || of_b[j].writes))
				return true;
	return false;
}

static void inherit(const struct rank *rank, uint32_t n, uint32_t before, size_t words)
{
	for (size_t i = 0; i < words; i++)
		rank->before[n * words + i] |= rank->before[before * words + i];
	rank->before[n * words + before / 64] |= (uint64_t)1 << before % 64;
}

static int prove_accesses(struct world *w, uint32_t r)
{
	struct rank *rank = &w->ranks[r];
	const struct oci_graph_view *view = &rank->view;
	size_t words = view->nodes / 64 + 1;

	rank->before = calloc(view->nodes * words + 1, sizeof(*rank->before));
	if (!rank->before)
		return -ENOMEM;
	for (uint32_t n = 0; n < view->nodes; n++) {
		for (uint32_t e = oci_graph_edges_begin(view, n); e < view->node[n].edges_end; e++)
			inherit(rank, n, view->edges[e], words);
		/* And the one before it in its lane. */
		for (uint32_t m = n; m-- && view->node[n].kind != OCI_GRAPH_CALC;)
			if (view->node[m].kind == view->node[n].kind &&
			    view->node[m].peer == view->node[n].peer) {
				inherit(rank, n, m, words);
				break;
			}
		for (uint32_t m = 0; m < n; m++)
			if (!(rank->before[n * words + m / 64] >> m % 64 & 1) &&
			    do_meet(&view->node[m], &view->node[n])) {
				snprintf(
					w->sentence, w->n,
					"rank %u: nodes %u and %u touch the same bytes, and neither "
					"waits for the other",
					r, m, n);
				return -EINVAL;
			}
	}
	return 0;
}

/* ---- all of it --------------------------------------------------------------------------------
 */

static int take_rank(struct world *w, uint32_t r, const int *peers)
{
	const struct oci_graph_rank *given = &w->given[r];
	struct rank *rank = &w->ranks[r];

	if (oci_graph_check(given->packed, given->bytes, &rank->view) ||
	    oci_graph_bounds(&rank->view, peers, w->size, given->buffers, given->buffer_count, NULL,
			     0)) {
		snprintf(w->sentence, w->n,
			 "rank %u has no graph that these peers and buffers hold", r);
		return -EINVAL;
	}
	rank->over = calloc(rank->view.nodes + 1, sizeof(*rank->over));
	if (!rank->over)
		return -ENOMEM;
	for (uint32_t p = 0; p < w->size; p++) {
		struct lane *out = &w->lanes[r * w->size + p], *in = &w->lanes[p * w->size + r];

		out->send_at = find_node(rank, 0, OCI_GRAPH_SEND, p);
		in->recv_at = find_node(rank, 0, OCI_GRAPH_RECV, p);
		out->held = malloc(w->room + 1);
		if (!out->held)
			return -ENOMEM;
	}
	return prove_accesses(w, r);
}

int oci_graph_prove(const struct oci_graph_rank *given, uint32_t size, size_t room, uint64_t seed,
		    char *sentence, size_t n)
{
	struct world w = { .given = given,
			   .size = size,
			   .room = room,
			   .seed = seed ? seed : 1,
			   .sentence = sentence,
			   .n = n };
	int *peers = calloc(size + !size, sizeof(*peers)), err = 0;

	w.ranks = calloc(size + !size, sizeof(*w.ranks));
	w.lanes = calloc((size_t)size * size + 1, sizeof(*w.lanes));
	if (!peers || !w.ranks || !w.lanes)
		err = -ENOMEM;
	for (uint32_t r = 0; !err && r < size; r++) {
		peers[r] = NONE;
		err = take_rank(&w, r, peers);
		peers[r] = 0;
	}
	if (!err) {
		run(&w);
		err = say_stuck(&w);
	}
	for (uint32_t r = 0; w.ranks && r < size; r++) {
		free(w.ranks[r].over);
		free(w.ranks[r].before);
	}
	for (uint32_t at = 0; w.lanes && at < size * size; at++)
		free(w.lanes[at].held);
	free(w.ranks);
	free(w.lanes);
	free(peers);
	return err;
}
