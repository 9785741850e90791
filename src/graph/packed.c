/* SPDX-License-Identifier: BSD-3-Clause */
#include "graph/packed.h"

#include <errno.h>

/* An end beyond 2^63 is none: sums of two numbers below it do not wrap. */
static bool is_range(uint64_t offset, uint64_t count, uint64_t element)
{
	return count && offset <= INT64_MAX && count <= (INT64_MAX - offset) / element;
}

static bool is_node(const struct oci_graph_node *node)
{
	bool calc = node->kind == OCI_GRAPH_CALC, user = node->op >= OC_GRAPH_USER;
	uint64_t element = 1;

	if (node->kind > OCI_GRAPH_CALC || node->zero || node->zero_too)
		return false;
	if (calc ? node->peer : node->op || node->type || node->from || node->from_offset)
		return false;
	if (calc && user) {
		/* How long its elements are is known when it is bound. */
		if (node->type || node->op >= OC_GRAPH_USER + OC_GRAPH_USERS_MOST)
			return false;
		element = OC_OP_MAX_BYTES;
	} else if (calc) {
		if (!oci_graph_has_op(node->op, node->type))
			return false;
		element = oci_graph_type_bytes(node->type);
	}
	return is_range(node->offset, node->count, element) &&
	       (!calc || is_range(node->from_offset, node->count, element));
}

int oci_graph_check(const void *packed, size_t bytes, struct oci_graph_view *view)
{
	const struct oci_graph_head *head = packed;
	struct oci_graph_view v;
	uint32_t edge = 0;

	if (bytes < sizeof(*head) || (uintptr_t)packed % 8 || head->magic != OCI_GRAPH_MAGIC ||
	    head->version != OCI_GRAPH_VERSION || head->nodes > OC_GRAPH_NODES_MOST ||
	    head->edges > OC_GRAPH_EDGES_MOST || head->zero[0] || head->zero[1] || head->zero[2] ||
	    head->zero[3])
		return -EINVAL;
	if (bytes != sizeof(*head) + head->nodes * sizeof(*v.node) + head->edges * sizeof(*v.edges))
		return -EINVAL;
	v.nodes = head->nodes;
	v.edge_count = head->edges;
	v.node = (const struct oci_graph_node *)(head + 1);
	v.edges = (const uint32_t *)(v.node + v.nodes);
	for (uint32_t n = 0; n < v.nodes; n++) {
		if (!is_node(&v.node[n]) || v.node[n].edges_end < edge ||
		    v.node[n].edges_end > v.edge_count)
			return -EINVAL;
		for (; edge < v.node[n].edges_end; edge++)
			if (v.edges[edge] >= n)
				return -EINVAL;
	}
	if (edge != v.edge_count)
		return -EINVAL;
	*view = v;
	return 0;
}

static bool is_within(uint32_t buffer, uint64_t offset, uint64_t bytes, size_t alignment,
		      const struct oc_graph_buffer *buffers, uint32_t count)
{
	if (buffer >= count || offset > buffers[buffer].bytes ||
	    bytes > buffers[buffer].bytes - offset)
		return false;
	return !(((uintptr_t)buffers[buffer].base + offset) & (alignment - 1));
}

int oci_graph_bounds(const struct oci_graph_view *view, const int *peers, uint32_t peer_count,
		     const struct oc_graph_buffer *buffers, uint32_t buffer_count,
		     const struct oc_op *ops, uint32_t op_count)
{
	for (uint32_t n = 0; n < view->nodes; n++) {
		const struct oci_graph_node *node = &view->node[n];
		size_t element = 1, alignment = 1;

		if (node->kind != OCI_GRAPH_CALC) {
			if (node->peer >= peer_count || peers[node->peer] < 0)
				return -EINVAL;
		} else if (node->op >= OC_GRAPH_USER) {
			uint32_t op = node->op - OC_GRAPH_USER;

			if (op >= op_count)
				return -EINVAL;
			element = ops[op].bytes;
			/* As oc_op promises: 16, or the element's size where that is a power of two
			 * below. */
			alignment = element & (element - 1) || element > 16 ? 16 : element;
		} else {
			element = alignment = oci_graph_type_bytes(node->type);
		}
		if (!is_within(node->buffer, node->offset, node->count * element, alignment,
			       buffers, buffer_count))
			return -EINVAL;
		if (node->kind == OCI_GRAPH_CALC &&
		    !is_within(node->from, node->from_offset, node->count * element, alignment,
			       buffers, buffer_count))
			return -EINVAL;
	}
	return 0;
}
