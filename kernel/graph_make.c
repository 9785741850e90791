// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/* Dual BSD/GPL. Graphs as a process gives them: nothing is believed of one. It is copied, then
 * checked, and what it names is taken; all that is looked at later was looked at here. */
#include "compat/compat.h"
#include "graph.h"

#include <linux/in.h>
#include <linux/math64.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <net/sock.h>
#include <net/tcp_states.h>

/* ---- is it a graph? -------------------------------------------------------------------------- */

/* An end beyond 2^63 is none: sums of two numbers below it do not wrap. */
static bool is_range(u64 offset, u64 count, u64 element)
{
	return count && offset <= S64_MAX && count <= div64_u64(S64_MAX - offset, element);
}

static int check_node(const struct onecopy_graph *graph, const struct onecopy_graph_node *node)
{
	u64 element = 1;
	int error;

	if (node->kind > ONECOPY_GRAPH_CALC || node->reserved || node->reserved_too ||
	    node->buffer >= graph->buffer_count)
		return -EINVAL;
	if (node->kind == ONECOPY_GRAPH_CALC) {
		error = onecopy_calc_check(node->op, node->type);
		if (error)
			return error;
		element = onecopy_calc_bytes(node->type);
		if (node->peer || node->from >= graph->buffer_count ||
		    !is_range(node->from_offset, node->count, element))
			return -EINVAL;
	} else if (node->op || node->type || node->from || node->from_offset ||
		   node->peer >= graph->link_count || !graph->link[node->peer].socket) {
		return -EINVAL;
	}
	return is_range(node->offset, node->count, element) ? 0 : -EINVAL;
}

static int check_nodes(struct onecopy_graph *graph)
{
	u32 edge = 0;

	for (u32 n = 0; n < graph->nodes; n++) {
		int error = check_node(graph, &graph->node[n]);

		if (error)
			return error;
		if (graph->node[n].edges_end < edge || graph->node[n].edges_end > graph->edge_count)
			return -EINVAL;
		for (; edge < graph->node[n].edges_end; edge++)
			if (graph->edges[edge] >= n)
				return -EINVAL;
	}
	return edge == graph->edge_count ? 0 : -EINVAL;
}

/* The array, as far as its length goes. */
static int take_packed(struct onecopy_graph *graph, const struct onecopy_graph_create *call)
{
	const u64 most = sizeof(struct onecopy_graph_head) +
			 ONECOPY_GRAPH_NODES_MOST * sizeof(*graph->node) +
			 ONECOPY_GRAPH_EDGES_MOST * sizeof(*graph->edges);
	const struct onecopy_graph_head *head;

	if (call->packed_bytes < sizeof(*head))
		return -EINVAL;
	if (call->packed_bytes > most)
		return -E2BIG;
	graph->packed = kvmalloc(call->packed_bytes, GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!graph->packed)
		return -ENOMEM;
	if (copy_from_user(graph->packed, u64_to_user_ptr(call->packed), call->packed_bytes))
		return -EFAULT;
	head = graph->packed;
	if (head->magic != ONECOPY_GRAPH_MAGIC || head->version != ONECOPY_GRAPH_VERSION ||
	    memchr_inv(head->reserved, 0, sizeof(head->reserved)))
		return -EINVAL;
	if (head->nodes > ONECOPY_GRAPH_NODES_MOST || head->edges > ONECOPY_GRAPH_EDGES_MOST)
		return -E2BIG;
	if (call->packed_bytes != sizeof(*head) + head->nodes * sizeof(*graph->node) +
					  head->edges * sizeof(*graph->edges))
		return -EINVAL;
	graph->nodes = head->nodes;
	graph->edge_count = head->edges;
	graph->node = (const void *)(head + 1);
	graph->edges = (const void *)(graph->node + graph->nodes);
	return 0;
}

/* ---- what it needs --------------------------------------------------------------------------- */

/*
 * TCP alone: a message of AF_UNIX bears the sender's identity, which is not the process here, and
 * descriptors, this file's among them, that would keep each other for ever.
 */
