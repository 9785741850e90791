/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The bootstrap of a team: nonblocking allgathers over point-to-point messages.
 *
 * A first PMPI_Iallgather on the program's communicator, which all members start at the same place
 * among their collectives, tells each member the others' number for this team. It is also what
 * keeps a communicator alive that is freed in the meantime. All else are messages on our duplicate
 * of MPI_COMM_WORLD, tagged with the receiver's number: a collective on the program's communicator,
 * or a duplicate of it, would have to be started by all members at one place, and MPICH has no more
 * than 2048 communicators' worth of context ids.
 *
 * The allgathers are Bruck's: in round k a rank sends all the blocks that it has to rank - 2^k and
 * receives as many from rank + 2^k, so after ceil(log2 p) rounds it has all of them, in the order
 * of its own rank, rank + 1, ...; the last step rotates. Within one allgather a pair of ranks
 * exchanges at most one message a direction, and messages of one pair and tag do not overtake each
 * other.
 *
 * A member without memory for its part abstains: it sends empty messages, and whoever receives one
 * goes on with empty ones. As each rank's result depends on every rank's block, the allgather then
 * fails on all members, and the team is refused alike.
 */
#include "pmpi.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct bootstrap {
	uint32_t rank, size;
	int own;      /* my number for this team */
	int *numbers; /* the others' */
	int *ranks;   /* in MPI_COMM_WORLD */
	bool begun;   /* round 1 of the allgather under way has been started */
	bool running;
	bool refused;  /* some member abstains: only empty messages are sent */
	uint32_t have; /* blocks gathered so far: 1, 2, 4, ... size */
	uint32_t incoming;
	size_t bytes;
	char *blocks; /* of rank, rank + 1, ... */
	char *result; /* the engine's buffer, in rank order */
	MPI_Request first, send, receive;
	struct bootstrap *next; /* among the left ones */
};

static uint32_t next_number;
static uint32_t alive;

/* Released with messages under way. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct bootstrap *left;
static uint32_t left_count;

/* For a rank without memory; of MPI_COMM_WORLD's size. One at a time. */
static pthread_mutex_t spare_lock = PTHREAD_MUTEX_INITIALIZER;
static int *spare_numbers, *spare_ranks;

/* Where a rank without memory receives: bytes that all lie at one place. MPI_Test of a message that
 * is longer than its buffer would be an error of the program, whatever the communicator's handler.
 */
static MPI_Datatype sink; /* a byte, of extent 0 */
static char drop;

static void bootstrap_free(struct bootstrap *self)
{
	free(self->numbers);
	free(self->ranks);
	free(self->blocks);
	free(self);
}

static int start_round(struct bootstrap *self)
{
	uint32_t blocks = self->size - self->have;
	uint32_t to = (self->rank + self->size - self->have) % self->size;
	uint32_t from = (self->rank + self->have) % self->size;
	int error;

	if (blocks > self->have)
		blocks = self->have;
	if (self->blocks)
		error = PMPI(Irecv)(self->blocks + self->have * self->bytes,
				    (int)(blocks * self->bytes), MPI_BYTE, self->ranks[from],
				    self->own, oci_pmpi_job.world, &self->receive);
	else
		error = PMPI(Irecv)(&drop, INT32_MAX, sink, self->ranks[from], self->own,
				    oci_pmpi_job.world, &self->receive);
	if (!error)
		error = PMPI(Isend)(self->blocks, self->refused ? 0 : (int)(blocks * self->bytes),
				    MPI_BYTE, self->ranks[to], self->numbers[to],
				    oci_pmpi_job.world, &self->send);
	self->incoming = blocks;
	return error ? -EIO : 0;
}

static void rotate(struct bootstrap *self)
{
	size_t first = (self->size - self->rank) * self->bytes; /* blocks of rank .. size - 1 */

	memcpy(self->result + self->rank * self->bytes, self->blocks, first);
	memcpy(self->result, self->blocks + first, self->rank * self->bytes);
}

static int allgather_start(void *context, const void *send, size_t bytes, void *receive)
{
	struct bootstrap *self = context;

	if (self->running)
		return -EBUSY;
	self->blocks = send && bytes <= INT32_MAX / self->size ? malloc(self->size * bytes + 1) :
								 NULL;
	self->refused = !self->blocks;
	self->bytes = self->refused ? 0 : bytes;
	if (!self->refused)
		memcpy(self->blocks, send, bytes);
	self->result = receive;
	self->have = 1;
	self->running = true;
	self->begun = false;
	return 0;
}

/* 1 and the request is null: complete (or there was none); 0: not yet; -errno. */
static int finish(MPI_Request *request, size_t bytes)
{
	MPI_Status status;
	int done, count = 0;

	if (*request == MPI_REQUEST_NULL)
		return 1;
	if (PMPI(Test)(request, &done, &status) != MPI_SUCCESS) {
		*request = MPI_REQUEST_NULL;
		return -EIO;
	}
	if (!done)
		return 0;
	if (!bytes)
		return 1;
	PMPI(Get_count)(&status, MPI_BYTE, &count);
	return (size_t)count == bytes ? 1 : -EIO;
}

