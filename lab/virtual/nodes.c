/* SPDX-License-Identifier: BSD-3-Clause */
#include "lab/virtual/nodes.h"

#include "coll/select.h"
#include "lab/virtual/flat.h"
#include "lab/virtual/predict.h"

#include <errno.h>
#include <stdio.h>

/* A prediction under way. */
struct levels {
	const struct oci_model *model;
	const struct oci_shape *on_node;
	uint32_t nodes, each, ranks;
	bool shares;
	struct oci_nodes_predicted *to;
	int error; /* of a part; then the others are not predicted */
	char *why;
	size_t n;
};

static struct oci_nodes_part *add(struct levels *l, enum oc_collective collective, size_t bytes)
{
	struct oci_nodes_part *part = &l->to->part[l->to->parts++];

	*part = (struct oci_nodes_part){ .collective = collective,
					 .by = "each node",
					 .bytes = bytes,
					 .times = 1 };
	return part;
}

/* By the MPI, on the node or between the nodes. */
static void by_mpi(struct levels *l, struct oci_nodes_part *part, uint32_t nodes, uint32_t each)
{
	struct oci_flat flat = { "", 0 };

	l->error = oci_flat_quickest(l->model, part->collective, part->bytes, nodes, each, &flat);
	snprintf(part->algorithm, sizeof(part->algorithm), "mpi:%s", flat.name);
	part->s = flat.s;
}

/* By the node's team, as it chooses: of blocks with their own sizes no rank knows all. */
static double on_node(struct levels *l, enum oc_collective collective, size_t bytes)
{
	struct oci_virtual_result result = { .end_s = 0 };
	struct oci_nodes_part *part;
	struct oci_shape shape = *l->on_node, known;
	struct oci_choice choice;

	if (l->error || l->each == 1)
		return 0;
	part = add(l, collective, bytes);
	shape.collective = collective;
	shape.bytes = bytes;
	shape.unit = oci_is_reduction(collective) ? 8 : 1;
	known = shape;
	if (oci_is_v(collective))
		known.bytes = 0;
	choice = oci_select(&known, l->model, NULL, NULL, NULL);
	if (choice.algorithm == OCI_CHOICE_MPI) {
		by_mpi(l, part, 1, l->each);
		return part->s;
	}
	oci_predict_name(collective, choice, part->algorithm, sizeof(part->algorithm));
	l->error = oci_predict(l->model, &shape, choice, &result, l->why, l->n);
	part->s = result.end_s;
	return part->s;
}

static double between(struct levels *l, enum oc_collective collective, size_t bytes)
{
	struct oci_nodes_part *part;

	if (l->error)
		return 0;
	part = add(l, collective, bytes);
	part->between = true;
	part->by = l->shares ? "ranks of one place on their nodes" : "the leaders";
	by_mpi(l, part, l->nodes, 1);
	return part->s;
}

bool oci_nodes_serve(enum oc_collective collective)
{
	return collective != OC_ALLTOALLV && collective != OC_NEIGHBOR_ALLTOALLV;
}

/* By their bytes, on nodes that have as many ranks: of the message, or of a node's blocks. */
bool oci_nodes_in_shares(const struct oci_shape *on_node, uint32_t nodes)
{
	size_t bytes = on_node->bytes;

	switch (on_node->collective) {
	case OC_BCAST:
	case OC_REDUCE:
	case OC_ALLREDUCE:
		break;
	case OC_ALLGATHER:
	case OC_ALLGATHERV:
	case OC_REDUCE_SCATTER_BLOCK:
		bytes *= on_node->size;
		break;
	case OC_REDUCE_SCATTER:
		bytes /= nodes;
		break;
	default:
		return false;
	}
	return on_node->size > 1 &&
	       bytes >= oc_levels_shared(on_node->collective, on_node->size, on_node->nonblocking);
}

