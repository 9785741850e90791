/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collectives of a communicator that spans nodes: on each node by the team of its members there,
 * and between nodes by the MPI (docs/adr/0029). A node's leader is its first member.
 *
 *   make.c      the nodes, their communicators and memory: made, agreed on, freed
 *   parts.c     parts of a call: on a node, between leaders; in pieces, both at once
 *   order.c     blocks of all ranks in the order of the nodes
 *   message.c   Barrier, Bcast, Reduce, Allreduce, Scan, Exscan
 *   rooted.c    Gather, Gatherv, Scatter, Scatterv
 *   exchange.c  Allgather, Allgatherv, Alltoall, Reduce_scatter, Reduce_scatter_block
 *   run.c       which calls go so
 *
 * What is here is alike on all members: they have agreed on it, or compute it from what all know.
 * Whether a call goes this way depends on its function, bytes and root, and on nothing else. Parts
 * are calls of MPI, with the program's own types and buffers wherever these will do.
 */
#ifndef OC_MPI_LEVELS_H
#define OC_MPI_LEVELS_H

#include "common/comm.h"
#include "common/say.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

struct node {
	uint64_t id;
	uint32_t first, ranks; /* its leader; its members */
	uint32_t start;	       /* how many ranks are on the nodes before it */
};

/* Memory between the parts of a call, kept for the next one. */
struct scratch {
	char *bytes;
	size_t room;  /* alike on all members, also those that have none */
	bool refused; /* a rank had no memory for more */
};

struct oci_mpi_levels {
	MPI_Comm node_comm, leaders; /* MPI_COMM_NULL: alone on its node; no leader */
	MPI_Comm all;		     /* for messages; MPI_COMM_NULL: not made yet */
	bool all_refused;	     /* by a rank; then by all */
	struct oci_mpi_comm *node;   /* NULL: alone */
	uint32_t nodes, mine;	     /* mine: the number of this rank's node */
	uint32_t most;		     /* members of a node */
	bool in_order;		     /* the members of each node follow each other */
	struct scratch of_leaders, of_all;
	/* The rest: an element for each rank. */
	uint32_t *place, *local;	 /* the number of its node; its rank there */
	uint32_t *order;		 /* the ranks, in the order of the nodes */
	oci_port_count *counts, *displs; /* of a part with arrays */
	int *lengths;			 /* of a type of several blocks */
	MPI_Aint *places;		 /* the same; or bytes of a node's members */
	MPI_Request *requests;
	struct node node_of[];
};

/* ---- make.c -----------------------------------------------------------------------------------
 */

/* NULL: there are none, on all members alike; self->why. */
struct oci_mpi_levels *oci_levels_of(struct oci_mpi_comm *self);
/* More room is had by all or by none. `holder`: this rank is one of those that have it. */
bool oci_levels_scratch(struct oci_mpi_comm *self, struct scratch *scratch, size_t bytes,
			bool holder);
/* The communicator for messages between any two ranks. */
bool oci_levels_messages(struct oci_mpi_comm *self);

/* ---- parts.c ----------------------------------------------------------------------------------
 */

/* What is known of a call before its parts. */
struct plan {
	struct oci_mpi_comm *comm;
	struct oci_mpi_levels *l;
	const struct oci_mpi_call *call;
	size_t bytes; /* of the message or of a block; of a v-variant all, 0 where not all know */
	bool alike;   /* each block has that many */
	size_t together; /* a node's blocks of a Gather or Scatter that have so many, the mean */
	bool leader;
	uint32_t root_node;   /* of those with a root */
	int status;	      /* of the parts until now */
	size_t piece, pieces; /* of a message in pieces: its elements; how many */
	MPI_Request request;  /* of the part between leaders that is under way */
	void *message;	      /* of what has one, as it goes between the parts */
	MPI_Datatype type;    /* its elements */
};

#define PART(ID, name, ...)                                           \
	(&(struct oci_mpi_call){ .collective = OC_##ID,               \
				 .function = OCI_FUNCTION_##name,     \
				 .long_counts = OCI_PORT_LONG_COUNTS, \
				 .long_displs = OCI_PORT_LONG_COUNTS, \
				 __VA_ARGS__ })