static int allgather_test(void *context)
{
	struct bootstrap *self = context;
	int done = oci_pmpi_may_call() ? finish(&self->first, 0) : 0;

	while (done == 1 && self->have < self->size) {
		if (!self->begun) {
			self->begun = true;
			done = start_round(self);
			if (done)
				return done;
		}
		done = finish(&self->receive, self->incoming * self->bytes);
		if (done < 0) {
			self->refused = true;
			done = 1;
		}
		if (done == 1)
			done = finish(&self->send, 0);
		if (done == 1) {
			self->have += self->incoming;
			self->begun = false;
		}
	}
	if (done != 1)
		return done;
	if (!self->refused)
		rotate(self);
	free(self->blocks);
	self->blocks = NULL;
	self->running = false;
	return self->refused ? -ENOMEM : 1;
}

static bool quiet(struct bootstrap *self)
{
	return finish(&self->first, 0) && finish(&self->send, 0) && finish(&self->receive, 0);
}

/*
 * Also called with messages under way, when the team is refused or destroyed in the middle: their
 * buffers live on until they are over.
 */
static void release(void *context)
{
	struct bootstrap *self = context;

	if (self->receive != MPI_REQUEST_NULL && finish(&self->receive, 0) == 0)
		PMPI(Cancel)(&self->receive);
	if (quiet(self)) {
		bootstrap_free(self);
	} else {
		pthread_mutex_lock(&lock);
		self->next = left;
		left = self;
		__atomic_fetch_add(&left_count, 1, __ATOMIC_RELAXED);
		pthread_mutex_unlock(&lock);
		oci_pmpi_attend(1);
	}
	__atomic_fetch_sub(&alive, 1, __ATOMIC_RELAXED);
	oci_pmpi_attend(-1);
}

void oci_pmpi_bootstrap_drive(void)
{
	if (!__atomic_load_n(&left_count, __ATOMIC_RELAXED) || pthread_mutex_trylock(&lock))
		return;
	for (struct bootstrap **at = &left, *self; (self = *at) != NULL;) {
		if (!quiet(self)) {
			at = &self->next;
			continue;
		}
		*at = self->next;
		bootstrap_free(self);
		__atomic_fetch_sub(&left_count, 1, __ATOMIC_RELAXED);
		oci_pmpi_attend(-1);
	}
	pthread_mutex_unlock(&lock);
}

uint32_t oci_pmpi_bootstraps(void)
{
	return __atomic_load_n(&alive, __ATOMIC_RELAXED);
}

static bool prepare(struct bootstrap *self, const struct oci_pmpi_comm *state)
{
	MPI_Group group;
	bool known;

	self->rank = state->rank;
	self->size = state->size;
	self->first = self->send = self->receive = MPI_REQUEST_NULL;
	/* Half of the tags are construction.c's. */
	self->own = (int)(__atomic_fetch_add(&next_number, 1, __ATOMIC_RELAXED) %
			  (uint32_t)(oci_pmpi_job.tags / 2));
	if (!self->numbers || !self->ranks || PMPI(Comm_group)(state->comm, &group) != MPI_SUCCESS)
		return false;
	known = oci_pmpi_world_ranks(group, (int)self->size, self->ranks);
	PMPI(Group_free)(&group);
	return known;
}

int oci_pmpi_bootstrap_introduce(void *context, MPI_Comm comm)
{
	struct bootstrap *self = context;
	int error = PMPI(Iallgather)(&self->own, 1, MPI_INT, self->numbers, 1, MPI_INT, comm,
				     &self->first);

	return error ? -EIO : 0;
}

int oci_pmpi_bootstrap_create(struct oci_pmpi_comm *state, struct oc_bootstrap *bootstrap)
{
	struct bootstrap *self = calloc(1, sizeof(*self));

	if (!self)
		return -ENOMEM;
	self->numbers = malloc(state->size * sizeof(*self->numbers));
	self->ranks = malloc(state->size * sizeof(*self->ranks));
	if (!prepare(self, state)) {
		bootstrap_free(self);
		return -ENOMEM;
	}
	*bootstrap = (struct oc_bootstrap){
		.rank = self->rank,
		.size = self->size,
		.node_ranks = oci_pmpi_job.node_ranks,
		.context = self,
		.allgather_start = allgather_start,
		.allgather_test = allgather_test,
		.release = release,
	};
	__atomic_fetch_add(&alive, 1, __ATOMIC_RELAXED);
	oci_pmpi_attend(1);
	return 0;
}

/* Blocks, as there is memory for one at a time only. */
void oci_pmpi_bootstrap_abstain(struct oci_pmpi_comm *state)
{
	struct bootstrap self = { 0 };
	uint32_t turns = 0;

	pthread_mutex_lock(&spare_lock);
	self.numbers = spare_numbers;
	self.ranks = spare_ranks;
	if (prepare(&self, state) && !oci_pmpi_bootstrap_introduce(&self, state->comm)) {
		allgather_start(&self, NULL, 0, NULL);
		while (allgather_test(&self) == 0) {
			oci_pmpi_drive();
			oci_pmpi_pause(&turns);
		}
	}
	pthread_mutex_unlock(&spare_lock);
}

int oci_pmpi_bootstrap_start(void)
{
	size_t bytes = (size_t)oci_pmpi_job.size * sizeof(int);

	spare_numbers = malloc(bytes);
	spare_ranks = malloc(bytes);
	if (!spare_numbers || !spare_ranks ||
	    PMPI(Type_create_resized)(MPI_BYTE, 0, 0, &sink) != MPI_SUCCESS)
		return -ENOMEM;
	return PMPI(Type_commit)(&sink) == MPI_SUCCESS ? 0 : -ENOMEM;
}

void oci_pmpi_bootstrap_stop(void)
{
	PMPI(Type_free)(&sink);
	free(spare_numbers);
	free(spare_ranks);
	spare_numbers = spare_ranks = NULL;
}
