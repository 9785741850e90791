/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collectives of a communicator that spans nodes: on each node by the team of its members there,
 * and between nodes by the MPI (docs/adr/0029). A node's leader is its first member.
 *
 * What is here is alike on all members: they have agreed on it, or compute it from what all know.
 * Whether a call goes this way depends on its function, bytes and root, and on nothing else. Parts
 * are calls of MPI, with the program's own types and buffers wherever these will do.
 *
 * A Gather and a Scatter let the root talk to the leaders itself, by the MPI's v-variant on the
 * program's communicator, in which all others have nothing: so no byte makes a hop on the root's
 * node, whichever rank is the root.
 *
 * One file, as a call's parts are right only by what was agreed on before them.
 */
#include "common/comm.h"
#include "common/say.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define NOT_SERVED "on several nodes this function is the MPI's own"
#define TOO_LARGE "on several nodes a call of 2 GiB or more is the MPI's own"
#define APART "the ranks of a node do not follow each other in the communicator"
#define OWN_OPERATION "on several nodes a reduction by an operation of the program is the MPI's own"
#define NO_TEAM "on one of the nodes the ranks could not form a team"
#define NO_MEMORY "a rank has no memory for it, or 256 such communicators already"
#define ALONE "each rank is alone on its node"
#define NO_SCRATCH "a rank has no memory for its node's blocks"

/* Communicators of a process that have them at a time: each takes two of the MPI's, of which there
 * are 2048 in MPICH. */
enum { MOST = 256 };
static uint32_t alive; /* atomic */

struct node {
	uint64_t id;
	uint32_t first, ranks; /* its leader; its members */
};

struct oci_mpi_levels {
	MPI_Comm node_comm, leaders; /* MPI_COMM_NULL: alone on its node; no leader */
	struct oci_mpi_comm *node;   /* NULL: alone */
	uint32_t nodes, mine;	     /* mine: the number of this rank's node */
	uint32_t most;		     /* members of a node */
	bool in_order;		     /* the members of each node follow each other */
	bool no_scratch;	     /* a rank had no memory for more than `room` */
	char *scratch;		     /* of a leader */
	size_t room;		     /* alike on all members, of whom only leaders have it */
	uint32_t *place;	     /* size: the number of each rank's node */
	uint32_t *local;	     /* size: its rank there */
	int *counts, *displs;	     /* size: of a v-variant */
	struct node node_of[];	     /* size */
};

/* ---- made in the first call -------------------------------------------------------------------
 */

/* 1: all members said yes. */
static bool all_can(struct oci_mpi_comm *self, bool can)
{
	const long own[2] = { can, 0 };
	long least[2] = { 0, 0 };

	return oci_port_least(self, own, least) == MPI_SUCCESS && least[0];
}

/* As few nodes come often, each is looked for from the last one found on. */
static uint32_t number_of(struct oci_mpi_levels *l, uint64_t id, uint32_t last)
{
	for (uint32_t i = 0; i < l->nodes; i++) {
		uint32_t n = (last + i) % l->nodes;

		if (l->node_of[n].id == id)
			return n;
	}
	l->node_of[l->nodes] = (struct node){ .id = id };
	return l->nodes++;
}

/* In the order of their leaders. */
static void survey(struct oci_mpi_comm *self, struct oci_mpi_levels *l)
{
	uint32_t n = 0;

	l->in_order = true;
	for (uint32_t r = 0; r < self->size; r++) {
		struct node *node;

		n = number_of(l, oci_port_node(self, r), n);
		node = &l->node_of[n];
		if (!node->ranks)
			node->first = r;
		else if (l->place[r - 1] != n)
			l->in_order = false;
		l->place[r] = n;
		l->local[r] = node->ranks++;
		if (node->ranks > l->most)
			l->most = node->ranks;
	}
	l->mine = l->place[self->rank];
}

static struct oci_mpi_levels *levels_allocate(uint32_t size)
{
	struct oci_mpi_levels *l = calloc(1, sizeof(*l) + size * sizeof(l->node_of[0]));

