/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ready-made graphs: broadcast and reduction over a chain, a binary or a binomial tree, in segments
 * that are handed on as soon as they are there (KACC, sections 3.1 and 5: "pipeline" and "tree").
 *
 * With n segments of s bytes over a path of d hops: (n + d - 1) * c * (alpha + s * beta), where c
 * is the most children that a rank has: 1 of a chain, whose d is size - 1; 2 of a binary tree,
 * whose d is log2(size). An Allreduce is both, one behind the other for each segment, over 2 d
 * hops: while a segment goes down later ones go up, the other way on the same links.
 */
#include "graph/graph.h"

#include <errno.h>

enum { CHILDREN_MOST = 32, NONE = -1 };

struct place {
	uint32_t parent, child[CHILDREN_MOST]; /* ranks */
	unsigned int children;
	bool has_parent;
};

/* Ranks count from the root while a tree is worked out. */
static int find_place(enum oc_graph_tree tree, uint32_t rank, uint32_t size, uint32_t root,
		      struct place *place)
{
	uint64_t me = ((uint64_t)rank + size - root) % (size ? size : 1), parent = 0;

	if ((unsigned int)tree >= OC_GRAPH_TREES || rank >= size || root >= size)
		return -EINVAL;
	*place = (struct place){ .has_parent = me };
	switch (tree) {
	case OC_GRAPH_CHAIN:
		parent = me - 1;
		if (me + 1 < size)
			place->child[place->children++] = (uint32_t)me + 1;
		break;
	case OC_GRAPH_BINARY:
		parent = (me - 1) / 2;
		for (uint64_t c = 2 * me + 1; c <= 2 * me + 2 && c < size; c++)
			place->child[place->children++] = (uint32_t)c;
		break;
	default:
		/* me without its lowest bit; children have one more, below it: far ones first, as
		 * they have the most ranks below them. */
		parent = me & (me - 1);
		for (int bit = 31; bit >= 0; bit--) {
			uint64_t step = (uint64_t)1 << bit;

			if ((!me || step < (me & -me)) && me + step < size)
				place->child[place->children++] = (uint32_t)(me + step);
		}
	}
	place->parent = (uint32_t)((parent + root) % size);
	for (unsigned int i = 0; i < place->children; i++)
		place->child[i] = (uint32_t)(((uint64_t)place->child[i] + root) % size);
	return 0;
}

static int connect_if(struct oc_graph *graph, int before, int after)
{
	return before == NONE ? 0 : oc_graph_connect(graph, before, after);
}

/* What is made of one segment after the other. */
struct collective {
	struct place place;
	bool reduces, hands_out; /* up the tree, then down */
	size_t bytes, segment;
	/* Of a reduction. */
	size_t element;
	unsigned int op;
	enum oc_graph_type type;
};

/*
 * A segment: from each child, combined in the order of the children, then handed to the parent.
 * *last: the node behind which it may be written; NONE: at once.
 */
static int reduce_segment(struct oc_graph *graph, const struct collective *what, size_t at,
			  size_t bytes, int *last)
{
	const struct place *place = &what->place;
	int sent, err;

	for (unsigned int i = 0; i < place->children; i++) {
		struct oc_graph_calc calc = { .op = what->op,
					      .type = what->type,
					      .from = 1,
					      .from_offset = i * what->bytes + at,
					      .to_offset = at,
					      .count = bytes / what->element };
		int received = oc_graph_recv(graph, place->child[i], 1, calc.from_offset, bytes);
		int combined = received < 0 ? received : oc_graph_calc(graph, &calc);

		if (combined < 0)
			return combined;
		err = oc_graph_connect(graph, received, combined);
		if (!err)
			err = connect_if(graph, *last, combined);
		if (err)
			return err;
		*last = combined;
	}
	if (!place->has_parent)
		return 0;
	sent = oc_graph_send(graph, place->parent, 0, at, bytes);
	if (sent < 0)
		return sent;
	err = connect_if(graph, *last, sent);
	*last = sent;
	return err;
}

/* A segment: received, then handed to each child; not before `last`. */
static int bcast_segment(struct oc_graph *graph, const struct place *place, size_t at, size_t bytes,
			 int last)
{
	int err = 0;

	if (place->has_parent) {
		int received = oc_graph_recv(graph, place->parent, 0, at, bytes);

		err = received < 0 ? received : connect_if(graph, last, received);
		last = received;
	}
	for (unsigned int i = 0; !err && i < place->children; i++) {
		int sent = oc_graph_send(graph, place->child[i], 0, at, bytes);

		err = sent < 0 ? sent : connect_if(graph, last, sent);
	}
	return err;
}

static int build(struct oc_graph **graph, const struct collective *what)
{
	size_t segment = what->segment;
	struct oc_graph *g;
	int err = oc_graph_create(&g);

	if (err)
		return err;
	for (size_t at = 0; !err && at < what->bytes; at += segment) {
		size_t left = what->bytes - at;
		int last = NONE;

		segment = segment < left ? segment : left;
		if (what->reduces)
			err = reduce_segment(g, what, at, segment, &last);
		if (!err && what->hands_out)
			err = bcast_segment(g, &what->place, at, segment, last);
	}
	if (err) {
		oc_graph_free(g);
		return err;
	}
	*graph = g;
	return 0;
}

int oc_graph_bcast(struct oc_graph **graph, enum oc_graph_tree tree, uint32_t rank, uint32_t size,
		   uint32_t root, size_t bytes, size_t segment)
{
	struct collective what = { .hands_out = true,
				   .bytes = bytes,
				   .segment = segment ? segment : bytes };
	int err = find_place(tree, rank, size, root, &what.place);

	return err ? err : build(graph, &what);
}

size_t oc_graph_scratch(enum oc_graph_tree tree, uint32_t rank, uint32_t size, uint32_t root,
			size_t bytes)
{
	struct place place;

	return find_place(tree, rank, size, root, &place) ? 0 : place.children * bytes;
}

/* Segments are of whole elements, at least one. */
static int prepare_reduction(struct collective *what, enum oc_graph_tree tree, uint32_t rank,
			     uint32_t size, uint32_t root, size_t count, size_t segment)
{
	what->reduces = true;
	what->element = oci_graph_type_bytes(what->type);
	if (!what->element || __builtin_mul_overflow(count, what->element, &what->bytes))
		return -EINVAL;
	what->segment = segment ? segment - segment % what->element : what->bytes;
	what->segment = what->segment ? what->segment : what->element;
	return find_place(tree, rank, size, root, &what->place);
}

int oc_graph_reduce(struct oc_graph **graph, enum oc_graph_tree tree, uint32_t rank, uint32_t size,
		    uint32_t root, size_t count, enum oc_graph_type type, unsigned int op,
		    size_t segment)
{
	struct collective what = { .type = type, .op = op };
	int err = prepare_reduction(&what, tree, rank, size, root, count, segment);

	return err ? err : build(graph, &what);
}

int oc_graph_allreduce(struct oc_graph **graph, enum oc_graph_tree tree, uint32_t rank,
		       uint32_t size, size_t count, enum oc_graph_type type, unsigned int op,
		       size_t segment)
{
	struct collective what = { .hands_out = true, .type = type, .op = op };
	int err = prepare_reduction(&what, tree, rank, size, 0, count, segment);

	return err ? err : build(graph, &what);
}
