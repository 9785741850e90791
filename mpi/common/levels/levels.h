/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collectives of a communicator that spans nodes: on each node by the team of its members there,
 * and between nodes by the MPI (docs/adr/0029). A node's leader is its first member. Peers are the
 * leaders or, where all nodes have as many members, those with the same place on their nodes; they
 * have parts of a call in shares alone, else parts between nodes are the leaders'.
 *
 *   make.c      the nodes, their communicators and memory: made, agreed on, freed
 *   parts.c     parts of a call: on a node, between leaders; messages; the steps of a call
 *   order.c     blocks of all ranks in the order of the nodes
 *   message.c   Barrier, Bcast, Reduce, Allreduce, Scan, Exscan
 *   rooted.c    Gather, Gatherv, Scatter, Scatterv
 *   exchange.c  Allgather, Allgatherv, Alltoall, Reduce_scatter, Reduce_scatter_block
 *   shares.c    those of them of many bytes where no leader has all of it
 *   run.c       which calls go so; blocking ones
 *   start.c     nonblocking and persistent ones
 *
 * What is here is alike on all members: they have agreed on it, or compute it from what all know.
 * Whether a call goes this way depends on its function, bytes, root, operation and the type of a
 * reduction, and on nothing else. Parts are calls of MPI, with the program's own types and buffers
 * wherever these will do.
 *
 * A collective is a list of steps, each of which has a part at most. The same list is walked by a
 * blocking call, which waits for each part, and by whoever looks at a request (docs/adr/0029).
 */
#ifndef OC_MPI_LEVELS_H
#define OC_MPI_LEVELS_H

#include "base/log.h"
#include "common/request.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

struct node {
	uint64_t id;
	uint32_t ranks, start; /* its members; how many ranks are on the nodes before it */
};

/* Memory between the parts of a call, kept for the next one. */
struct scratch {
	char *bytes;
	size_t room;	/* alike on all members, also those that have none */
	size_t refused; /* a rank had no memory for so much; 0: none yet */
};

/* Nonblocking calls of a communicator that are under way at a time; others wait in their order. */
enum { LANES = 4 };

struct oci_mpi_levels {
	struct oci_mpi_lane *lane; /* of blocking calls */
	/* Of nonblocking ones, each of which takes the next; NULL: not made. */
	struct oci_mpi_lane *lanes[LANES];
	uint64_t started;	      /* how many of them */
	bool lanes_refused, reworded; /* by a rank, then by all; words came after they were made */
	size_t wanted_of_leaders, wanted_of_all; /* room that they lacked */
	uint32_t tags;				 /* given to lanes */
	MPI_Comm all;				 /* for messages; MPI_COMM_NULL: not made yet */
	bool all_refused;			 /* by a rank; then by all */
	uint32_t nodes, mine;			 /* mine: the number of this rank's node */
	uint32_t most;				 /* members of a node */
	bool in_order;				 /* the members of each node follow each other */
	bool even;				 /* all nodes have as many */
	/* The rest: an element for each rank. */
	uint32_t *place, *local; /* the number of its node; its rank there */
	uint32_t *order;	 /* the ranks, in the order of the nodes */
	uint32_t *peers; /* of each node the leader; of even ones the rank with this one's place */
	struct node node_of[];
};

/* ---- make.c -----------------------------------------------------------------------------------
 */

/* NULL: there are none, on all members alike; self->why. */
struct oci_mpi_levels *oci_levels_of(struct oci_mpi_comm *self);
/* Memory between the parts of a call, by what all members know. */
struct need {
	size_t of_leaders, of_all;
};
/* A lane has it on all members, or on none. */
bool oci_levels_room(struct oci_mpi_comm *self, struct oci_mpi_lane *lane, struct need need);
/* The communicator for messages between any two ranks. */
bool oci_levels_messages(struct oci_mpi_comm *self);

struct oci_mpi_lane *oci_levels_lane(struct oci_mpi_comm *self, struct oci_mpi_levels *l,
				     bool able);
void oci_levels_lane_free(struct oci_mpi_lane *lane);
/* For nonblocking calls, with the room that they have asked for; in a call that may wait. */
void oci_levels_make_lanes(struct oci_mpi_comm *self);

/* ---- parts.c ----------------------------------------------------------------------------------
 */

struct plan;

/* One step of a call, all of which are walked also behind an error. */
struct step {
	void (*run)(struct plan *p); /* NULL: behind the last one */
	/* It begins also while the step before has a part between leaders or messages under way;
	 * what that step has on the node is always over. */
	bool beside;
};

/* ---- order.c: buffers with a block for each rank ----------------------------------------------
 */

/* The blocks of some ranks, in the order of the nodes, as elements of a type. */
struct run {
	void *buffer;
	MPI_Count count;
	MPI_Datatype type;
	bool made; /* the type is to be freed */
};

