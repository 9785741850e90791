/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The bootstrap of a team: a nonblocking allgather over point-to-point messages on the
 * communicator itself.
 *
 * Bruck's: in round k a rank sends all the blocks that it has to rank - 2^k and receives as many
 * from rank + 2^k, so after ceil(log2 p) rounds it has all of them, in the order of its own rank,
 * rank + 1, ...; the last step rotates. Nothing blocks: a round ends when its two requests are
 * found complete, and completing them is left to whoever drives opal_progress().
 *
 * A member without memory for its part abstains: it sends empty messages, and whoever receives one
 * goes on with empty ones. As each rank's result depends on every rank's block, the allgather then
 * fails on all members, and the team is refused alike.
 *
 * Messages have tags that nobody else has. coll_tags.h deals out -10 and below: -10 to -26 to the
 * blocking collectives, everything from -27 down to -INT_MAX to libnbc and other nonblocking ones,
 * neighbourhood collectives and hcoll. -1 is MPI_ANY_TAG. -2 to -9 belong to nobody (searched in
 * 4.1.4's ompi/ and opal/), are never matched by a user's MPI_ANY_TAG, which takes tags from 0 on
 * only, and, unlike numbers near -INT_MAX, fit the 24 bits that pml/ucx has for a tag.
 *
 * A communicator may have several teams (persistent.c). Their bootstraps take turns, in the order
 * of their creation, which is that of the program's calls and so alike on all members: each begins
 * when the one before has been released, and messages of two never mix.
 *
 * Two tags, taken in turns, for a communicator that allows overtaking: within one allgather a pair
 * of ranks exchanges one message a direction, and a rank is never more than one allgather ahead of
 * another, as each needs everybody's block of the one before.
 */
#include "component.h"

#include "ompi/mca/pml/pml.h"
#include "ompi/mca/rte/rte.h"
#include "opal/runtime/opal_progress.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define TAG(sequence) (-8 - (int)((sequence)&1))

struct bootstrap {
	oci_ompi_comm *comm; /* a reference, dropped by reap */
	struct oci_ompi_module *module;
	uint64_t number; /* of this communicator's */
	bool begun;	 /* it had its turn */
	const void *own; /* while it waits for its turn, this rank's block */
	uint32_t rank, size;
	uint32_t have;	   /* blocks gathered so far: 1, 2, 4, ... size; 0: nothing is under way */
	uint32_t incoming; /* blocks on their way */
	uint64_t sequence; /* of this communicator's allgathers */
	size_t bytes;
	bool refused; /* some member abstains: only empty messages are sent */
	char *blocks; /* of rank, rank + 1, ... */
	char *result; /* the engine's buffer, in rank order */
	ompi_request_t *send, *receive;
	struct bootstrap *next; /* in `released` */
};

/* Pushed by any thread, emptied by reap. */
static struct bootstrap *released;

/* This thread is destroying a communicator and now its team. */
static _Thread_local bool comm_gone;

/* This thread holds the engine's lock and is in the point-to-point layer. */
static _Thread_local bool sends __attribute__((tls_model("initial-exec")));

bool oci_ompi_bootstrap_sends(void)
{
	return sends;
}

static int send_and_receive(struct bootstrap *self)
{
	uint32_t blocks = self->size - self->have;
	int to = (int)((self->rank + self->size - self->have) % self->size);
	int from = (int)((self->rank + self->have) % self->size);
	int error;

	if (blocks > self->have)
		blocks = self->have;
	error = MCA_PML_CALL(irecv(self->blocks + self->have * self->bytes, blocks * self->bytes,
				   &ompi_mpi_byte.dt, from, TAG(self->sequence), self->comm,
				   &self->receive));
	if (error != OMPI_SUCCESS) {
		self->receive = NULL;
		return -EIO;
	}
	error = MCA_PML_CALL(isend(self->blocks, self->refused ? 0 : blocks * self->bytes,
				   &ompi_mpi_byte.dt, to, TAG(self->sequence),
				   MCA_PML_BASE_SEND_STANDARD, self->comm, &self->send));
	if (error != OMPI_SUCCESS) {
		self->send = NULL;
		return -EIO;
	}
	self->incoming = blocks;
	return 0;
}

static int start_round(struct bootstrap *self)
{
	int error;

	sends = true;
	error = send_and_receive(self);
	sends = false;
	return error;
}

static void rotate(struct bootstrap *self)
{
	size_t first = (self->size - self->rank) * self->bytes; /* blocks of rank .. size - 1 */

	memcpy(self->result + self->rank * self->bytes, self->blocks, first);
	memcpy(self->result, self->blocks + first, self->rank * self->bytes);
}

static bool has_turn(struct bootstrap *self)
{
	if (!self->begun && self->module->bootstrapped == self->number)
		self->begun = true;
	return self->begun;
}

static int allgather_begin(struct bootstrap *self)
{
	if (!self->refused)
		memcpy(self->blocks, self->own, self->bytes);
	self->own = NULL;
	self->have = 1;
	self->sequence = ++self->module->messages;
	return self->size == 1 ? 0 : start_round(self);
}

static int allgather_start(void *context, const void *send, size_t bytes, void *receive)
{
	struct bootstrap *self = context;

	if (self->have || self->own)
		return -EBUSY;
	self->blocks = send ? malloc(self->size * bytes + 1) : NULL;
	self->refused = !self->blocks;
	self->bytes = self->refused ? 0 : bytes;
	self->result = receive;
	self->own = send ? send : "";
	return has_turn(self) ? allgather_begin(self) : 0;
}

/* 1 and *request is NULL: complete (or there was none); 0: not yet; -errno. */
static int finish(ompi_request_t **request, size_t bytes)
{
	int error;

	if (!*request)
		return 1;
	if (!REQUEST_COMPLETE(*request))
		return 0;
	opal_atomic_rmb(); /* pairs with the write barrier of ompi_request_complete() */
	error = (*request)->req_status.MPI_ERROR;
	if (bytes && (*request)->req_status._ucount != bytes)
		error = OMPI_ERROR;
	ompi_request_free(request);
	*request = NULL;
	return error == OMPI_SUCCESS ? 1 : -EIO;
}

static int allgather_test(void *context)
{
	struct bootstrap *self = context;
	int done;

	if (self->own) {
		if (!has_turn(self))
			return 0;
		done = allgather_begin(self);
		if (done)
			return done;
	}
	while (self->have < self->size) {
		done = finish(&self->receive, self->incoming * self->bytes);
		if (done < 0) {
			self->refused = true;
			done = 1;
		}
		if (done == 1)
			done = finish(&self->send, 0);
		if (done != 1)
			return done;
		self->have += self->incoming;
		if (self->have < self->size) {
			done = start_round(self);
			if (done)
				return done;
		}
	}
	if (!self->refused)
		rotate(self);
	free(self->blocks);
	self->blocks = NULL;
	self->have = 0;
	return self->refused ? -ENOMEM : 1;
}

/*
 * Also called with messages under way, when the team is refused or destroyed in the middle. A
 * receive can be cancelled, a send cannot: its buffer must stay, so it is left to the process.
 */
static void release(void *context)
{
	struct bootstrap *self = context;
	bool sending, receiving;

	if (comm_gone)
		return;
	if (self->begun)
		self->module->bootstrapped++;
	else
		self->module->bootstraps--; /* the team could not be made: its number is free */
	sending = finish(&self->send, 0) == 0;
	receiving = finish(&self->receive, 0) == 0;
	if (receiving) {
		ompi_request_cancel(self->receive);
		receiving = finish(&self->receive, 0) == 0;
	}
	if (receiving)
		ompi_request_free(&self->receive);
	if (sending)
		ompi_request_free(&self->send);
	if (!sending && !receiving)
		free(self->blocks);
	self->next = __atomic_load_n(&released, __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(&released, &self->next, self, false, __ATOMIC_RELEASE,
					    __ATOMIC_RELAXED))
		;
}

/*
 * MPI_Finalize destroys what is left by dropping references that are not its own. A bootstrap that
 * is still under way then has lost its communicator and with it its messages: it is abandoned.
 */
int oci_ompi_bootstrap_team_destroy(struct oc_team *team)
{
	int error;

	comm_gone = true;
	error = oc_team_destroy(team);
	comm_gone = false;
	return error;
}

void oci_ompi_bootstrap_reap(void)
{
	struct bootstrap *list, *next;

	if (!__atomic_load_n(&released, __ATOMIC_RELAXED))
		return;
	list = __atomic_exchange_n(&released, NULL, __ATOMIC_ACQUIRE);
	for (; list; list = next) {
		next = list->next;
		OBJ_RELEASE(list->comm);
		free(list);
	}
}

void oci_ompi_bootstrap_abstain(struct oci_ompi_module *module, oci_ompi_comm *comm)
{
	struct bootstrap self = {
		.comm = comm,
		.module = module,
		.number = module->bootstraps++,
		.rank = (uint32_t)ompi_comm_rank(comm),
		.size = (uint32_t)ompi_comm_size(comm),
	};

	if (!allgather_start(&self, NULL, 0, NULL))
		while (!allgather_test(&self))
			opal_progress();
	module->bootstrapped++;
}

int oci_ompi_bootstrap_create(struct oci_ompi_module *module, oci_ompi_comm *comm,
			      struct oc_bootstrap *bootstrap)
{
	struct bootstrap *self = calloc(1, sizeof(*self));

	if (!self)
		return -ENOMEM;
	self->comm = comm;
	OBJ_RETAIN(comm);
	self->module = module;
	self->number = module->bootstraps++;
	self->rank = (uint32_t)ompi_comm_rank(comm);
	self->size = (uint32_t)ompi_comm_size(comm);
	*bootstrap = (struct oc_bootstrap){
		.rank = self->rank,
		.size = self->size,
		/* num_local_peers does not count this process */
		.node_ranks = (uint32_t)ompi_process_info.num_local_peers + 1,
		.context = self,
		.allgather_start = allgather_start,
		.allgather_test = allgather_test,
		.release = release,
	};
	return 0;
}