	if (!l)
		return NULL;
	l->node_comm = l->leaders = MPI_COMM_NULL;
	l->place = calloc(size, 2 * sizeof(l->place[0]));
	l->counts = calloc(size, 2 * sizeof(l->counts[0]));
	if (!l->place || !l->counts) {
		free(l->place);
		free(l->counts);
		free(l);
		return NULL;
	}
	l->local = l->place + size;
	l->displs = l->counts + size;
	return l;
}

static void levels_free(struct oci_mpi_levels *l)
{
	if (l->leaders != MPI_COMM_NULL)
		oci_port_free(&l->leaders);
	if (l->node_comm != MPI_COMM_NULL)
		oci_port_free(&l->node_comm);
	free(l->scratch);
	free(l->place);
	free(l->counts);
	free(l);
	__atomic_fetch_sub(&alive, 1, __ATOMIC_RELAXED);
}

static bool is_leader(const struct oci_mpi_comm *self, const struct oci_mpi_levels *l)
{
	return !l->local[self->rank];
}

/* Both communicators, whatever becomes of the first, as the others are in it; and the node's team.
 */
static bool divide(struct oci_mpi_comm *self, struct oci_mpi_levels *l)
{
	bool alone = l->node_of[l->mine].ranks == 1;
	int of_node = oci_port_split(self, alone ? -1 : (int)l->mine, &l->node_comm);
	int of_leaders = oci_port_split(self, is_leader(self, l) ? 0 : -1, &l->leaders);

	if (of_node != MPI_SUCCESS || of_leaders != MPI_SUCCESS)
		return false;
	if (alone)
		return true;
	l->node = oci_port_comm(l->node_comm);
	if (!l->node || l->node->spans)
		return false;
	memcpy(l->node->forced, self->forced, sizeof(self->forced));
	return oci_mpi_team(l->node);
}

/* NULL: refused, on all members alike; the reason. */
static struct oci_mpi_levels *levels_make(struct oci_mpi_comm *self, const char **why)
{
	struct oci_mpi_levels *l = levels_allocate(self->size);
	bool slot = __atomic_fetch_add(&alive, 1, __ATOMIC_RELAXED) < MOST;

	*why = NO_MEMORY;
	if (all_can(self, l && slot)) {
		survey(self, l);
		*why = l->most > 1 ? NO_TEAM : ALONE;
		if (l->nodes > 1 && l->most > 1 && all_can(self, divide(self, l)))
			return l;
	}
	if (l)
		levels_free(l);
	else
		__atomic_fetch_sub(&alive, 1, __ATOMIC_RELAXED);
	oci_mpi_info("collectives of a communicator that spans nodes stay with the MPI: %s", *why);
	return NULL;
}

/* While they are made, the MPI's functions may call collectives of the communicator, alike on all
 * members; these are its own. */
static struct oci_mpi_levels *levels_of(struct oci_mpi_comm *self)
{
	if (OCI_LIKELY(self->levels || self->refused))
		return self->levels;
	self->making = true;
	self->levels = levels_make(self, &self->why);
	self->making = false;
	self->refused = !self->levels;
	return self->levels;
}

void oci_mpi_levels_free(struct oci_mpi_comm *self)
{
	if (self->levels)
		levels_free(self->levels);
	self->levels = NULL;
}

void oci_mpi_levels_force(struct oci_mpi_comm *self, int collective)
{
	if (self->levels && self->levels->node)
		oci_mpi_force(self->levels->node, collective, self->forced[collective]);
}

/* ---- parts of a call --------------------------------------------------------------------------
 */

/* What is known of a call before its parts. */
struct plan {
	struct oci_mpi_comm *comm;
	struct oci_mpi_levels *l;
	const struct oci_mpi_call *call;
	size_t bytes; /* of the message, or of a block */
	bool leader;
	uint32_t root_node; /* of those with a root */
	int status;	    /* of the parts until now */
};

#define PART(ID, name, ...)                                       \
	(&(struct oci_mpi_call){ .collective = OC_##ID,           \
				 .function = OCI_FUNCTION_##name, \
				 __VA_ARGS__ })