static int check_socket(const struct sock *sk)
{
	if (sk->sk_type != SOCK_STREAM || sk->sk_protocol != IPPROTO_TCP ||
	    (sk->sk_family != AF_INET && sk->sk_family != AF_INET6))
		return -EPROTONOSUPPORT;
	return READ_ONCE(sk->sk_state) == TCP_ESTABLISHED ? 0 : -ENOTCONN;
}

static int take_sockets(struct onecopy_graph *graph, const struct onecopy_graph_create *call)
{
	const s32 __user *from = u64_to_user_ptr(call->sockets);
	int error = 0;

	graph->link = kvcalloc(call->socket_count, sizeof(*graph->link), GFP_KERNEL_ACCOUNT);
	if (!graph->link)
		return -ENOMEM;
	graph->link_count = call->socket_count;
	for (u32 i = 0; i < graph->link_count && !error; i++) {
		struct onecopy_link *link = &graph->link[i];
		s32 fd;

		link->graph = graph;
		if (get_user(fd, &from[i]))
			return -EFAULT;
		if (fd < -1)
			return -EBADF;
		if (fd == -1)
			continue;
		link->socket = sockfd_lookup(fd, &error);
		if (link->socket)
			error = check_socket(link->socket->sk);
	}
	return error;
}

/*
 * Where memory may be written it is pinned so, whatever is done with it: before 6.2 a page that was
 * pinned to be read, the page of zeros or a private file's, was another after the program's first
 * write beside what is sent.
 */
static struct onecopy_region *take_buffer(struct onecopy_graph *graph, u64 piece, u32 rights)
{
	struct onecopy_region *region =
		onecopy_region_make(graph->file, piece, 1, rights | ONECOPY_REGION_WRITE, 0);

	if (region == ERR_PTR(-EFAULT) && !(rights & ONECOPY_REGION_WRITE))
		region = onecopy_region_make(graph->file, piece, 1, rights, 0);
	return region;
}

/* What nodes do with the buffers has to be allowed of their memory. */
static int take_buffers(struct onecopy_graph *graph, const struct onecopy_graph_create *call)
{
	u8 rights[ONECOPY_GRAPH_BUFFERS_MOST] = { 0 };

	for (u32 n = 0; n < graph->nodes; n++) {
		const struct onecopy_graph_node *node = &graph->node[n];

		if (node->kind != ONECOPY_GRAPH_RECV)
			rights[node->buffer] |= ONECOPY_REGION_READ;
		if (node->kind != ONECOPY_GRAPH_SEND)
			rights[node->buffer] |= ONECOPY_REGION_WRITE;
		if (node->kind == ONECOPY_GRAPH_CALC)
			rights[node->from] |= ONECOPY_REGION_READ;
	}
	for (u32 i = 0; i < graph->buffer_count; i++) {
		struct onecopy_region *region;

		if (!rights[i])
			continue;
		region = take_buffer(graph, call->buffers + i * sizeof(struct onecopy_piece),
				     rights[i]);
		if (IS_ERR(region))
			return PTR_ERR(region);
		graph->region[i] = region;
	}
	return 0;
}

static bool is_within(const struct onecopy_region *region, u64 offset, u64 bytes, u32 element)
{
	return offset <= region->bytes && bytes <= region->bytes - offset &&
	       !((region->span[0].addr + offset) & (element - 1));
}

static int check_bounds(const struct onecopy_graph *graph)
{
	for (u32 n = 0; n < graph->nodes; n++) {
		const struct onecopy_graph_node *node = &graph->node[n];
		const struct onecopy_region *to = graph->region[node->buffer], *from;
		u32 element = 1;
		u64 bytes, ahead;

		if (node->kind == ONECOPY_GRAPH_CALC)
			element = onecopy_calc_bytes(node->type);
		bytes = node->count * element;
		if (!is_within(to, node->offset, bytes, element))
			return -EINVAL;
		if (node->kind != ONECOPY_GRAPH_CALC)
			continue;
		from = graph->region[node->from];
		if (!is_within(from, node->from_offset, bytes, element))
			return -EINVAL;
		/* It would have to be copied from its end on. */
		ahead = to->span[0].addr + node->offset - from->span[0].addr - node->from_offset;
		if (node->op == ONECOPY_CALC_COPY && ahead && ahead < bytes)
			return -EOPNOTSUPP;
	}
	return 0;
}