/* ---- a call -----------------------------------------------------------------------------------
 */

struct plan {
	struct oci_mpi_comm *comm;
	struct oci_mpi_levels *l;
	struct oci_mpi_lane *lane;
	const struct oci_mpi_call *call;
	const struct step *next;
	size_t bytes; /* of the message or of a block; of a v-variant all, 0 where not all know */
	bool alike;   /* each block has that many */
	bool leader;
	bool shared;	    /* each rank has a share of the message, which goes between its peers */
	uint32_t root_node; /* of those with a root */
	int status;	    /* of the parts until now */
	bool waits;	    /* each part is over when it returns; else it is begun */
	bool on_node;	    /* lane->part is under way */
	MPI_Request node_request, request; /* the MPI's part on the node, between leaders */
	size_t begun;			   /* messages under way */
	int tag;			   /* theirs */
	/* What a collective keeps between its steps: */
	void *message;		    /* as it goes between the parts */
	MPI_Datatype type;	    /* its elements */
	size_t count, piece;	    /* how many it has in all; a piece has, 0: it goes whole */
	size_t first, length, last; /* of the piece at hand; the length of the one before it */
	bool copied, together_here; /* the message or the blocks; this node's blocks go as one */
	bool sized;		    /* the sizes of this node's blocks are known */
	MPI_Aint own_bytes;	    /* of this rank's block */
	size_t sum;		    /* of the blocks of this rank's node */
	struct oci_mpi_side parts;  /* of a Reduce_scatter */
	struct run give, get;
};

/* Under way. */
struct message {
	MPI_Request request;
	bool from_other; /* received from another rank: of no bytes if that has failed */
};

/* What one call at a time uses. Calls of one lane follow each other on all members alike, so their
 * parts meet; those of several lanes have nothing to do with each other. */
struct oci_mpi_lane {
	MPI_Comm node_comm; /* MPI_COMM_NULL: alone on its node */
	MPI_Comm peers;	    /* of leaders; of even nodes all ranks are somebody's; else none */
	struct oci_mpi_comm *node; /* NULL: alone */
	struct scratch of_leaders, of_all;
	/* Arrays with an element for each rank. */
	oci_port_count *counts, *displs; /* of a part */
	int *lengths;			 /* of a type of several blocks */
	MPI_Aint *places;		 /* the same; or bytes of a node's members */
	struct message *messages;	 /* one more than ranks */
	int tag;     /* of these, this and the next one, on the communicator of all */
	bool failed; /* atomic: peers know of an error here, or this rank of one of theirs */
	/* Of requests. Tickets are given by the program's calls, all else is done by whoever has
	 * the turn (request.c). */
	uint64_t tickets, turn; /* the next one to be given, to be used */
	bool busy;		/* the plan is that of the turn's request */
	struct plan plan;
	struct oci_mpi_request part; /* of the plan, on the node */
};

#define PART_OF(id, of, ...)                                           \
	(&(struct oci_mpi_call){ .collective = (id),                   \
				 .function = (of),                     \
				 .long_scounts = OCI_PORT_LONG_COUNTS, \
				 .long_sdispls = OCI_PORT_LONG_COUNTS, \
				 .long_rcounts = OCI_PORT_LONG_COUNTS, \
				 .long_rdispls = OCI_PORT_LONG_COUNTS, \
				 __VA_ARGS__ })
#define PART(ID, name, ...) PART_OF(OC_##ID, OCI_FUNCTION_##name, __VA_ARGS__)
/* With counts and displacements; where all blocks are `alike` the same without them, by one count.
 */