/* The node's part. After an error of an earlier one, its members are told. */
static void on_node(struct plan *p, const struct oci_mpi_call *part)
{
	struct oci_mpi_comm *node = p->l->node;
	const struct oc_call call = {
		.collective = part->collective,
		.root = (uint32_t)part->root,
		.bytes = p->bytes,
	};
	int status;

	if (!node)
		return;
	if (OCI_UNLIKELY(p->status != MPI_SUCCESS)) {
		oci_mpi_run_engine(node, &call, -EIO);
		return;
	}
	status = oci_mpi_run(node, part);
	p->status = status == OC_HAND_BACK ? oci_port_call(node->comm, part) : status;
}

static void between_leaders(struct plan *p, const struct oci_mpi_call *part)
{
	if (p->leader && p->status == MPI_SUCCESS)
		p->status = oci_port_call(p->l->leaders, part);
}

static void on_all(struct plan *p, const struct oci_mpi_call *part)
{
	if (p->status == MPI_SUCCESS)
		p->status = oci_port_call(p->comm->comm, part);
}

static uint32_t my_local(const struct plan *p)
{
	return p->l->local[p->comm->rank];
}

static bool is_root(const struct plan *p)
{
	return (uint32_t)p->call->root == p->comm->rank;
}

/* The root's rank on its own node; elsewhere the leader stands for it. */
static int root_here(const struct plan *p)
{
	return p->l->mine == p->root_node ? (int)p->l->local[p->call->root] : 0;
}

static void *at(const void *buffer, size_t elements, MPI_Datatype type)
{
	struct oci_port_type shape;

	oci_port_type_get(type, &shape);
	return (void *)((uintptr_t)buffer + elements * (size_t)shape.extent);
}

static void barrier(struct plan *p)
{
	on_node(p, PART(BARRIER, barrier, ));
	between_leaders(p, PART(BARRIER, barrier, ));
	on_node(p, PART(BARRIER, barrier, ));
}

static void bcast_on_node(struct plan *p, void *buffer, MPI_Count count, MPI_Datatype type,
			  int root)
{
	on_node(p,
		PART(BCAST, bcast, .buffer = buffer, .count = count, .type = type, .root = root));
}

/* A root that is no leader gives its leader the message with its whole node. */
static void bcast(struct plan *p)
{
	const struct oci_mpi_call *c = p->call;
	bool first = root_here(p) != 0;

	if (first)
		bcast_on_node(p, c->buffer, c->count, c->type, root_here(p));
	between_leaders(p, PART(BCAST, bcast, .buffer = c->buffer, .count = c->count,
				.type = c->type, .root = (int)p->root_node));
	if (!first)
		bcast_on_node(p, c->buffer, c->count, c->type, 0);
}

/* To the leader, which gets it in `result`, where it may have its own operand already. */
static void reduce_on_node(struct plan *p, void *result)
{
	const struct oci_mpi_call *c = p->call;
	const void *own = c->sbuf;

	/* In place means something on the leader alone; others have their operand in rbuf. */
	if (own == MPI_IN_PLACE && (!p->leader || result != c->rbuf))
		own = c->rbuf;
	on_node(p, PART(REDUCE, reduce, .sbuf = own, .rbuf = result, .scount = c->scount,
			.stype = c->stype, .op = c->op, .root = 0));
}

static void allreduce(struct plan *p)
{
	const struct oci_mpi_call *c = p->call;

	reduce_on_node(p, c->rbuf);
	between_leaders(p,
			PART(ALLREDUCE, allreduce, .sbuf = p->l->node ? MPI_IN_PLACE : c->sbuf,
			     .rbuf = c->rbuf, .scount = c->scount, .stype = c->stype, .op = c->op));
	bcast_on_node(p, c->rbuf, c->scount, c->stype, 0);
}