/* A call for each node's blocks. */
static double each_node(struct levels *l, enum oc_collective collective, size_t bytes)
{
	double s = on_node(l, collective, bytes);
	struct oci_nodes_part *part = &l->to->part[l->to->parts - 1];

	if (l->error)
		return s;
	part->times = l->nodes;
	part->s *= l->nodes;
	return part->s;
}

/* All ranks of a node have a message each at a time, which follow each other on the card: as one of
 * all bytes, with the gaps of all. Each adds up its own. */
static double between_in_shares(struct levels *l, enum oc_collective collective, size_t bytes)
{
	const struct oci_model *model = l->model;
	struct oci_model of_each = *model;
	double s;

	of_each.reduce.value /= l->each;
	of_each.net_gap.value *= l->each;
	of_each.net_eager.value *= l->each;
	l->model = &of_each;
	s = between(l, collective, bytes);
	l->model = model;
	return s;
}

/* Messages of the root's with the leaders or, where blocks do not travel together, with all ranks.
 */
static double messages(struct levels *l, enum oc_collective collective, bool together)
{
	bool gathers = oci_receives_each(collective);
	uint32_t peers = (l->nodes - 1) * (together ? 1 : l->each);
	struct oci_nodes_part *part;

	if (l->error)
		return 0;
	part = add(l, collective, l->on_node->bytes * (together ? l->each : 1));
	part->between = true;
	part->by = together ? "the root and the leaders" : "the root and each rank";
	snprintf(part->algorithm, sizeof(part->algorithm),
		 together ? "a message a node" : "a message a rank");
	l->error = oci_flat_by(l->model, gathers ? OC_GATHER : OC_SCATTER,
			       gathers ? "linear" : "linear-at-once", part->bytes, peers + 1, 1,
			       &part->s);
	return part->s;
}

static double bcast_in_shares(struct levels *l, size_t bytes)
{
	double s = on_node(l, OC_SCATTERV, bytes / l->each);

	s += between_in_shares(l, OC_BCAST, bytes);
	return s + on_node(l, OC_ALLGATHERV, bytes / l->each);
}

/* Of nodes of one rank each, or few bytes. */
static double bcast(struct levels *l, size_t bytes)
{
	uint32_t pieces = 1;
	double s;

	if (l->shares)
		return bcast_in_shares(l, bytes);
	if (bytes >= OC_LEVELS_IN_PIECES)
		pieces = (uint32_t)((bytes + OC_LEVELS_PIECE - 1) / OC_LEVELS_PIECE);
	s = pieces * between(l, OC_BCAST, pieces > 1 ? OC_LEVELS_PIECE : bytes);
	l->to->part[0].times = pieces;
	l->to->part[0].s = s;
	return s + on_node(l, OC_BCAST, bytes);
}

/* Small blocks by their leader, while the root's node has its own. */
static double rooted(struct levels *l, enum oc_collective collective, size_t bytes, size_t most)
{
	bool together = bytes <= most;
	double s = 0, part, way;

	if (oci_is_v(collective) && most)
		s = on_node(l, OC_ALLGATHER, 8);
	part = on_node(l, collective, bytes);
	way = messages(l, collective, together);
	return s + (together ? part + way : part > way ? part : way);
}

static double leaders_copy(struct levels *l, size_t bytes)
{
	double s = oci_model_memcpy_of_s(l->model, bytes, oci_model_beyond(l->model, bytes, 0));

	l->to->copies_s += s;
	return s;
}

static double alltoall(struct levels *l, size_t bytes)
{
	size_t row = bytes * l->ranks;
	double s = on_node(l, OC_GATHER, row);

	s += leaders_copy(l, l->each * row);
	s += between(l, OC_ALLTOALLV, (size_t)l->each * l->each * bytes);
	s += leaders_copy(l, l->each * row);
	return s + on_node(l, OC_SCATTER, row);
}