#define PART_V(alike, ID, name, ...)            \
	PART_OF((alike) ? OC_##ID : OC_##ID##V, \
		(alike) ? OCI_FUNCTION_##name : OCI_FUNCTION_##name##v, __VA_ARGS__)

/* The first error of a call is its own. All of its steps are walked nevertheless, so that no other
 * rank waits for what this one does not send. */
static inline void oci_levels_note(struct plan *p, int error)
{
	if (OCI_LIKELY(p->status == MPI_SUCCESS))
		p->status = error;
}

/* The node's part. After an error of an earlier one, its members are told. */
void oci_levels_on_node(struct plan *p, const struct oci_mpi_call *part);
/* The leaders' part; of a call with shares that of all peers; also behind an error, of whatever the
 * buffers hold then. Of a call in pieces it is only begun. */
void oci_levels_between(struct plan *p, const struct oci_mpi_call *part);
/* If a peer has said that it failed, this rank's calls on the lane fail, too. `looks`: for what has
 * been said by now. */
void oci_levels_hear(struct plan *p, bool looks);
/* Elements of a predefined type, or of one without gaps. */
int oci_levels_copy(void *to, const void *from, size_t count, MPI_Datatype type);
/* From the step at hand, to the one so many before the next. */
void oci_levels_again(struct plan *p, int steps);
/* All steps, waiting for what they begin. */
void oci_levels_walk(struct plan *p);
/* As far as it goes without waiting. True: all of it. */
bool oci_levels_walk_on(struct plan *p);

/* A message on the communicator of all ranks, to this one or from it: begun, and over before a step
 * that is not `beside`. It has a byte at least; of none it is sent behind an error, which so is the
 * receiver's, too. */
void oci_levels_transfer(struct plan *p, bool sends, void *buffer, MPI_Count count,
			 MPI_Datatype type, uint32_t rank);

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

/* What this rank adds up. */
static inline const void *oci_levels_operand(const struct plan *p)
{
	return p->call->sbuf == MPI_IN_PLACE ? p->call->rbuf : p->call->sbuf;
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
 */

MPI_Count oci_levels_count(const struct oci_mpi_side *b, uint32_t rank);
MPI_Count oci_levels_displ(const struct oci_mpi_side *b, uint32_t rank);
/* Fill the lane's arrays, of the blocks of these ranks or of a node's, and return the sum of the
 * counts. An element counts `unit`, and the blocks follow each other; 0: it counts one, and they
 * are where they lie in the buffer. (A call of no bytes, whose type has none, does not come here.)
 */
MPI_Count oci_levels_arrays(const struct plan *p, const struct oci_mpi_side *b,
			    const uint32_t *ranks, uint32_t n, size_t unit);
MPI_Count oci_levels_node_arrays(const struct plan *p, const struct oci_mpi_side *b,
				 const struct node *node, size_t unit);
/* The bytes of those at `from` to `to` in the order of the nodes; SIZE_MAX: beyond that. */
size_t oci_levels_sum(const struct plan *p, const struct oci_mpi_side *b, uint32_t from,
		      uint32_t to);
/* Do they follow each other? */
bool oci_levels_lie_together(const struct plan *p, const struct oci_mpi_side *b, uint32_t from,
			     uint32_t to);
/* An MPI error code. */
int oci_levels_run_open(const struct plan *p, const struct oci_mpi_side *b, uint32_t from,
			uint32_t to, struct run *run);
void oci_levels_run_close(struct run *run);

/* ---- run.c ------------------------------------------------------------------------------------
 */

/* What is known of a call before anything is made for it. False: it moves nothing, on any member.
 */
bool oci_levels_survey(struct plan *p, struct oci_mpi_comm *self, const struct oci_mpi_call *call,
		       bool waits);
/* The rest, of one that goes in two levels. */
void oci_levels_open(struct plan *p, struct oci_mpi_lane *lane, const struct oci_mpi_call *call);
/* Why it does not, alike on all members; NULL: it may, as far as is known before the nodes are. */
const char *oci_levels_refusal(const struct plan *p);
/* The same, once they are. */
const char *oci_levels_lack(const struct plan *p);
struct need oci_levels_need(const struct plan *p);
#define OCI_LEVELS_NO_SCRATCH "a rank has no memory for its node's blocks"
#define OCI_LEVELS_NO_MESSAGES "a rank has no communicator for messages between nodes"
/* Messages between its ranks are a part of it. */
bool oci_levels_has_messages(const struct plan *p);
/* What has become of it, counted; an MPI error code. */
int oci_levels_close(const struct plan *p);

/* ---- the collectives --------------------------------------------------------------------------
 */

/* Of a call that goes in shares; NULL: it does not. */
const struct step *oci_levels_shares(const struct plan *p);
/* The memory of each rank that it needs. */
size_t oci_levels_shares_need(const struct plan *p);
/* This rank's block of an Allgather, also where it lies among the others already. */
struct oci_mpi_side oci_levels_own(const struct plan *p, const struct oci_mpi_side *all);
/* Up to how many bytes, in the mean, a node's blocks of a Gather or Scatter travel as one message.
 */
size_t oci_levels_together(const struct plan *p);
/* The blocks of a Reduce_scatter's vector: p->parts. */
void oci_levels_cut_parts(struct plan *p);
/* What a Bcast's ranks may need for a copy. */
size_t oci_levels_bcast_copy(const struct plan *p);
/* As ranks may have other types, what is cut is of bytes, in the buffer or in a copy: p->message;
 * and back. */
void oci_levels_bcast_bytes(struct plan *p);
void oci_levels_bcast_close(struct plan *p);

extern const struct step oci_levels_barrier[], oci_levels_bcast[], oci_levels_reduce[],
	oci_levels_allreduce[], oci_levels_scan[];
extern const struct step oci_levels_rooted[];
extern const struct step oci_levels_allgather[], oci_levels_alltoall[], oci_levels_reduce_scatter[];

#endif