/* From the leader to a root that is none: a Scatter of one block that is not empty. */
static void hand_over(struct plan *p, void *result)
{
	const struct oci_mpi_call *c = p->call;
	struct oci_mpi_levels *l = p->l;
	uint32_t ranks = l->node_of[l->mine].ranks;

	if (!root_here(p))
		return;
	memset(l->counts, 0, ranks * sizeof(l->counts[0]));
	memset(l->displs, 0, ranks * sizeof(l->displs[0]));
	l->counts[root_here(p)] = (int)c->scount;
	on_node(p,
		PART(SCATTERV, scatterv, .sbuf = result, .scounts = l->counts, .sdispls = l->displs,
		     .stype = c->stype, .rbuf = is_root(p) ? c->rbuf : NULL,
		     .rcount = is_root(p) ? c->scount : 0, .rtype = c->stype, .root = 0));
}

static void reduce(struct plan *p)
{
	const struct oci_mpi_call *c = p->call;
	bool lead_root = p->leader && p->l->mine == p->root_node, alone = !p->l->node;
	void *result = is_root(p) ? c->rbuf : p->l->scratch;

	reduce_on_node(p, result);
	between_leaders(p, PART(REDUCE, reduce,
				.sbuf = alone	  ? c->sbuf :
					lead_root ? MPI_IN_PLACE :
						    result,
				.rbuf = lead_root ? result : NULL, .scount = c->scount,
				.stype = c->stype, .op = c->op, .root = (int)p->root_node));
	hand_over(p, result);
}

/* The root's arrays of a v-variant with the leaders: `count` elements for each member of a node;
 * its own node's are moved there. */
static void blocks_of_leaders(struct plan *p, MPI_Count count)
{
	struct oci_mpi_levels *l = p->l;

	memset(l->counts, 0, p->comm->size * sizeof(l->counts[0]));
	for (uint32_t n = 0; n < l->nodes; n++) {
		const struct node *node = &l->node_of[n];

		l->displs[node->first] = (int)((MPI_Count)node->first * count);
		if (n != p->root_node)
			l->counts[node->first] = (int)((MPI_Count)node->ranks * count);
	}
}

static void gather(struct plan *p)
{
	const struct oci_mpi_call *c = p->call;
	struct oci_mpi_levels *l = p->l;
	const struct node *node = &l->node_of[l->mine];
	bool sends = p->leader && l->mine != p->root_node;

	if (l->mine == p->root_node)
		on_node(p, PART(GATHER, gather, .sbuf = c->sbuf, .scount = c->scount,
				.stype = c->stype,
				.rbuf = is_root(p) ? at(c->rbuf, node->first * (size_t)c->rcount,
							c->rtype) :
						     NULL,
				.rcount = c->rcount, .rtype = c->rtype, .root = root_here(p)));
	else
		on_node(p, PART(GATHER, gather, .sbuf = c->sbuf, .scount = c->scount,
				.stype = c->stype, .rbuf = l->scratch,
				.rcount = (MPI_Count)p->bytes, .rtype = MPI_BYTE, .root = 0));
	if (is_root(p)) {
		blocks_of_leaders(p, c->rcount);
		if (!l->node && c->sbuf != MPI_IN_PLACE)
			l->counts[c->root] = (int)c->rcount;
		on_all(p, PART(GATHERV, gatherv, .sbuf = l->node ? MPI_IN_PLACE : c->sbuf,
			       .scount = c->scount, .stype = c->stype, .rbuf = c->rbuf,
			       .rcounts = l->counts, .rdispls = l->displs, .rtype = c->rtype,
			       .root = c->root));
	} else if (sends && !l->node) {
		on_all(p, PART(GATHERV, gatherv, .sbuf = c->sbuf, .scount = c->scount,
			       .stype = c->stype, .root = c->root));
	} else {
		on_all(p, PART(GATHERV, gatherv, .sbuf = l->scratch,
			       .scount = sends ? (MPI_Count)(node->ranks * p->bytes) : 0,
			       .stype = MPI_BYTE, .root = c->root));
	}
}