/* Of all blocks. In shares each node's are added up by a call of their own, as they lie. */
static double reduce_scatter(struct levels *l, size_t all)
{
	double s;

	if (l->shares) {
		s = each_node(l, OC_REDUCE_SCATTER, all / l->nodes);
		return s + between_in_shares(l, OC_REDUCE_SCATTER, all);
	}
	s = on_node(l, OC_REDUCE, all);
	s += between(l, OC_REDUCE_SCATTER, all);
	return s + on_node(l, OC_SCATTERV, all / l->ranks);
}

static double allgather(struct levels *l, size_t bytes)
{
	bool counts = l->on_node->collective == OC_ALLGATHERV;
	double s;

	if (l->shares) {
		s = between_in_shares(l, OC_ALLGATHERV, bytes * l->each);
		return s + each_node(l, counts ? OC_ALLGATHERV : OC_ALLGATHER, bytes);
	}
	s = on_node(l, counts ? OC_GATHERV : OC_GATHER, bytes);
	s += between(l, OC_ALLGATHERV, bytes * l->each);
	return s + on_node(l, OC_BCAST, bytes * l->ranks);
}

static double prefix(struct levels *l, enum oc_collective collective, size_t bytes)
{
	double s = on_node(l, OC_REDUCE, bytes);

	s += between(l, OC_EXSCAN, bytes);
	s += on_node(l, collective, bytes);
	s += on_node(l, OC_BCAST, bytes);
	return s + oci_model_reduce_s(l->model, bytes);
}

/* To one or to all. */
static double reduce(struct levels *l, enum oc_collective collective, size_t bytes)
{
	bool to_all = collective == OC_ALLREDUCE;
	double s;

	if (l->shares) {
		s = on_node(l, OC_REDUCE_SCATTER, bytes);
		s += between_in_shares(l, collective, bytes);
		return s + on_node(l, to_all ? OC_ALLGATHERV : OC_GATHERV, bytes / l->each);
	}
	s = on_node(l, OC_REDUCE, bytes);
	s += between(l, collective, bytes);
	return to_all ? s + on_node(l, OC_BCAST, bytes) : s;
}

static double all_parts(struct levels *l, size_t bytes, size_t together)
{
	enum oc_collective collective = l->on_node->collective;
	double s = 0;

	switch (collective) {
	case OC_BARRIER:
		s = on_node(l, OC_BARRIER, 0);
		s += between(l, OC_BARRIER, 0);
		return s + on_node(l, OC_BARRIER, 0);
	case OC_BCAST:
		return bcast(l, bytes);
	case OC_REDUCE:
	case OC_ALLREDUCE:
		return reduce(l, collective, bytes);
	case OC_GATHER:
	case OC_SCATTER:
	case OC_GATHERV:
	case OC_SCATTERV:
		return rooted(l, collective, bytes, together);
	case OC_ALLGATHER:
	case OC_ALLGATHERV:
		return allgather(l, bytes);
	case OC_ALLTOALL:
		return alltoall(l, bytes);
	case OC_REDUCE_SCATTER:
		return reduce_scatter(l, bytes);
	case OC_REDUCE_SCATTER_BLOCK:
		return reduce_scatter(l, bytes * l->ranks);
	case OC_SCAN:
	case OC_EXSCAN:
		return prefix(l, collective, bytes);
	default:
		l->error = -ENOTSUP;
		return s;
	}
}

int oci_nodes_predict(const struct oci_model *model, const struct oci_shape *on_node,
		      uint32_t nodes, size_t together, struct oci_nodes_predicted *predicted,
		      char *why, size_t n)
{
	struct levels l = { .model = model,
			    .on_node = on_node,
			    .nodes = nodes,
			    .each = on_node->size,
			    .ranks = nodes * on_node->size,
			    .shares = oci_nodes_in_shares(on_node, nodes),
			    .to = predicted,
			    .why = why,
			    .n = n };

	*predicted = (struct oci_nodes_predicted){ .parts = 0 };
	*why = '\0';
	predicted->s = all_parts(&l, on_node->bytes, together);
	return l.error;
}
