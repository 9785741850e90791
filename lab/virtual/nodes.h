/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A call of ranks on several nodes in two levels, predicted: what mpi/common/levels does, part by
 * part (docs/adr/0029). On a node the algorithm that jobs choose, by the plans of its ranks in
 * virtual time; between the nodes the quickest of the MPI's (flat.h). All nodes have as
 * many ranks, which follow each other, and rank 0 is the root. A part begins when the one before it
 * is over on all nodes.
 */
#ifndef OC_VIRTUAL_NODES_H
#define OC_VIRTUAL_NODES_H

#include "coll/coll.h"
#include "model/model.h"

struct oci_nodes_part {
	enum oc_collective collective;
	bool between;	/* the nodes; else on each of them */
	const char *by; /* "the leaders" */
	size_t bytes;	/* as of a call of it */
	uint32_t times;
	char algorithm[64];
	double s; /* of all times */
};

#define OCI_NODES_PARTS 4
struct oci_nodes_predicted {
	struct oci_nodes_part part[OCI_NODES_PARTS];
	unsigned int parts;
	double copies_s; /* by the leaders, between the parts */
	double s;	 /* of all: parts of pieces overlap */
};

/* Do any of its calls go in two levels? */
bool oci_nodes_serve(enum oc_collective collective);
/* Does such a call go in shares, each rank of a node having one of its own between the nodes? */
bool oci_nodes_in_shares(const struct oci_shape *on_node, uint32_t nodes);

/*
 * `on_node`: the call as one of a node's ranks, whose hierarchy is the team's. `together`: bytes up
 * to which the blocks of a Gather or Scatter travel together. 0; -ENOTSUP: the call does not go so;
 * -ENOMEM; or what oci_predict() says, with a sentence.
 */
int oci_nodes_predict(const struct oci_model *model, const struct oci_shape *on_node,
		      uint32_t nodes, size_t together, struct oci_nodes_predicted *predicted,
		      char *why, size_t n);

#endif
