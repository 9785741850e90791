/* SPDX-License-Identifier: BSD-3-Clause */
/* A graph while it is made, and packed. */
#include "graph/graph.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct edge {
	uint32_t before, after;
};

struct oc_graph {
	struct oci_graph_node *nodes;
	struct edge *edges;
	uint32_t node_count, node_room, edge_count, edge_room;
	void *packed; /* NULL: it was changed since */
	size_t packed_bytes;
};

int oc_graph_create(struct oc_graph **graph)
{
	struct oc_graph *g = calloc(1, sizeof(*g));

	if (!g)
		return -ENOMEM;
	*graph = g;
	return 0;
}

static void change(struct oc_graph *graph)
{
	free(graph->packed);
	graph->packed = NULL;
}

void oc_graph_free(struct oc_graph *graph)
{
	if (!graph)
		return;
	change(graph);
	free(graph->nodes);
	free(graph->edges);
	free(graph);
}

int oci_graph_grow(void *array, uint32_t count, uint32_t *room, size_t bytes)
{
	uint32_t wanted = *room ? 2 * *room : 16;
	void *more;

	if (count < *room)
		return 0;
	more = realloc(*(void **)array, wanted * bytes);
	if (!more)
		return -ENOMEM;
	*(void **)array = more;
	*room = wanted;
	return 0;
}

/* What the packed form refuses is refused here, by the same rules: a graph of this one node. */
static int add(struct oc_graph *graph, const struct oci_graph_node *node)
{
	struct {
		struct oci_graph_head head;
		struct oci_graph_node node;
	} alone = { .head = { .magic = OCI_GRAPH_MAGIC, .version = OCI_GRAPH_VERSION, .nodes = 1 },
		    .node = *node };
	struct oci_graph_view view;
	int err = oci_graph_check(&alone, sizeof(alone), &view);

	if (err)
		return err;
	if (graph->node_count == OC_GRAPH_NODES_MOST)
		return -E2BIG;
	err = oci_graph_grow(&graph->nodes, graph->node_count, &graph->node_room,
			     sizeof(*graph->nodes));
	if (err)
		return err;
	change(graph);
	graph->nodes[graph->node_count] = *node;
	return (int)graph->node_count++;
}

int oc_graph_send(struct oc_graph *graph, uint32_t peer, uint32_t buffer, size_t offset,
		  size_t bytes)
{
	return add(graph, &(struct oci_graph_node){ .kind = OCI_GRAPH_SEND,
						    .peer = peer,
						    .buffer = buffer,
						    .offset = offset,
						    .count = bytes });
}

int oc_graph_recv(struct oc_graph *graph, uint32_t peer, uint32_t buffer, size_t offset,
		  size_t bytes)
{
	return add(graph, &(struct oci_graph_node){ .kind = OCI_GRAPH_RECV,
						    .peer = peer,
						    .buffer = buffer,
						    .offset = offset,
						    .count = bytes });
}

int oc_graph_calc(struct oc_graph *graph, const struct oc_graph_calc *calc)
{
	if (calc->op > UINT8_MAX || (unsigned int)calc->type > UINT8_MAX)
		return -EINVAL;
	return add(graph, &(struct oci_graph_node){
				  .kind = OCI_GRAPH_CALC,
				  .op = (uint8_t)calc->op,
				  .type = calc->op >= OC_GRAPH_USER ? 0 : (uint8_t)calc->type,
				  .buffer = calc->to,
				  .from = calc->from,
				  .offset = calc->to_offset,
				  .from_offset = calc->from_offset,
				  .count = calc->count });
}

int oc_graph_connect(struct oc_graph *graph, int before, int after)
{
	int err;

	if (before < 0 || before >= after || (uint32_t)after >= graph->node_count)
		return -EINVAL;
	if (graph->edge_count == OC_GRAPH_EDGES_MOST)
		return -E2BIG;
	err = oci_graph_grow(&graph->edges, graph->edge_count, &graph->edge_room,
			     sizeof(*graph->edges));
	if (err)
		return err;
	change(graph);
	graph->edges[graph->edge_count++] =
		(struct edge){ .before = (uint32_t)before, .after = (uint32_t)after };
	return 0;
}

void *oci_graph_pack(const struct oc_graph *graph, size_t *bytes)
{
	size_t n = sizeof(struct oci_graph_head) + graph->node_count * sizeof(*graph->nodes) +
		   graph->edge_count * sizeof(uint32_t);
	struct oci_graph_head *head = malloc(n);
	struct oci_graph_node *node = (struct oci_graph_node *)(head + 1);
	uint32_t *edges, end = 0;

	if (!head)
		return NULL;
	*head = (struct oci_graph_head){ .magic = OCI_GRAPH_MAGIC,
					 .version = OCI_GRAPH_VERSION,
					 .nodes = graph->node_count,
					 .edges = graph->edge_count };
	edges = (uint32_t *)(node + graph->node_count);
	if (graph->node_count)
		memcpy(node, graph->nodes, graph->node_count * sizeof(*node));
	/* Sorted by the node behind them, by counting: first where each node's begin ... */
	for (uint32_t e = 0; e < graph->edge_count; e++)
		node[graph->edges[e].after].edges_end++;
	for (uint32_t i = 0; i < graph->node_count; i++) {
		uint32_t count = node[i].edges_end;

		node[i].edges_end = end;
		end += count;
	}
	/* ... which moves on, with each, to where they end. */
	for (uint32_t e = 0; e < graph->edge_count; e++)
		edges[node[graph->edges[e].after].edges_end++] = graph->edges[e].before;
	*bytes = n;
	return head;
}

const void *oc_graph_pack(struct oc_graph *graph, size_t *bytes)
{
	if (!graph->packed)
		graph->packed = oci_graph_pack(graph, &graph->packed_bytes);
	if (graph->packed)
		*bytes = graph->packed_bytes;
	return graph->packed;
}

int oc_graph_unpack(struct oc_graph **graph, const void *packed, size_t bytes)
{
	struct oci_graph_view view;
	struct oc_graph *g;
	void *aligned = malloc(bytes + !bytes);
	int err = aligned ? 0 : -ENOMEM;

	if (err)
		return err;
	/* A copy of our own: it may change under a check. */
	if (bytes)
		memcpy(aligned, packed, bytes);
	err = oci_graph_check(aligned, bytes, &view);
	if (!err)
		err = oc_graph_create(&g);
	if (err) {
		free(aligned);
		return err;
	}
	for (uint32_t n = 0; !err && n < view.nodes; n++) {
		struct oci_graph_node node = view.node[n];
		uint32_t begin = oci_graph_edges_begin(&view, n);

		node.edges_end = 0;
		err = add(g, &node);
		err = err < 0 ? err : 0;
		for (uint32_t e = begin; !err && e < view.node[n].edges_end; e++)
			err = oc_graph_connect(g, (int)view.edges[e], (int)n);
	}
	free(aligned);
	if (err) {
		oc_graph_free(g);
		return err;
	}
	*graph = g;
	return 0;
}