static void scatter(struct plan *p)
{
	const struct oci_mpi_call *c = p->call;
	struct oci_mpi_levels *l = p->l;
	const struct node *node = &l->node_of[l->mine];
	bool gets = p->leader && l->mine != p->root_node;

	if (is_root(p)) {
		blocks_of_leaders(p, c->scount);
		if (!l->node && c->rbuf != MPI_IN_PLACE)
			l->counts[c->root] = (int)c->scount;
		on_all(p, PART(SCATTERV, scatterv, .sbuf = c->sbuf, .scounts = l->counts,
			       .sdispls = l->displs, .stype = c->stype,
			       .rbuf = l->node ? MPI_IN_PLACE : c->rbuf, .rcount = c->rcount,
			       .rtype = c->rtype, .root = c->root));
	} else if (gets && !l->node) {
		on_all(p, PART(SCATTERV, scatterv, .rbuf = c->rbuf, .rcount = c->rcount,
			       .rtype = c->rtype, .root = c->root));
	} else {
		on_all(p, PART(SCATTERV, scatterv, .rbuf = l->scratch,
			       .rcount = gets ? (MPI_Count)(node->ranks * p->bytes) : 0,
			       .rtype = MPI_BYTE, .root = c->root));
	}
	if (l->mine == p->root_node)
		on_node(p, PART(SCATTER, scatter, .rbuf = c->rbuf, .rcount = c->rcount,
				.rtype = c->rtype,
				.sbuf = is_root(p) ? at(c->sbuf, node->first * (size_t)c->scount,
							c->stype) :
						     NULL,
				.scount = c->scount, .stype = c->stype, .root = root_here(p)));
	else
		on_node(p, PART(SCATTER, scatter, .rbuf = c->rbuf, .rcount = c->rcount,
				.rtype = c->rtype, .sbuf = l->scratch,
				.scount = (MPI_Count)p->bytes, .stype = MPI_BYTE, .root = 0));
}

/* The leader gathers its node's blocks where they belong, and has all of them in the end. */
static void allgather(struct plan *p)
{
	const struct oci_mpi_call *c = p->call;
	struct oci_mpi_levels *l = p->l;
	const struct node *node = &l->node_of[l->mine];
	bool lies = c->sbuf == MPI_IN_PLACE && my_local(p);

	on_node(p, PART(GATHER, gather,
			.sbuf = lies ? at(c->rbuf, p->comm->rank * (size_t)c->rcount, c->rtype) :
				       c->sbuf,
			.scount = lies ? c->rcount : c->scount, .stype = lies ? c->rtype : c->stype,
			.rbuf = at(c->rbuf, node->first * (size_t)c->rcount, c->rtype),
			.rcount = c->rcount, .rtype = c->rtype, .root = 0));
	for (uint32_t n = 0; n < l->nodes; n++) {
		l->counts[n] = (int)((MPI_Count)l->node_of[n].ranks * c->rcount);
		l->displs[n] = (int)((MPI_Count)l->node_of[n].first * c->rcount);
	}
	between_leaders(p, PART(ALLGATHERV, allgatherv, .sbuf = l->node ? MPI_IN_PLACE : c->sbuf,
				.scount = c->scount, .stype = c->stype, .rbuf = c->rbuf,
				.rcounts = l->counts, .rdispls = l->displs, .rtype = c->rtype));
	bcast_on_node(p, c->rbuf, (MPI_Count)p->comm->size * c->rcount, c->rtype, 0);
}

/* ---- which calls ------------------------------------------------------------------------------
 */

/* Those that are their function's own collective: an Alltoallw has another's. */
static void (*const two_levels[OCI_FUNCTIONS])(struct plan *p) = {
	[OCI_FUNCTION_barrier] = barrier,     [OCI_FUNCTION_bcast] = bcast,
	[OCI_FUNCTION_reduce] = reduce,	      [OCI_FUNCTION_allreduce] = allreduce,
	[OCI_FUNCTION_gather] = gather,	      [OCI_FUNCTION_scatter] = scatter,
	[OCI_FUNCTION_allgather] = allgather,
};