/* The node's part. After an error of an earlier one, its members are told. */
void oci_levels_on_node(struct plan *p, const struct oci_mpi_call *part);
/* The leaders' part. Of a call in pieces it is only begun. */
void oci_levels_between(struct plan *p, const struct oci_mpi_call *part);

/*
 * One call, or its pieces one after the other: what its node gives, what goes between the leaders,
 * and what its node gets of it. `first`, `count`: of the piece's elements. While a piece is between
 * the leaders, their nodes have the next one and then the one before it in hand.
 */
struct stages {
	void (*give)(struct plan *p, size_t first, size_t count);
	void (*between)(struct plan *p, size_t first, size_t count);
	void (*get)(struct plan *p, size_t first, size_t count);
};
void oci_levels_run_stages(struct plan *p, const struct stages *stages, size_t count);

/* Into pieces of so many elements. */
void oci_levels_cut(struct plan *p, size_t count, size_t piece);

/* Messages on the communicator of all ranks, which go together: begun, then waited for. */
void oci_levels_send(struct plan *p, const void *buffer, MPI_Count count, MPI_Datatype type,
		     uint32_t rank, size_t *begun);
void oci_levels_receive(struct plan *p, void *buffer, MPI_Count count, MPI_Datatype type,
			uint32_t rank, size_t *begun);
void oci_levels_await(struct plan *p, size_t begun);

static inline uint32_t oci_levels_local(const struct plan *p)
{
	return p->l->local[p->comm->rank];
}

static inline struct node *oci_levels_node(const struct plan *p)
{
	return &p->l->node_of[p->l->mine];
}

static inline bool oci_levels_is_root(const struct plan *p)
{
	return (uint32_t)p->call->root == p->comm->rank;
}

/* The root's rank on its own node; elsewhere the leader stands for it. */
static inline int oci_levels_root_here(const struct plan *p)
{
	return p->l->mine == p->root_node ? (int)p->l->local[p->call->root] : 0;
}

static inline void *oci_levels_at(const void *buffer, MPI_Count elements, MPI_Datatype type)
{
	struct oci_port_type shape;

	oci_port_type_get(type, &shape);
	return (void *)((uintptr_t)buffer + (uintptr_t)elements * (uintptr_t)shape.extent);
}

/* ---- order.c ----------------------------------------------------------------------------------
 *
 * A buffer with a block for each rank, as one of its owner's arguments: counts and displacements,
 * or `count` elements each, one behind the other.
 */
struct blocks {
	void *buffer;
	const void *counts, *displs; /* NULL: each has `count` */
	bool long_counts, long_displs;
	MPI_Count count;
	MPI_Datatype type;
};

/* Those of some ranks, in the order of the nodes, as elements of a type. */
struct run {
	void *buffer;
	MPI_Count count;
	MPI_Datatype type;
	bool made; /* the type is to be freed */
};

struct blocks oci_levels_sent(const struct oci_mpi_call *call);
struct blocks oci_levels_received(const struct oci_mpi_call *call);
MPI_Count oci_levels_count(const struct blocks *b, uint32_t rank);
MPI_Count oci_levels_displ(const struct blocks *b, uint32_t rank);
/* The bytes of those at `from` to `to` in the order of the nodes; SIZE_MAX: beyond that. */
size_t oci_levels_sum(const struct plan *p, const struct blocks *b, uint32_t from, uint32_t to);
/* Do they follow each other? */
bool oci_levels_lie_together(const struct plan *p, const struct blocks *b, uint32_t from,
			     uint32_t to);
/* An MPI error code. */
int oci_levels_run_open(const struct plan *p, const struct blocks *b, uint32_t from, uint32_t to,
			struct run *run);
void oci_levels_run_close(struct run *run);

/* ---- the collectives --------------------------------------------------------------------------
 */

/* What a Bcast's ranks may need for a copy. */
size_t oci_levels_bcast_copy(size_t bytes);

typedef void oci_levels_collective(struct plan *p);
oci_levels_collective oci_levels_barrier, oci_levels_bcast, oci_levels_reduce, oci_levels_allreduce,
	oci_levels_scan;
oci_levels_collective oci_levels_gather, oci_levels_scatter;
oci_levels_collective oci_levels_allgather, oci_levels_alltoall, oci_levels_reduce_scatter;

#endif