/* ---- made ------------------------------------------------------------------------------------ */

/* What waits for whom: the edges, sorted by their first node by counting. */
static void sort_edges(struct onecopy_graph *graph)
{
	u32 *begin = graph->next_begin, sum = 0;

	for (u32 e = 0; e < graph->edge_count; e++)
		begin[graph->edges[e]]++;
	for (u32 n = 0; n <= graph->nodes; n++) {
		u32 count = begin[n];

		begin[n] = sum;
		sum += count;
	}
	for (u32 n = 0; n < graph->nodes; n++)
		for (u32 e = onecopy_edges_begin(graph, n); e < graph->node[n].edges_end; e++)
			graph->next[begin[graph->edges[e]]++] = n;
	/* Each has moved on to where those of the next one begin. */
	for (u32 n = graph->nodes; n; n--)
		begin[n] = begin[n - 1];
	begin[0] = 0;
}

/* index, tail: of each number a lane may have; zero. */
static void sort_lanes(struct onecopy_graph *graph, u32 *index, u32 *tail)
{
	for (u32 n = 0; n < graph->nodes; n++) {
		const struct onecopy_graph_node *node = &graph->node[n];
		u32 number = 2 * node->peer +
			     (node->kind == ONECOPY_GRAPH_SEND ? ONECOPY_SEND : ONECOPY_RECV);

		graph->lane_next[n] = ONECOPY_NONE;
		if (node->kind == ONECOPY_GRAPH_CALC)
			continue;
		if (index[number]) {
			graph->lane_next[tail[number]] = n;
		} else {
			graph->lane[graph->lane_count] = (struct onecopy_lane){ number, n, n, 0 };
			index[number] = ++graph->lane_count;
		}
		tail[number] = n;
	}
}

static int sort(struct onecopy_graph *graph)
{
	size_t nodes = graph->nodes, numbers = 2 * graph->link_count;
	u32 *index = kvcalloc(2 * numbers, sizeof(*index), GFP_KERNEL_ACCOUNT);

	graph->waits = kvcalloc(4 * nodes + 1 + graph->edge_count, sizeof(u32), GFP_KERNEL_ACCOUNT);
	graph->lane = kvcalloc(min(nodes, numbers), sizeof(*graph->lane), GFP_KERNEL_ACCOUNT);
	if (!index || !graph->waits || !graph->lane) {
		kvfree(index);
		return -ENOMEM;
	}
	graph->ready = graph->waits + nodes;
	graph->lane_next = graph->ready + nodes;
	graph->next_begin = graph->lane_next + nodes;
	graph->next = graph->next_begin + nodes + 1;
	sort_edges(graph);
	sort_lanes(graph, index, index + numbers);
	kvfree(index);
	return 0;
}

int onecopy_graph_fill(struct onecopy_graph *graph, const struct onecopy_graph_create *call)
{
	int error = take_packed(graph, call);

	if (!error)
		error = take_sockets(graph, call);
	if (!error)
		error = check_nodes(graph);
	if (!error)
		error = take_buffers(graph, call);
	if (!error)
		error = check_bounds(graph);
	if (!error)
		error = sort(graph);
	if (!error && graph->lane_count &&
	    (call->lanes > U32_MAX - graph->lane_count ||
	     !onecopy_status_has(graph->file, call->lanes + graph->lane_count - 1)))
		error = -EINVAL;
	return error;
}

/* Its memory is let go as soon as nobody copies it any more. */
void onecopy_graph_leave_buffers(struct onecopy_graph *graph)
{
	for (u32 i = 0; i < graph->buffer_count; i++) {
		struct onecopy_region *region = graph->region[i];

		if (!region)
			continue;
		graph->region[i] = NULL;
		/* It may have ended by itself. */
		onecopy_region_destroy(graph->file, region->cookie);
		onecopy_region_put(region);
	}
}

void onecopy_graph_empty(struct onecopy_graph *graph)
{
	onecopy_graph_leave_buffers(graph);
	for (u32 i = 0; i < graph->link_count; i++)
		if (graph->link[i].socket)
			sockfd_put(graph->link[i].socket);
	kvfree(graph->link);
	kvfree(graph->lane);
	kvfree(graph->waits);
	kvfree(graph->packed);
}
