/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A graph's packed form: a head, the nodes, and the edges. No pointers, so that it means the same
 * wherever it lies. Whoever runs one checks it first (oci_graph_check, oci_graph_bounds): it may
 * come from anyone. The checks need no memory and one pass.
 *
 * Nodes stand in an order in which they could run: an edge leads from an earlier node to a later
 * one, and the nodes of a lane (the SENDs to a peer, or the RECVs from one) happen in this order.
 * So no packed graph has a cycle.
 */
#ifndef OC_GRAPH_PACKED_H
#define OC_GRAPH_PACKED_H

#include <onecopy/graph.h>
#include <stdbool.h>

enum { OCI_GRAPH_MAGIC = 0x4443414b, OCI_GRAPH_VERSION = 1 };

enum oci_graph_kind { OCI_GRAPH_SEND, OCI_GRAPH_RECV, OCI_GRAPH_CALC };

struct oci_graph_head {
	uint32_t magic, version;
	uint32_t nodes, edges;
	uint32_t zero[4];
};

struct oci_graph_node {
	uint8_t kind;	  /* enum oci_graph_kind */
	uint8_t op, type; /* of a CALC, else 0; type 0 where the operation is the user's */
	uint8_t zero;
	uint32_t peer;		      /* of SEND and RECV, else 0 */
	uint32_t buffer;	      /* what is sent, received into, or combined into */
	uint32_t from;		      /* of a CALC, else 0 */
	uint64_t offset, from_offset; /* in `buffer`, in `from` */
	uint64_t count;		      /* bytes; of a CALC: elements */
	uint32_t edges_end; /* its edges end here, and begin where the node before has its end */
	uint32_t zero_too;
};

/* The array, taken apart. edges[] are numbers of nodes that must be over first. */
struct oci_graph_view {
	uint32_t nodes, edge_count;
	const struct oci_graph_node *node;
	const uint32_t *edges;
};

static inline uint32_t oci_graph_edges_begin(const struct oci_graph_view *view, uint32_t node)
{
	return node ? view->node[node - 1].edges_end : 0;
}

/* Is it a packed graph? 0 and the view, which points into it; or -EINVAL. `packed` is aligned to 8.
 */
int oci_graph_check(const void *packed, size_t bytes, struct oci_graph_view *view);
/* Do its nodes lie within these? 0 or -EINVAL. peer[i] < 0: there is no such peer. */
int oci_graph_bounds(const struct oci_graph_view *view, const int *peers, uint32_t peer_count,
		     const struct oc_graph_buffer *buffers, uint32_t buffer_count,
		     const struct oc_op *ops, uint32_t op_count);

/* calc.c. Bytes of an element; 0: there is no such type. */
size_t oci_graph_type_bytes(unsigned int type);
/* Is there such an operation of that type? */
bool oci_graph_has_op(unsigned int op, unsigned int type);
/* `to` and `from` are aligned to the type, and bounds were checked. */
void oci_graph_calc(const struct oci_graph_node *node, const struct oc_graph_buffer *buffers,
		    const struct oc_op *ops);

#endif