/* Of the message or a block, as all members know it; SIZE_MAX: more than there can be. */
static size_t bytes_of(const struct oci_mpi_comm *self, const struct oci_mpi_call *c)
{
	bool root = (uint32_t)c->root == self->rank;
	bool sent = oci_is_reduction(c->collective) || oci_size_is_sent(c->collective, root);
	struct oci_port_type shape;
	size_t bytes;

	if (!oci_row_sends(c->collective))
		return 0;
	oci_port_type_get(sent ? c->stype : c->rtype, &shape);
	if (__builtin_mul_overflow((size_t)(sent ? c->scount : c->rcount), shape.size, &bytes))
		return SIZE_MAX;
	return bytes;
}

static bool has_blocks(enum oc_collective collective)
{
	return oci_sends_each(collective) || oci_receives_each(collective);
}

/* Before anything is made for it. NULL: it may go in two levels. */
static const char *refusal(const struct oci_mpi_comm *self, const struct oci_mpi_call *c,
			   size_t bytes)
{
	size_t all = bytes;

	if (!two_levels[c->function])
		return NOT_SERVED;
	if (has_blocks(c->collective) && __builtin_mul_overflow(bytes, self->size, &all))
		return TOO_LARGE;
	/* The MPI's functions take counts of int, of bytes too. */
	if (all > INT_MAX)
		return TOO_LARGE;
	if (oci_is_reduction(c->collective) && !oci_port_op_id(c->op))
		return OWN_OPERATION;
	if (!strcmp(self->forced[c->collective], "mpi"))
		return "the MPI's own algorithm was chosen for this size";
	return oc_levels_refusal(c->collective, bytes);
}

/* What leaders need in between, by what all members know: elements of predefined types have one
 * extent. */
static size_t scratch_bytes(const struct plan *p)
{
	const struct oci_mpi_call *c = p->call;
	struct oci_port_type shape;

	if (c->collective == OC_GATHER || c->collective == OC_SCATTER)
		return p->bytes * p->l->most;
	if (c->collective != OC_REDUCE)
		return 0;
	oci_port_type_get(c->stype, &shape);
	return (size_t)c->scount * (size_t)shape.extent;
}

/* More of it is had by all or by none. */
static bool has_scratch(struct plan *p)
{
	struct oci_mpi_levels *l = p->l;
	size_t bytes = scratch_bytes(p), room = l->room ? l->room : (size_t)64 << 10;
	char *scratch = NULL;

	if (OCI_LIKELY(bytes <= l->room))
		return true;
	if (l->no_scratch)
		return false;
	while (room < bytes)
		room *= 2;
	if (p->leader)
		scratch = malloc(room);
	l->no_scratch = !all_can(p->comm, !p->leader || scratch);
	if (l->no_scratch) {
		free(scratch);
		return false;
	}
	free(l->scratch);
	l->scratch = scratch;
	l->room = room;
	return true;
}

int oci_mpi_levels_run(struct oci_mpi_comm *self, const struct oci_mpi_call *call)
{
	struct plan p = { .comm = self, .call = call, .status = MPI_SUCCESS };
	const char *reason;

	if (self->making)
		return OC_HAND_BACK;
	if (two_levels[call->function]) {
		p.bytes = bytes_of(self, call);
		if (!p.bytes && oci_row_sends(call->collective))
			return MPI_SUCCESS;
	}
	reason = refusal(self, call, p.bytes);
	if (!reason) {
		p.l = levels_of(self);
		if (!p.l)
			reason = self->why;
		else if (has_blocks(call->collective) && !p.l->in_order)
			reason = APART;
	}
	if (!reason) {
		p.leader = is_leader(self, p.l);
		if (!has_scratch(&p))
			reason = NO_SCRATCH;
	}
	if (reason) {
		oci_mpi_count_back(call, reason);
		return OC_HAND_BACK;
	}
	if (oci_is_rooted(call->collective))
		p.root_node = p.l->place[call->root];
	two_levels[call->function](&p);
	if (p.status == MPI_SUCCESS)
		oc_count_levels(call->collective, p.bytes);
	return p.status;
}
